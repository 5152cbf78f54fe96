"""The grammar of the debate: a predictor's answer and a challenger's argument, read and written.

The last statement of a label and the last of probabilities count, readable or not; an unreadable
one is of every kind whose word it holds. Each claim is a statement of its own, which no later one
replaces: the last few count, and an unreadable one is a false claim. The rest is ignored.
"""

import re
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

from tokengym.envs.core.grammar import (
    IS,
    NEXT,
    SHARE,
    SHORT,
    Grammar,
    remembered,
    share,
    statements,
)
from tokengym.envs.disruption.claims import Claim, Fact, Quote, Unreadable
from tokengym.envs.disruption.evidence import FEATURES
from tokengym.envs.disruption.labels import LABELS, Target
from tokengym.envs.disruption.literature import Probabilities
from tokengym.rewards.debate import MOST_CHALLENGER_CLAIMS, MOST_CLAIMS

SUM_TOLERANCE = 0.02
NO_LABEL = "nothing"
"""What a challenger argues for who only asks whether the predictor is sure."""

_GAP = rf"\b{IS}"
_CLAIM = (
    rf"CLAIM{_GAP}({'|'.join(FEATURES)})[ \t]*+(>=|<=|==|=|>|<|≥|≤)[ \t]*+"
    r"([+-]?[0-9]{1,7}(?:\.[0-9]{1,4})?)(?![0-9a-z])"
    rf'|QUOTE{_GAP}"([^"\n]*+)"?+'
)
_UNREADABLE = re.compile(r"(?:CLAIM|QUOTE)\b[ \t:]*+", re.IGNORECASE)
_OPERATORS = {"≥": ">=", "≤": "<=", "==": "="}
_LONGEST_CLAIM = 200


class PredictorAnswer(NamedTuple):
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


def read_answer(
    text: str, targets: tuple[Target, ...], *, complete: bool = True
) -> PredictorAnswer | None:
    """Read a predictor's reply; `None` if it is malformed or was cut off.

    Args:
        text: the reply.
        targets: the targets asked for; each has one label and three probabilities.
        complete: `False` if the reply was cut off.
    """
    if not complete:
        return None
    return (_known_answer if len(text) <= SHORT else _last_answer)(text, targets)


def _last_answer(text: str, targets: tuple[Target, ...]) -> PredictorAnswer | None:
    words, shares, claims = _read(text, _answers(targets), len(targets), MOST_CLAIMS)
    if words is None or shares is None:
        return None
    chosen, reports = [], []
    for k, target in enumerate(targets):
        a, b, c = shares[3 * k : 3 * k + 3]
        total = a + b + c
        if min(a, b, c) < 0.0 or not abs(total - 1.0) <= SUM_TOLERANCE:
            return None
        reports.append((a / total, b / total, c / total))
        chosen.append(LABELS[target].index(words[k].lower()))
    return PredictorAnswer(tuple(chosen), tuple(reports), claims)


_known_answer = remembered(_last_answer)


def read_argument(
    text: str, targets: tuple[Target, ...], *, complete: bool = True
) -> Argument | None:
    """Read a challenger's reply; `None` if it is malformed or was cut off."""
    if not complete:
        return None
    return (_known_argument if len(text) <= SHORT else _last_argument)(text, targets)


def _last_argument(text: str, targets: tuple[Target, ...]) -> Argument | None:
    words, _, claims = _read(text, _arguments(targets), 1, MOST_CHALLENGER_CLAIMS)
    if words is None:
        return None
    label = words[0].lower()
    return Argument(None if label == NO_LABEL else label, claims)


_known_argument = remembered(_last_argument)


def read_claims(text: str, targets: tuple[Target, ...]) -> tuple[Claim, ...]:
    """Read the claims of a predictor's reply that count, whether it is malformed or not."""
    return _read(text, _answers(targets), len(targets), MOST_CLAIMS)[2]


def _read(
    text: str, grammar: Grammar, labels: int, most_claims: int
) -> tuple[tuple[str, ...] | None, tuple[float, ...] | None, tuple[Claim, ...]]:
    """Return the labels, the probabilities and the last claims that count, in their order.

    Labels and probabilities are `None` if their last statement is missing, unreadable, or holds
    different ones.

    Args:
        text: a whole reply.
        grammar: whose first groups are that many labels, and the next the probabilities.
        labels: labels of an answer.
        most_claims: claims that count.
    """
    last: dict[str, set[tuple[Any, ...]]] = {}
    claims: list[Claim] = []
    for line, matches in statements(grammar, text):
        on_line: dict[str, set[tuple[Any, ...]]] = {}
        for match in reversed(matches):
            *values, feature, op, value, quote = match.groups()
            if feature:
                claims.append(Fact(feature.lower(), _OPERATORS.get(op, op), float(value)))
            elif quote is not None:
                claims.append(Quote(quote))
            elif values[0]:
                on_line.setdefault("L", set()).add(tuple(map(str.lower, values[:labels])))
            else:
                shares = tuple(map(share, values[labels::2], values[labels + 1 :: 2]))
                on_line.setdefault("P", set()).add(shares)
        if not matches and (begun := _UNREADABLE.match(line)):
            claims.append(Unreadable(line[begun.end() :][:_LONGEST_CLAIM]))
        elif not matches:
            named = grammar.words.findall(line.upper())
            on_line = {"L" if word == "ARGUE" else word[0]: set() for word in named}
        last = on_line | last
    del claims[most_claims:]
    words, reports = last.get("L", set()), last.get("P", set())
    return (
        words.pop() if len(words) == 1 else None,
        reports.pop() if len(reports) == 1 else None,
        tuple(reversed(claims)),
    )


@cache
def _answers(targets: tuple[Target, ...]) -> Grammar:
    """Return the grammar of a label line, a probability line, or a claim."""
    words = NEXT.join(rf"({'|'.join(LABELS[target])})\b" for target in targets)
    names = [name for target in targets for name in LABELS[target]]
    numbers = NEXT.join(rf"(?:{name}{_GAP})?+{SHARE}" for name in names)
    lines = (
        rf"LABEL{_GAP}{words}",
        rf"P(?:robabilit(?:y|ies))?{IS}[(\[]?+{numbers}[)\]]?+",
        _CLAIM,
    )
    return Grammar("LABEL|P|PROBABILIT(?:Y|IES)|CLAIM|QUOTE", "|".join(lines))


@cache
def _arguments(targets: tuple[Target, ...]) -> Grammar:
    """Return the grammar of a line that argues for a label, or of a claim."""
    words = "|".join((*(word for target in targets for word in LABELS[target]), NO_LABEL))
    return Grammar("ARGUE|CLAIM|QUOTE", rf"ARGUE{_GAP}(?:for[ \t]++)?+({words})\b|{_CLAIM}")
