"""Blocks of a Markdown page that commands write: between two comments, found by name.

<!-- made by NAME -->
...
<!-- end of NAME -->
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from tokengym.envs.core.errors import OptionError

_BLOCK = r"(<!-- made by {name} -->\n)(.*?)(<!-- end of {name} -->)"


def block_names(page: Path) -> list[str]:
    """Return the names of a page's blocks, in order."""
    return re.findall(r"^<!-- made by (.+) -->$", page.read_text(encoding="utf-8"), re.MULTILINE)


def read_block(page: Path, name: str) -> str:
    """Return the text of a block.

    Raises:
        OptionError: if the page has no such block, or several.
    """
    (block,) = _found(page, name)
    return block[2].strip("\n")


def write_block(page: Path, name: str, text: str) -> None:
    """Replace the text of a block with `text`.

    Raises:
        OptionError: if the page has no such block, or several.
    """
    (block,) = _found(page, name)
    before, after = block.string[: block.start(2)], block.string[block.end(2) :]
    page.write_text(f"{before}\n{text}\n\n{after}", encoding="utf-8")


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table of Markdown; cells hold no `|`."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |".replace("  ", " ") for cells in lines)


def keyed_table(label: str, rows: Mapping[str, Mapping[str, str]]) -> str:
    """Return a table with one row per key; the keys, as code, are in a column called `label`.

    Args:
        label: header of the first column.
        rows: cells by key and column; all rows have the columns of the first.
    """
    columns = list(next(iter(rows.values())))
    cells = [[f"`{key}`", *(row[column] for column in columns)] for key, row in rows.items()]
    return markdown_table([label, *columns], cells)


def table_rows(text: str) -> list[list[str]]:
    """Return the cells of a table of Markdown, its header first."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [rows[0], *rows[2:]]


def _found(page: Path, name: str) -> list[re.Match[str]]:
    pattern = re.compile(_BLOCK.format(name=re.escape(name)), re.DOTALL)
    blocks = list(pattern.finditer(page.read_text(encoding="utf-8")))
    if len(blocks) != 1:
        raise OptionError(f"{page} needs one block made by {name}, has {len(blocks)}")
    return blocks
