"""Claims about a paper: their form, whether they hold, and the integers they leave open."""

import math
import operator
from typing import NamedTuple

from tokengym.envs.disruption.evidence import Evidence

MOST_QUOTED_WORDS = 8
MOST_QUOTED_CHARACTERS = 80
_SHOWN_CHARACTERS = 40
_COMPARED = {
    **{"=": operator.eq, ">=": operator.ge, ">": operator.gt},
    **{"<=": operator.le, "<": operator.lt},
}


class Fact(NamedTuple):
    """`CLAIM feature op value`."""

    feature: str
    op: str
    value: float

    @property
    def line(self) -> str:
        """The claim as it is written."""
        return f"CLAIM {self.statement}"

    @property
    def statement(self) -> str:
        """The claim without its keyword."""
        return f"{self.feature} {self.op} {self.value:g}"

    def interval(self) -> tuple[float, float]:
        """Smallest and largest integer that satisfies it, possibly infinite."""
        value = self.value
        if self.op == "=":
            return (value, value) if value == int(value) else (math.inf, -math.inf)
        if self.op == ">=":
            return math.ceil(value), math.inf
        if self.op == ">":
            return math.floor(value) + 1, math.inf
        if self.op == "<=":
            return -math.inf, math.floor(value)
        return -math.inf, math.ceil(value) - 1

    def holds(self, evidence: Evidence) -> bool:
        """Return whether the feature is shown and its value satisfies the claim."""
        value = evidence.facts.get(self.feature)
        return value is not None and _COMPARED[self.op](value, self.value)


class Quote(NamedTuple):
    """`QUOTE "words"` of the title or abstract, at most 8 words and 80 characters."""

    words: str

    @property
    def line(self) -> str:
        """The claim as it is written."""
        return f"QUOTE {self.statement}"

    @property
    def statement(self) -> str:
        """The claim without its keyword."""
        return f'"{self.words}"'

    def holds(self, evidence: Evidence) -> bool:
        """Return whether the words occur in the text, blanks and case aside, and are few enough."""
        words = self.words.lower().split()
        return (
            0 < len(words) <= MOST_QUOTED_WORDS
            and len(self.words) <= MOST_QUOTED_CHARACTERS
            and " ".join(words) in evidence.text
        )


class Unreadable(NamedTuple):
    """A line that begins like a claim but is malformed; it never holds."""

    words: str

    @property
    def line(self) -> str:
        """The claim as it was written, shortened and made printable."""
        return f"CLAIM {self.statement}"

    @property
    def statement(self) -> str:
        """The claim without its keyword."""
        return "".join(c if c.isprintable() else "?" for c in self.words[:_SHOWN_CHARACTERS])

    def holds(self, evidence: Evidence) -> bool:
        """Return `False`: nobody can verify it."""
        return False


Claim = Fact | Quote | Unreadable
