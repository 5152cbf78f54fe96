"""The form of a reply: what it looks like, and how near a malformed one comes to it."""

import re
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import takewhile
from typing import NamedTuple

from tokengym.envs.core.grammar import lines_of, undecorated

_BLANKS = re.compile(r"\s++")
_DIGITS = re.compile(r"[0-9]")
_WINDOW = 2
"""Characters of a line that are compared, as a multiple of the form's length."""
_PATIENCE = 4.0
"""Superfluous characters that halve the nearness, as a multiple of the form's length."""
_ENDS = 10_000
"""Characters at either end of a reply whose lines are compared."""
_LONGEST = 1000
"""Characters of a line that are looked at; no form is longer."""


class ReplyForm(NamedTuple):
    """Form of a well-formed reply, for people who play.

    Attributes:
        words: the form in words, or an example of it.
        single_line: whether every well-formed reply is one line.
    """

    words: str
    single_line: bool


@lru_cache(maxsize=32)  # a policy that has collapsed repeats itself, turn after turn
def nearness(text: str, *forms: str) -> float:
    """Grade a malformed reply: 0 if it is empty, 1 if it is only the form.

    Each form is compared with the first and the last lines of the reply, as many of each as there
    are forms and within 10,000 characters of either end, and the nearest of them counts: half of it
    is how much of the form's beginning the line begins with, half how similar the two are. Whatever
    is longer than the form costs, so neither repetition nor length ever pays. All digits count as
    alike, and so do cases.

    Args:
        text: a whole reply, of any length and content.
        forms: the lines that a well-formed reply has, each with `0` for any digit, such as
            `Probability: 0.000`.
    """
    text, patterns = text.strip(), [_canonical(form) for form in forms]
    compared = text if len(text) < 2 * _ENDS else f"{text[:_ENDS]}\n{text[-_ENDS:]}"
    reply_lines, count = lines_of(compared), len(forms)
    ends = (line[:_LONGEST] for line in (*reply_lines[:count], *reply_lines[-count:]))
    lines = {_canonical(undecorated(line)) for line in ends}
    near = sum(max((_likeness(line, form) for line in lines), default=0.0) for form in patterns)
    expected = sum(map(len, patterns))
    superfluous = max(0, len(text) - expected - len(forms))
    return near / len(forms) / (1.0 + superfluous / (_PATIENCE * expected))


def _canonical(line: str) -> str:
    return _DIGITS.sub("0", _BLANKS.sub(" ", line.strip()).lower())


def _likeness(line: str, form: str) -> float:
    """Compare a line's beginning with a form, in [0, 1]."""
    begun = line[: _WINDOW * len(form)]
    alike = takewhile(lambda pair: pair[0] == pair[1], zip(begun, form, strict=False))
    beginning = sum(1 for _ in alike) / len(form)
    return 0.5 * beginning + 0.5 * SequenceMatcher(None, begun, form, autojunk=False).ratio()
