"""Findings, laid out once: as tables on a terminal, as plain JSON for the viewer's page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from tokengym.agents.settings import plain

if TYPE_CHECKING:
    from rich.table import Table as RichTable

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
class Series:
    """Points of a chart, by place; what is `None` is left out.

    Attributes:
        name: what they are; empty where that needs no saying.
        x: their places.
        y: their values.
        low: lower ends of intervals, or of a band; none if empty.
        high: upper ends.
        kind: whether they are joined by a line, stand alone, or are the edges of a band.
        sizes: areas of the points, relative to the largest; all alike if empty.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float | None]
    low: Sequence[float | None] = ()
    high: Sequence[float | None] = ()
    kind: Literal["line", "dots", "band"] = "line"
    sizes: Sequence[float] = ()


@dataclass(frozen=True)
class Chart:
    """A chart of a report, which the page draws.

    Attributes:
        title: what it shows.
        xlabel: name of the horizontal axis.
        ylabel: name of the vertical axis.
        series: what is drawn, in order.
        levels: horizontal lines by name.
        share: whether the vertical axis is 0 to 1.
        ticks: names of the places 0, 1, … of the horizontal axis; numbers if empty.
        note: how to read the chart, if that needs saying.
    """

    title: str
    xlabel: str
    ylabel: str
    series: Sequence[Series]
    levels: Mapping[str, float] = field(default_factory=dict)
    share: bool = False
    ticks: Sequence[str] = ()
    note: str = ""


@dataclass(frozen=True)
class Text:
    """Text of a report, shown verbatim and folded away.

    Attributes:
        text: the text.
        title: heading.
    """

    text: str
    title: str


@dataclass(frozen=True)
class Report:
    """Findings for terminal and page.

    Attributes:
        title: what the report is about.
        lines: sentences, the most important first.
        parts: tables, charts and texts, in order.
        warning: what went wrong, if anything did.
    """

    title: str
    lines: Sequence[str]
    parts: Sequence[Table | Chart | Text]
    warning: str = ""

    @property
    def tables(self) -> list[Table]:
        """The tables, in order."""
        return [part for part in self.parts if isinstance(part, Table)]

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values; each part says of what `kind` it is."""
        parts = [{**plain(part), "part": type(part).__name__.lower()} for part in self.parts]
        return {**plain(self), "parts": parts}
