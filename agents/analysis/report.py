"""The one report writer: lines, tables and pictures, on a terminal or as one HTML file."""

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.table import Table as RichTable

_TEMPLATE = Path(__file__).with_name("report.html.j2")
_DPI = 150

Cell = str | tuple[str, str]
"""Text of a table's cell, or text and a smaller line below it."""


@dataclass(frozen=True)
class Table:
    """A table of a report.

    Attributes:
        header: names of the columns.
        rows: cells, as many to a row as there are columns.
        title: heading, if any.
        note: how to read the table, if that needs saying.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    title: str = ""
    note: str = ""
    kind = "table"

    def for_terminal(self) -> "RichTable":
        """Return the table for a terminal."""
        from rich.table import Table as RichTable

        table = RichTable(
            *self.header,
            title=self.title,
            title_justify="left",
            caption=self.note,
            show_header=any(self.header),
        )
        for row in self.rows:
            table.add_row(*(cell if isinstance(cell, str) else cell[0] for cell in row))
        return table


@dataclass(frozen=True)
class Picture:
    """A picture of a report.

    Attributes:
        png: the picture.
        alt: what it shows, in words.
        title: heading, if any.
    """

    png: bytes
    alt: str
    title: str = ""
    kind = "picture"

    @classmethod
    def of(cls, figure: "Figure", alt: str, title: str = "") -> "Picture":
        """Draw a matplotlib figure."""
        written = io.BytesIO()
        figure.savefig(written, format="png", dpi=_DPI)
        return cls(written.getvalue(), alt, title)

    @property
    def base64(self) -> str:
        """The picture as a page embeds it."""
        return base64.b64encode(self.png).decode("ascii")


@dataclass(frozen=True)
class Gallery:
    """Pictures side by side, as many as there is room for.

    Attributes:
        pictures: the pictures, each with its title.
        title: heading, if any.
        note: how to read the pictures, if that needs saying.
        wide: whether each needs the width of a page, and is scrolled where there is less.
    """

    pictures: Sequence[Picture]
    title: str = ""
    note: str = ""
    wide: bool = False
    kind = "gallery"


@dataclass(frozen=True)
class Text:
    """Text of a report, shown verbatim, folded away where there is a title.

    Attributes:
        text: the text.
        title: heading, if any.
    """

    text: str
    title: str = ""
    kind = "text"


Part = Table | Picture | Gallery | Text


@dataclass(frozen=True)
class Report:
    """Findings, laid out once for terminal and page.

    Attributes:
        title: what the report is about.
        lines: sentences, the most important first.
        parts: tables, pictures and texts, in order.
        warning: what went wrong, if anything did.
        facts: a few figures with their names, for a strip at the top.
        open_parts: how many parts are shown at once; the rest is behind its headings. All if
            `None`.
    """

    title: str
    lines: Sequence[str]
    parts: Sequence[Part]
    warning: str = ""
    facts: Sequence[tuple[str, str]] = ()
    open_parts: int | None = None

    @property
    def tables(self) -> list[Table]:
        """The tables, in order."""
        return [part for part in self.parts if isinstance(part, Table)]

    @property
    def picture(self) -> Picture:
        """The first picture."""
        return next(part for part in self.parts if isinstance(part, Picture))

    def html(self) -> str:
        """Return one HTML page that needs no other file."""
        import jinja2

        template = jinja2.Template(_TEMPLATE.read_text(encoding="utf-8"), autoescape=True)
        page: str = template.render(report=self)
        return page

    def write(self, path: Path) -> None:
        """Write the page."""
        path.write_text(self.html(), encoding="utf-8")
