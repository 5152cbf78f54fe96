"""The report on every row of a user's files."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from tokengym.envs.forecasting.data.record import RowPlace

_DETAIL = re.compile(r", got |: ")
GUARDS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "late_sources": ("sources dated after their question was asked", "left out"),
        "undated_sources": ("sources without a date, which cannot be checked", "shown"),
        "prices": ("questions with a market price", "hidden unless show_prices=true"),
        "closing_times": (
            "questions whose closing time was not known when asked",
            "never shown; it orders the splits",
        ),
        "asked_late": ("questions asked when the answer was already known", "dropped"),
        "straddling": ("questions asked on both sides of the cutoff", "only the first is kept"),
        "crossing": ("questions on events open across the cutoff", "dropped"),
        "merged": ("questions that repeat an earlier one", "merged with it"),
        "repeated": ("training questions held out again for the same date", "dropped"),
        "telling": ("training questions that tell the outcome of one held out", "dropped"),
        "near": ("questions worded like one on another event", "in one split for one date"),
    }
)
"""By guard what it finds and what is done about it.

Split by event, near questions are in one split; split by time, those for the same date are.
"""


@dataclass(frozen=True)
class Rejection:
    """A row, or a part of one, that was not used.

    Attributes:
        place: file, row, line and id.
        reason: which field, what it held, what it needs.
    """

    place: RowPlace
    reason: str

    @property
    def kind(self) -> str:
        """The reason without the values of this row."""
        return _DETAIL.split(self.reason, maxsplit=1)[0]

    def __str__(self) -> str:
        """Return `file:line: row 3, id 'q3': reason`."""
        return f"{self.place}: {self.reason}"
