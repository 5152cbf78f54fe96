"""The grammar of the debate: a predictor's answer and a challenger's argument, read and written.

The last label and probability lines count, and the last few claims; the rest is ignored.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

from tokengym.envs.core.grammar import NUMBER, lines_from_end, number, read_line, undecorated
from tokengym.envs.disruption.claims import Claim, Fact, Quote, Unreadable
from tokengym.envs.disruption.evidence import FEATURES
from tokengym.envs.disruption.labels import LABELS, Target
from tokengym.envs.disruption.literature import Probabilities
from tokengym.rewards.debate import MOST_CHALLENGER_CLAIMS, MOST_CLAIMS

SUM_TOLERANCE = 0.02
NO_LABEL = "nothing"
"""What a challenger argues for who only asks whether the predictor is sure."""

_GAP = r"\b[ \t]*+[:=]?+[ \t]*+"
_SEPARATOR = r"(?:[ \t]*+[,;/|][ \t]*+|[ \t]++)"
_CLAIM = (
    rf"CLAIM{_GAP}(?P<feature>{'|'.join(FEATURES)})[ \t]*+(?P<op>>=|<=|==|=|>|<|≥|≤)[ \t]*+"
    r"(?P<value>[+-]?[0-9]{1,7}(?:\.[0-9]{1,4})?)(?![0-9a-z])"
    rf'|QUOTE{_GAP}"(?P<quote>[^"\n]*+)"?+'
)
_KEYWORD = re.compile("LABEL|P|CLAIM|QUOTE|ARGUE", re.IGNORECASE)
_UNREADABLE = re.compile(r"(?:CLAIM|QUOTE)\b[ \t:]*+")
_OPERATORS = {"≥": ">=", "≤": "<=", "==": "="}
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
    """A challenger's argument.

    Attributes:
        label: the label it argues for; `None` if it only asks whether the predictor is sure.
        claims: up to two claims.
    """

    label: str | None
    claims: tuple[Claim, ...]

    def write(self) -> str:
        """Write the argument in the form `read_argument` reads."""
        head = f"ARGUE {NO_LABEL if self.label is None else self.label}"
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
    words, numbers, claims = _read(text, _answer_pattern(targets), MOST_CLAIMS)
    if words is None or numbers is None:
        return None
    chosen, reports = [], []
    for k, target in enumerate(targets):
        a, b, c = map(number, numbers[3 * k : 3 * k + 3])
        total = a + b + c
        if min(a, b, c) < 0.0 or abs(total - 1.0) > SUM_TOLERANCE:
            return None
        reports.append((a / total, b / total, c / total))
        chosen.append(LABELS[target].index(words[k].lower()))
    return Answer(tuple(chosen), tuple(reports), claims)


def read_argument(
    text: str, targets: tuple[Target, ...], *, complete: bool = True
) -> Argument | None:
    """Read a challenger's reply; `None` if it is malformed or was cut off."""
    if not complete:
        return None
    words, _, claims = _read(text, _argument_pattern(targets), MOST_CHALLENGER_CLAIMS)
    if words is None:
        return None
    label = words[0].lower()
    return Argument(None, ()) if label == NO_LABEL else Argument(label, claims)


class _Commands(NamedTuple):
    """The commands of a reply that count.

    Attributes:
        words: the labels of the last line that holds any; `None` if no line does, or it holds
            different ones.
        numbers: likewise the probabilities.
        claims: the last claims, in their order.
    """

    words: tuple[str, ...] | None
    numbers: tuple[str, ...] | None
    claims: tuple[Claim, ...]


def _read(text: str, pattern: re.Pattern[str], most_claims: int) -> _Commands:
    words: set[tuple[str, ...]] = set()
    numbers: set[tuple[str, ...]] = set()
    claims: list[Claim] = []
    for line in lines_from_end(text):
        if not _KEYWORD.search(line):
            continue
        found = read_line(pattern, line)
        groups = [match.groupdict() for match in reversed(found)]
        claims += filter(None, map(_claim, groups))
        if not found and (begun := _UNREADABLE.match(bare := undecorated(line))):
            claims.append(Unreadable(bare[begun.end() :][:_LONGEST_CLAIM]))
        words = words or _values(groups, "word")
        numbers = numbers or _values(groups, "number")
    del claims[most_claims:]
    return _Commands(
        words.pop() if len(words) == 1 else None,
        numbers.pop() if len(numbers) == 1 else None,
        tuple(reversed(claims)),
    )


def _values(groups: Sequence[Mapping[str, str | None]], kind: str) -> set[tuple[str, ...]]:
    """Return the different values that a line's commands of one kind have."""
    found = (
        tuple(value.lower() for name, value in one.items() if value and name.startswith(kind))
        for one in groups
    )
    return {values for values in found if values}


def _claim(groups: Mapping[str, str | None]) -> Claim | None:
    """Return the claim that a command is, `None` if it is none."""
    feature, op, value = groups["feature"], groups["op"], groups["value"]
    if feature and op and value:
        return Fact(feature.lower(), _OPERATORS.get(op, op), float(value))
    quote = groups["quote"]
    return None if quote is None else Quote(quote)


@cache
def _answer_pattern(targets: tuple[Target, ...]) -> re.Pattern[str]:
    """Match a label line, a probability line, or a claim."""
    words = _SEPARATOR.join(
        rf"(?P<word{k}>{'|'.join(LABELS[target])})\b" for k, target in enumerate(targets)
    )
    names = [name for target in targets for name in LABELS[target]]
    numbers = _SEPARATOR.join(
        rf"(?:{name}{_GAP})?+(?P<number{k}>{NUMBER})" for k, name in enumerate(names)
    )
    lines = (rf"LABEL{_GAP}{words}", rf"P(?:robabilities)?{_GAP}[(\[]?+{numbers}[)\]]?+", _CLAIM)
    return re.compile("|".join(lines), re.IGNORECASE)


@cache
def _argument_pattern(targets: tuple[Target, ...]) -> re.Pattern[str]:
    """Match the line that argues for a label, or a claim."""
    words = "|".join((*(word for target in targets for word in LABELS[target]), NO_LABEL))
    return re.compile(rf"ARGUE{_GAP}(?:for[ \t]++)?+(?P<word>{words})\b|{_CLAIM}", re.IGNORECASE)
