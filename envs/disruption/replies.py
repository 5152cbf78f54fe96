"""The grammar of the debate: a predictor's answer and a challenger's argument, read and written.

Of each kind of line the last that matches counts, of claims the last few; all else is ignored.
"""

import re
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from tokengym.envs.disruption.claims import Claim, read_fact, read_quote
from tokengym.envs.disruption.labels import LABELS, Target
from tokengym.envs.disruption.literature import Probabilities
from tokengym.rewards.debate import MOST_CHALLENGER_CLAIMS

MOST_CLAIMS = 3
SUM_TOLERANCE = 0.02

_NUMBER = r"([01]?\.[0-9]{1,12}|[01])"
_CLAIM = re.compile(r"^[ \t]*(CLAIM|QUOTE)[ \t:]([^\n]*)$", re.MULTILINE)
_LONGEST_CLAIM = 200


class Answer(NamedTuple):
    """A predictor's answer.

    Attributes:
        labels: position of the chosen label of each target in `LABELS`.
        reports: probabilities of the labels of each target, each summing to 1.
        claims: up to three claims.
    """

    labels: tuple[int, ...]
    reports: tuple[Probabilities, ...]
    claims: tuple[Claim, ...]

    def write(self, targets: Sequence[Target], decimals: int = 2) -> str:
        """Write the answer in the form `read_answer` reads."""
        words = (LABELS[t][k] for t, k in zip(targets, self.labels, strict=True))
        numbers = (f"{p:.{decimals}f}" for report in self.reports for p in report)
        lines = [f"LABEL {' '.join(words)}", f"P {' '.join(numbers)}"]
        return "\n".join([*lines, *(claim.line for claim in self.claims)])


class Argument(NamedTuple):
    """A challenger's argument: the label it argues for, or `None`, and up to two claims."""

    label: str | None
    claims: tuple[Claim, ...]

    def write(self) -> str:
        """Write the argument in the form `read_argument` reads."""
        head = "Are you sure?" if self.label is None else f"ARGUE {self.label}"
        return "\n".join([head, *(claim.line for claim in self.claims)])


def read_answer(text: str, targets: tuple[Target, ...], *, complete: bool = True) -> Answer | None:
    """Read a predictor's reply; `None` if it is malformed or was cut off.

    Args:
        text: the reply.
        targets: what is asked for; a joint answer has one label and three probabilities for each.
        complete: `False` if the reply was cut off.
    """
    if not complete:
        return None
    label_line, report_line = _lines(targets)
    labels, numbers = label_line.findall(text), report_line.findall(text)
    if not labels or not numbers:
        return None
    words = labels[-1] if len(targets) > 1 else labels[-1:]
    values = [float(number) for number in numbers[-1]]
    reports = []
    for k in range(0, len(values), 3):
        a, b, c = values[k : k + 3]
        total = a + b + c
        if abs(total - 1.0) > SUM_TOLERANCE:
            return None
        reports.append((a / total, b / total, c / total))
    chosen = tuple(LABELS[t].index(word) for t, word in zip(targets, words, strict=True))
    return Answer(chosen, tuple(reports), _claims(text, MOST_CLAIMS))


def read_argument(text: str, targets: tuple[Target, ...], *, complete: bool = True) -> Argument:
    """Read a challenger's reply; without an `ARGUE` line it argues for nothing."""
    found = _argue_line(targets).findall(text) if complete else []
    if not found:
        return Argument(None, ())
    return Argument(found[-1], _claims(text, MOST_CHALLENGER_CLAIMS))


def _claims(text: str, most: int) -> tuple[Claim, ...]:
    found = _CLAIM.findall(text)[-most:]
    return tuple(
        read_fact(words) if kind == "CLAIM" else read_quote(words)
        for kind, words in ((kind, words.strip()[:_LONGEST_CLAIM]) for kind, words in found)
    )


@cache
def _lines(targets: tuple[Target, ...]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    words = "[ ,\t]+".join(f"({'|'.join(LABELS[target])})" for target in targets)
    numbers = "[ ,\t]+".join([_NUMBER] * (3 * len(targets)))
    return (
        re.compile(rf"^[ \t]*LABEL[ \t:]+{words}[ \t\r]*$", re.MULTILINE),
        re.compile(rf"^[ \t]*P[ \t:]+{numbers}[ \t\r]*$", re.MULTILINE),
    )


@cache
def _argue_line(targets: tuple[Target, ...]) -> re.Pattern[str]:
    words = "|".join(word for target in targets for word in LABELS[target])
    return re.compile(rf"^[ \t]*ARGUE[ \t:]+({words})[ \t\r]*$", re.MULTILINE)
