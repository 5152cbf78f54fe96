"""The pages people read, as blocks of code with the line each begins on."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGES = (
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
)

_BLOCK = re.compile(r"^```(\w*)[ ]?(.*?)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A fenced block.

    Attributes:
        line: line of the page its contents begin on, from 1.
        language: what stands behind the fence, such as `bash`; empty if nothing does.
        name: the file it is the contents of, if the fence names one.
        text: the contents.
    """

    line: int
    language: str
    name: str
    text: str

    def commands(self) -> Iterator[list[str]]:
        """Yield the words of each command of a shell block; comments are left out."""
        for line in self.text.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            if words:
                yield words


def blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(text.count("\n", 0, match.start()) + 2, match[1], match[2].strip(), match[3])
        for match in _BLOCK.finditer(text)
    ]
