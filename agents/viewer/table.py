"""Rollouts as the rows of a table: a column for everything a page filters or sorts by."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from tokengym.agents.rollouts import RolloutRecord
from tokengym.envs.core.errors import UnknownWorldError
from tokengym.envs.registry import spec

COLUMNS = (
    *("group", "member", "step", "world", "level", "role", "policy", "index", "fingerprint"),
    *(
        "return",
        "advantage",
        "stop",
        "turns",
        "malformed",
        "cut_off",
        "violation",
        "said_tokens",
        "tie",
    ),
    *("dead", "said"),
)
"""Names of the columns.

`step` is `null` outside training; `malformed` and `cut_off` count replies; `violation` is 0 or 1;
`tie` is how many other members of the group earned the same, `dead` 1 if all did; `said` is the
beginning of the last reply.
"""

Group = tuple[str, str, str, int]
"""World, level, role and number within its segment."""

_SHOWN = 120
_SPACES = re.compile(r"\s+")
_APART = 1e-6
"""Returns further apart do not tie, as `tie_statistics` counts."""


def table_of(records: Sequence[RolloutRecord]) -> dict[str, list[Any]]:
    """Return one segment's rollouts by column, in the order of the records."""
    ties = _ties(records)
    rows = [_row(record, *ties[at]) for at, record in enumerate(records)]
    return {name: [row[name] for row in rows] for name in COLUMNS}


def groups_of(records: Iterable[RolloutRecord]) -> Mapping[Group, list[int]]:
    """Return the positions of the members of each group."""
    members: dict[Group, list[int]] = defaultdict(list)
    for at, record in enumerate(records):
        members[record.world, record.level, record.role, record.origin.group].append(at)
    return members


class Texts:
    """The texts read and written in a segment, for searches; repeated texts are held once.

    Args:
        records: the rollouts.
    """

    def __init__(self, records: Iterable[RolloutRecord]) -> None:
        number: dict[str, int] = {}
        self._of_row = [
            {
                number.setdefault(text.lower(), len(number))
                for turn in record.turns
                for text in (turn.read, turn.said or "")
            }
            for record in records
        ]
        self._texts = list(number)

    def search(self, words: str) -> list[int]:
        """Return the positions of the rollouts with a text that holds `words`, in any case."""
        words = words.lower()
        found = {at for at, text in enumerate(self._texts) if words in text}
        return [row for row, texts in enumerate(self._of_row) if not found.isdisjoint(texts)]


def _ties(records: Sequence[RolloutRecord]) -> dict[int, tuple[int, int]]:
    """Return by position how many others of its group a rollout ties with, and whether all tie."""
    found: dict[int, tuple[int, int]] = {}
    for places in groups_of(records).values():
        bucket: dict[int, int] = {}
        anchor, number = float("-inf"), -1
        for at in sorted(places, key=lambda at: records[at].total):
            if records[at].total - anchor > _APART:
                anchor, number = records[at].total, number + 1
            bucket[at] = number
        sizes = Counter(bucket.values())
        dead = int(len(places) > 1 and len(sizes) == 1)
        found |= {at: (sizes[bucket[at]] - 1, dead) for at in places}
    return found


def _row(record: RolloutRecord, tie: int, dead: int) -> dict[str, Any]:
    own = record.own_turns
    last = own[-1].said if own else None
    return {
        "group": record.origin.group,
        "member": record.origin.member,
        "step": record.origin.step,
        "world": record.world,
        "level": record.level,
        "role": record.role,
        "policy": record.origin.policy,
        "index": record.index,
        "fingerprint": record.fingerprint,
        "return": record.total,
        "advantage": record.advantage,
        "stop": record.stop_reason,
        "turns": len(own),
        "malformed": record.malformed,
        "cut_off": record.cut_off,
        "violation": int((record.metrics.get(_violation(record.world)) or 0.0) > 0.0),
        "said_tokens": sum(turn.completion_tokens or 0 for turn in own),
        "tie": tie,
        "dead": dead,
        "said": _SPACES.sub(" ", last or "").strip()[:_SHOWN],
    }


@cache
def _violation(world: str) -> str:
    """Return the metric by which a world reports a broken rule; empty if it is not installed."""
    try:
        return spec(world).violation
    except UnknownWorldError:
        return ""
