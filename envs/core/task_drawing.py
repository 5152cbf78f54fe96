"""Drawing instances until one is usable."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from tokengym.envs.core.errors import TaskError
from tokengym.envs.core.task import to_plain_json

_MOST_DRAWS = 10_000
_MOST_REFUSALS = 200
"""Instances without an answer after which drawing is given up: each one may take long to solve."""

Values = Mapping[str, Any]


class Unusable(str):
    """Why an instance was refused, for the error if all are."""


def draw_usable(
    draw: Callable[[], tuple[Values, str]],
    solve: Callable[[Values], Values | Unusable | None],
    split: str,
    where: str,
) -> tuple[Values, Values]:
    """Return the first instance drawn that belongs to a split and has an answer, and the answer.

    Args:
        draw: draws an instance and says which split owns it.
        solve: returns an instance's answer, or why it has none.
        split: the split that is wanted.
        where: the world and level, for the error.

    Raises:
        TaskError: if none is found, with the most frequent reasons.
    """
    refusals: Counter[str] = Counter()
    draws = 0
    while draws < _MOST_DRAWS and refusals.total() < _MOST_REFUSALS:
        draws += 1
        instance, owner = draw()
        if owner != split:
            continue
        answer = solve(instance)
        if isinstance(answer, Mapping):
            return instance, to_plain_json(answer)
        refusals[answer or "it has no answer"] += 1
    reasons = "; ".join(f"{count} times: {why}" for why, count in refusals.most_common(3))
    raise TaskError(
        f"{where} gave no usable instance for {split!r} in {draws} draws"
        + (f", refused {reasons}" if reasons else "")
    )
