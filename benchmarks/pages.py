"""Blocks of a page that benchmarks write and tests read: between two comments, found by name.

<!-- made by NAME -->
...
<!-- end of NAME -->
"""

import re
from pathlib import Path

from tokengym.envs.core.errors import OptionError

_BLOCK = r"(<!-- made by {name} -->\n)(.*?)(<!-- end of {name} -->)"


def block_names(page: Path) -> list[str]:
    """Return the names of a page's blocks, in order."""
    return re.findall(r"^<!-- made by (.+) -->$", page.read_text(encoding="utf-8"), re.MULTILINE)


def find_block(page: Path, name: str) -> re.Match[str]:
    """Return where a block is, its text as group 2.

    Raises:
        OptionError: if the page has no such block, or several.
    """
    pattern = re.compile(_BLOCK.format(name=re.escape(name)), re.DOTALL)
    blocks = list(pattern.finditer(page.read_text(encoding="utf-8")))
    if len(blocks) != 1:
        raise OptionError(f"{page} needs one block made by {name}, has {len(blocks)}")
    return blocks[0]


def write_block(page: Path, name: str, text: str) -> None:
    """Replace the text of a block with `text`.

    Raises:
        OptionError: if the page has no such block, or several.
    """
    block = find_block(page, name)
    before, after = block.string[: block.start(2)], block.string[block.end(2) :]
    page.write_text(f"{before}\n{text}\n\n{after}", encoding="utf-8")


def read_block(page: Path, name: str) -> str:
    """Return the text of a block.

    Raises:
        OptionError: if the page has no such block, or several.
    """
    return find_block(page, name)[2].strip("\n")


def table_rows(text: str) -> list[list[str]]:
    """Return the cells of a table of Markdown, its header first."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [rows[0], *rows[2:]]
