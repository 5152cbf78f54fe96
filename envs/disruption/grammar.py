"""The grammar of the debate: a predictor's answer and a challenger's argument, read and written.

The last matching label and probability lines count, and the last few claims; the rest is ignored.
"""

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import NamedTuple

from tokengym.envs.disruption.claims import Claim, Fact, Quote, Unreadable
from tokengym.envs.disruption.evidence import FEATURES
from tokengym.envs.disruption.labels import LABELS, Target
from tokengym.envs.disruption.literature import Probabilities
from tokengym.rewards.debate import MOST_CHALLENGER_CLAIMS

MOST_CLAIMS = 3
SUM_TOLERANCE = 0.02

_FACT = re.compile(r"([a-z_]{1,20}) ?(>=|<=|=|>|<) ?(-?[0-9]{1,7}(?:\.[0-9]{1,4})?)")
_QUOTE = re.compile(r'"([^"]*)"')
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
        words = [LABELS[t][k] for t, k in zip(targets, self.labels, strict=True)]
        form = f"%.{decimals}f %.{decimals}f %.{decimals}f"
        numbers = [form % report for report in self.reports]
        lines = [f"LABEL {' '.join(words)}", f"P {' '.join(numbers)}"]
        lines += [claim.line for claim in self.claims]
        return "\n".join(lines)


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
        targets: the targets asked for; each has one label and three probabilities.
        complete: `False` if the reply was cut off.
    """
    if not complete:
        return None
    label_line, report_line = _lines(targets)
    labels, numbers = label_line.findall(text), report_line.findall(text)
    if not labels or not numbers:
        return None
    words = labels[-1] if len(targets) > 1 else labels[-1:]
    chosen, reports = [], []
    for k, target in enumerate(targets):
        a, b, c = map(float, numbers[-1][3 * k : 3 * k + 3])
        total = a + b + c
        if abs(total - 1.0) > SUM_TOLERANCE:
            return None
        reports.append((a / total, b / total, c / total))
        chosen.append(LABELS[target].index(words[k]))
    return Answer(tuple(chosen), tuple(reports), _claims(text, MOST_CLAIMS))


def read_argument(text: str, targets: tuple[Target, ...], *, complete: bool = True) -> Argument:
    """Read a challenger's reply; without an `ARGUE` line it argues for nothing."""
    found = _argue_line(targets).findall(text) if complete else []
    if not found:
        return Argument(None, ())
    return Argument(found[-1], _claims(text, MOST_CHALLENGER_CLAIMS))


def _claims(text: str, most: int) -> tuple[Claim, ...]:
    return tuple(
        [
            (_read_fact if kind == "CLAIM" else _read_quote)(words.strip()[:_LONGEST_CLAIM])
            for kind, words in _CLAIM.findall(text)[-most:]
        ]
    )


@lru_cache(maxsize=16384)
def _read_fact(words: str) -> Claim:
    """Read the words after `CLAIM`."""
    match = _FACT.fullmatch(words)
    if match is None or match[1] not in FEATURES:
        return Unreadable(words)
    return Fact(match[1], match[2], float(match[3]))


@lru_cache(maxsize=16384)
def _read_quote(words: str) -> Claim:
    """Read the words after `QUOTE`."""
    match = _QUOTE.fullmatch(words)
    return Unreadable(words) if match is None else Quote(match[1])


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
