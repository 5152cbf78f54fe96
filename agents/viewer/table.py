"""Rollouts as the rows of a table: a column for everything a page filters or sorts by."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from tokengym.agents.rollouts import RolloutRecord
from tokengym.envs.core.display import shorten
from tokengym.envs.core.errors import UnknownWorldError
from tokengym.envs.registry import spec

Group = tuple[str, str, str, int]
"""World, level, role and number within its segment."""

_SHOWN = 120
_QUESTION = 200
_NUMBER = re.compile(r"[0-9][0-9.]*")
_SPACES = re.compile(r"\s+")
_APART = 1e-6
"""Returns further apart do not tie, as `tie_statistics` counts."""


def table_of(records: Sequence[RolloutRecord]) -> dict[str, list[Any]]:
    """Return one segment's rollouts by column, in the order of the records.

    `step` is `null` outside training; `malformed` and `cut_off` count replies; `violation` is 0 or
    1; `earned` is the expected return where it is known; `label` is what a forecast was scored
    against; `question` is what the role read first, without what most groups read, on the first row
    of each group; `said` is the beginning of the last reply; `tie` is how many other members of the
    group earned the same, `dead` 1 if all did.
    """
    ties = _ties(records)
    table = {name: [read(record) for record in records] for name, read in _COLUMNS.items()}
    table["question"] = _questions(records)
    table["tie"], table["dead"] = ([ties[at][k] for at in range(len(records))] for k in (0, 1))
    return table


def groups_of(records: Iterable[RolloutRecord]) -> Mapping[Group, list[int]]:
    """Return the positions of the members of each group."""
    members: dict[Group, list[int]] = defaultdict(list)
    for at, record in enumerate(records):
        members[record.world, record.level, record.role, record.origin.group].append(at)
    return members


class Texts:
    """The texts read and written in a segment, for searches; repeated texts are kept once.

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
        matches = {at for at, text in enumerate(self._texts) if words in text}
        return [row for row, texts in enumerate(self._of_row) if not matches.isdisjoint(texts)]


def _ties(records: Sequence[RolloutRecord]) -> dict[int, tuple[int, int]]:
    """Return by position how many others of its group a rollout ties with, and whether all tie."""
    ties: dict[int, tuple[int, int]] = {}
    for places in groups_of(records).values():
        bucket: dict[int, int] = {}
        anchor, number = float("-inf"), -1
        for at in sorted(places, key=lambda at: records[at].total):
            if records[at].total - anchor > _APART:
                anchor, number = records[at].total, number + 1
            bucket[at] = number
        sizes = Counter(bucket.values())
        dead = int(len(places) > 1 and len(sizes) == 1)
        ties |= {at: (sizes[bucket[at]] - 1, dead) for at in places}
    return ties


@cache
def _named(world: str) -> tuple[str, str]:
    """Return the metrics of a broken rule and of a forecast's label; empty where there are none."""
    try:
        known = spec(world)
    except UnknownWorldError:  # it is not installed
        return "", ""
    return known.violation, known.calibration[0] if known.calibration else ""


def _questions(records: Sequence[RolloutRecord]) -> list[str]:
    """Return by position the end of what sets a Task apart from others; see `table_of`."""
    firsts = [places[0] for places in groups_of(records).values()]
    lines = {at: _first_read(records[at]).splitlines() for at in firsts}
    # Lines such as the form of a reply may differ in their numbers alone; so may questions.
    forms = {at: [_NUMBER.sub("0", line) for line in of_group] for at, of_group in lines.items()}
    counted = [
        (kind, Counter(line for each in kind.values() for line in {*each}))
        for kind in (forms, lines)
    ]
    questions = [""] * len(records)
    for at, read in lines.items():
        kept: list[str] = []
        for kind, seen in counted:
            pairs = zip(read, kind[at], strict=True)
            kept = kept or [line for line, same in pairs if line and 2 * seen[same] <= len(firsts)]
        questions[at] = _end_of(_SPACES.sub(" ", " ".join(kept or read)).strip())
    return questions


def _end_of(text: str) -> str:
    """Return whole words from the end of `text`; a `…` stands for the rest."""
    if len(text) <= _QUESTION:
        return text
    end = text[-_QUESTION + 1 :]
    return f"…{end[max(end.find(' '), 0) :]}"


def _first_read(record: RolloutRecord) -> str:
    return next((turn.read for turn in record.turns if turn.role == record.role), "")


def _last_reply(record: RolloutRecord) -> str:
    """Return the beginning of the last reply, on one line."""
    turns = record.own_turns
    said = turns[-1].said if turns else None
    return shorten(_SPACES.sub(" ", said or "").strip(), _SHOWN)


_COLUMNS: Mapping[str, Callable[[RolloutRecord], Any]] = {
    "group": lambda record: record.origin.group,
    "member": lambda record: record.origin.member,
    "step": lambda record: record.origin.step,
    "world": lambda record: record.world,
    "level": lambda record: record.level,
    "role": lambda record: record.role,
    "policy": lambda record: record.origin.policy,
    "index": lambda record: record.index,
    "fingerprint": lambda record: record.fingerprint,
    "return": lambda record: record.total,
    "advantage": lambda record: record.advantage,
    "stop": lambda record: record.stop_reason,
    "turns": lambda record: len(record.own_turns),
    "malformed": lambda record: record.malformed,
    "cut_off": lambda record: record.cut_off,
    "violation": lambda record: int((record.metrics.get(_named(record.world)[0]) or 0.0) > 0.0),
    "earned": lambda record: record.earned,
    "label": lambda record: record.metrics.get(_named(record.world)[1]),
    "said_tokens": lambda record: sum(turn.completion_tokens or 0 for turn in record.own_turns),
    "said": _last_reply,
}
"""Value of a column for a rollout by itself; `tie` and `dead` compare it with its group."""
