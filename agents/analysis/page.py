"""A study as something to look at: a table, its picture, and a page that holds both.

What a study says is laid out once, as a `Sheet`; terminal, PNG and HTML show the same.
"""

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.table import Table

_PAGE = Path(__file__).with_name("page.html.j2")
_DPI = 120


@dataclass(frozen=True)
class Sheet:
    """What a study says.

    Attributes:
        title: what was studied.
        lines: sentences, the most important first.
        header: names of the columns.
        rows: cells as text, as many to a row as there are columns.
        note: how to read the table.
        picture: the drawing.
    """

    title: str
    lines: Sequence[str]
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str
    picture: "Figure"

    def table(self) -> "Table":
        """Return the table for a terminal."""
        from rich.table import Table

        table = Table(*self.header, title=self.title, title_justify="left", caption=self.note)
        for row in self.rows:
            table.add_row(*row)
        return table

    def draw(self, path: Path) -> None:
        """Write the picture as a PNG."""
        path.write_bytes(self._png())

    def write(self, path: Path) -> None:
        """Write one HTML file that needs no other."""
        import jinja2

        template = jinja2.Template(_PAGE.read_text(encoding="utf-8"), autoescape=True)
        page = template.render(
            title=self.title,
            lines=self.lines,
            header=self.header,
            rows=self.rows,
            note=self.note,
            picture=base64.b64encode(self._png()).decode("ascii"),
        )
        path.write_text(page, encoding="utf-8")

    def _png(self) -> bytes:
        written = io.BytesIO()
        self.picture.savefig(written, format="png", dpi=_DPI)
        return written.getvalue()
