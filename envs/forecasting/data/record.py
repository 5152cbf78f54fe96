"""A resolved question as of the time it was asked, whatever file it came from."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import NamedTuple

from tokengym.envs.forecasting.grammar import LETTERS

Row = Mapping[str, object]
"""One row of a file as parsed: a JSON object or the cells of a CSV row by column."""

MOST_OUTCOMES = len(LETTERS)


class RowError(ValueError):
    """A row that cannot be used; the message is the reason."""


class BackgroundText(NamedTuple):
    """A text to read before forecasting.

    Attributes:
        text: the text.
        dated: when it was published, `None` if unknown; a bare date counts as the end of that day.
    """

    text: str
    dated: datetime | None


class RowPlace(NamedTuple):
    """The position of a row.

    Attributes:
        file: name of the file.
        row: number of the row in the file, from 1, without a header.
        line: line it begins on, from 1; `None` where a format has no lines.
        key: the row's id; empty if it has none.
    """

    file: str
    row: int
    line: int | None
    key: str

    def __str__(self) -> str:
        """Return `file:line: row 3, id 'q3'`."""
        line = "" if self.line is None else f":{self.line}"
        key = f", id {self.key!r}" if self.key else ""
        return f"{self.file}{line}: row {self.row}{key}"


@dataclass(frozen=True)
class QuestionRecord:
    """One question. All times are in UTC.

    Attributes:
        key: the question's id in its file.
        event: what it is about; questions on one event never come apart in a split.
        question: the question in words.
        background: text shown with it.
        asked_at: the moment of the snapshot; nothing later may be shown.
        closed_at: when the answer was out. It leaks the answer, so it only orders splits.
        resolves_by: the date it was scheduled to resolve by, if that was known when asked.
        labels: names of the outcomes; none for a yes/no question.
        outcome: index of what happened; of a yes/no question 1 is yes.
        price: the market's probabilities when asked, one an outcome, (no, yes) if yes/no.
        sources: texts to read.
        ordered: whether the outcomes are in order, as ranges of a number are.
        part: what part of its event it asks about, such as the name of a market; it orders the
            questions of one snapshot.
        rounds: whether its event is asked about in rounds, for several horizons each. One that is
            closed says nothing of a later one that its background does not, so that a cutoff
            parts them; without one they are split by event.
    """

    key: str
    event: str
    question: str
    background: str
    asked_at: datetime
    closed_at: datetime
    resolves_by: date | None
    labels: tuple[str, ...]
    outcome: int
    price: tuple[float, ...] | None = None
    sources: tuple[BackgroundText, ...] = ()
    ordered: bool = False
    part: str = ""
    rounds: bool = False


Parsed = QuestionRecord | RowError
"""A question of a row, or why there is none."""
