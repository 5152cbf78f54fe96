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
    SEVERAL,
    SHARE,
    Grammar,
    Reading,
    complaint,
    joined_shares,
    normalised,
    remembered,
    share,
    statements,
    undecorated,
)
from tokengym.envs.disruption.claims import Claim, Fact, Quote, Unreadable
from tokengym.envs.disruption.evidence import FEATURES
from tokengym.envs.disruption.labels import LABELS, Target
from tokengym.envs.disruption.literature import Probabilities
from tokengym.rewards.debate import MOST_CHALLENGER_CLAIMS, MOST_CLAIMS

SUM_TOLERANCE = 0.02
NO_LABEL = "nothing"
"""Position of a challenger who only asks whether the predictor is sure."""

_GAP = rf"\b{IS}"
_CLAIM = (
    rf"CLAIM{_GAP}({'|'.join(FEATURES)})[ \t]*+(>=|<=|==|=|>|<|≥|≤)[ \t]*+"
    r"([+-]?[0-9]{1,7}(?:\.[0-9]{1,4})?)(?![0-9a-z])"
    rf'|QUOTE{_GAP}"([^"\n]*+)"?+'
)
_UNREADABLE = re.compile(r"(?:CLAIM|QUOTE)\b[ \t:]*+", re.IGNORECASE)
_OPERATORS = {"≥": ">=", "≤": "<=", "==": "="}
_LONGEST_CLAIM = 200


def answer_in_words(targets: Sequence[Target]) -> str:
    """Describe the two lines every answer must have, for complaints."""
    words = " and ".join(either(LABELS[target]) for target in targets)
    return f'a line "LABEL" with {words}, and a line "P" with the probabilities in that order'


def argument_in_words(targets: Sequence[Target]) -> str:
    """Describe a challenger's argument, for people who play."""
    words = [word for target in targets for word in LABELS[target]]
    return f'a line "ARGUE" with {either([*words, NO_LABEL])}, and up to two claims'


@cache
def answer_forms(targets: tuple[Target, ...]) -> tuple[tuple[str, str], ...]:
    """Return the lines that a well-formed answer has, with each of the labels."""
    report = " ".join(["0.00"] * (3 * len(targets)))
    return tuple(
        (f"LABEL {' '.join(LABELS[target][k] for target in targets)}", f"P {report}")
        for k in range(3)
    )


def either(words: Sequence[str], last: str = "or") -> str:
    """Write a list of words: `a, b or c`."""
    return f" {last} ".join([", ".join(words[:-1]), *words[-1:]] if len(words) > 1 else words)


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


@remembered
def read_answer(
    text: str, targets: tuple[Target, ...], *, complete: bool = True
) -> Reading[PredictorAnswer]:
    """Read a predictor's reply.

    Args:
        text: the reply.
        targets: the targets asked for; each has one label and three probabilities.
        complete: `False` if the reply was cut off: then the lines count that had ended.
    """
    grammar = _answers(targets)
    text = joined_shares(text, "P", tuple(name for target in targets for name in LABELS[target]))
    words, shares, claims, said = _read(text, grammar, len(targets), MOST_CLAIMS, complete)
    chosen: list[int] = []
    reports: list[Probabilities] = []
    remarks = [said] if said else []
    for k, target in enumerate(targets):
        if words is None or shares is None:
            break
        report, rescaled = normalised(shares[3 * k : 3 * k + 3], SUM_TOLERANCE)
        if report is None:
            break
        remarks += [rescaled] if rescaled else []
        reports.append((report[0], report[1], report[2]))
        chosen.append(LABELS[target].index(words[k].lower()))
    if len(chosen) < len(targets):
        return Reading(None, complaint(text, answer_in_words(targets), grammar, complete=complete))
    return Reading(PredictorAnswer(tuple(chosen), tuple(reports), claims), " ".join(remarks))


@remembered
def read_argument(
    text: str, targets: tuple[Target, ...], *, complete: bool = True
) -> Argument | None:
    """Read a challenger's reply; `None` if it is malformed."""
    words, _, claims, _ = _read(text, _arguments(targets), 1, MOST_CHALLENGER_CLAIMS, complete)
    if words is None:
        return None
    label = words[0].lower()
    return Argument(None if label == NO_LABEL else label, claims)


def read_claims(text: str, targets: tuple[Target, ...]) -> tuple[Claim, ...]:
    """Read the claims of a predictor's reply that count, whether it is malformed or not."""
    return _read(text, _answers(targets), len(targets), MOST_CLAIMS, True).claims


class _Stated(NamedTuple):
    """Statements of a reply.

    Attributes:
        labels: as they were written; `None` if their last statement is missing, unreadable or holds
            different ones.
        shares: likewise, the probabilities.
        claims: the last claims that count, in their order.
        said: a remark if statements differ.
    """

    labels: tuple[str, ...] | None
    shares: tuple[float, ...] | None
    claims: tuple[Claim, ...]
    said: str


def _read(text: str, grammar: Grammar, labels: int, most_claims: int, complete: bool) -> _Stated:
    """Read a whole reply.

    Args:
        text: the reply.
        grammar: whose first groups are that many labels, and the next the probabilities.
        labels: labels of an answer.
        most_claims: claims that count.
        complete: `False` if the reply was cut off.
    """
    last: dict[str, Any] = {}
    claims: list[Claim] = []
    said = ""
    for line, _, matches in statements(grammar, text, complete=complete):
        on_line: dict[str, Any] = {}
        for match in reversed(matches):
            *values, feature, op, value, quote = match.groups()
            if feature:
                claims.append(Fact(feature.lower(), _OPERATORS.get(op, op), float(value)))
            elif quote is not None:
                claims.append(Quote(quote))
            else:
                kind = "L" if values[0] else "P"
                stated: tuple[Any, ...] = tuple(
                    map(str.lower, values[:labels] if values[0] else ())
                )
                if kind == "P":
                    stated = tuple(map(share, values[labels::2], values[labels + 1 :: 2]))
                on_line[kind] = stated if on_line.get(kind, stated) == stated else None
        if not matches:
            bare = undecorated(line)
            if begun := _UNREADABLE.match(bare):
                claims.append(Unreadable(bare[begun.end() :][:_LONGEST_CLAIM]))
            else:
                named = grammar.words.findall(bare.upper())
                on_line = {"L" if word == "ARGUE" else word[0]: None for word in named}
        if any(stated and last.get(kind, stated) != stated for kind, stated in on_line.items()):
            said = SEVERAL
        last = on_line | last
    del claims[most_claims:]
    return _Stated(last.get("L"), last.get("P"), tuple(reversed(claims)), said)


@cache
def _answers(targets: tuple[Target, ...]) -> Grammar:
    """Return the grammar of a label line, a probability line, or a claim."""
    words = NEXT.join(rf"({'|'.join(LABELS[target])})\b" for target in targets)
    names = [name for target in targets for name in LABELS[target]]
    numbers = NEXT.join(rf"(?:P?[(]?{name}\b[)]?{IS})?+{SHARE}" for name in names)
    lines = (
        rf"LABEL{_GAP}{words}",
        rf"P(?:robabilit(?:y|ies))?{IS}[(\[]?+{numbers}[)\]]?+",
        _CLAIM,
    )
    return Grammar("LABEL|P|PROBABILIT(?:Y|IES)|CLAIM|QUOTE", "|".join(lines), "LABEL")


@cache
def _arguments(targets: tuple[Target, ...]) -> Grammar:
    """Return the grammar of a line that argues for a label, or of a claim."""
    words = "|".join((*(word for target in targets for word in LABELS[target]), NO_LABEL))
    return Grammar("ARGUE|CLAIM|QUOTE", rf"ARGUE{_GAP}(?:for[ \t]++)?+({words})\b|{_CLAIM}")
