"""Watching a run through its `metrics.jsonl`: progress, rates, and collapse."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

COLLAPSE_STEPS = 5
"""So many steps in a row without signal are taken for the absorbing state."""

_MALFORMED_SHARE = 0.95


class StepRow(NamedTuple):
    """One completed step.

    Attributes:
        step: the trainer's iteration, from 0.
        reward: mean return of the step's rollouts.
        uniform_rate: share of groups whose returns all tie.
        tie_pair_rate: share of pairs within groups that tie.
        malformed_share: share of malformed replies.
        tokens: tokens read and sampled by the rollouts.
        seconds: how long the step took.
        metrics: everything the trainer logged.
    """

    step: int
    reward: float
    uniform_rate: float
    tie_pair_rate: float
    malformed_share: float
    tokens: float
    seconds: float
    metrics: Mapping[str, Any]

    @property
    def nll(self) -> float | None:
        """Mean negative log-likelihood of demonstrated tokens; `None` unless the step imitated."""
        found = self.metrics.get("train/nll")
        return None if found is None else float(found)

    @property
    def dead(self) -> bool:
        """Whether the step had nothing to learn from: no spread in any group, or no form left.

        Our own loop counts how many groups were live, which depends on what is compared: turns may
        differ where returns tie.
        """
        live = self.metrics.get("groups/live")
        tied = self.uniform_rate >= 1.0 if live is None else live == 0
        return tied or self.malformed_share >= _MALFORMED_SHARE


class StepLog:
    """The completed steps in a run's `metrics.jsonl`, read as the file grows.

    A step done again after a resume counts once, the last time. A line that a killed process left
    half written is passed over.

    Args:
        path: the file; it need not exist yet.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._position = 0
        self._rows: dict[int, StepRow] = {}

    @property
    def rows(self) -> list[StepRow]:
        """Completed steps read so far, in order."""
        return [self._rows[step] for step in sorted(self._rows)]

    def poll(self) -> list[StepRow]:
        """Read what is new and return its steps."""
        if not self._path.exists():
            return []
        with self._path.open("rb") as file:
            file.seek(self._position)
            new = file.read()
        complete = new.rpartition(b"\n")[0]
        if not complete:
            return []
        self._position += len(complete) + 1
        found = [row for line in complete.split(b"\n") if (row := _row(line)) is not None]
        self._rows.update((row.step, row) for row in found)
        return found


@dataclass(frozen=True)
class Collapse:
    """A run that has lost its signal for good.

    Attributes:
        since: the first dead step.
        reason: what was lost, in words.
    """

    since: int
    reason: str


def find_collapse(rows: Sequence[StepRow], patience: int = COLLAPSE_STEPS) -> Collapse | None:
    """Return the collapse the last `patience` steps amount to, or `None`."""
    last = rows[-patience:]
    if len(last) < patience or not all(row.dead for row in last):
        return None
    since = rows[-1].step
    for row in reversed(rows):
        if not row.dead:
            break
        since = row.step
    if last[-1].malformed_share >= _MALFORMED_SHARE:
        share = f"{last[-1].malformed_share:.0%}"
        return Collapse(since, f"{share} of the replies are malformed: the form is lost")
    return Collapse(since, "the rollouts of every group earn the same: there is no gradient left")


def _row(line: bytes) -> StepRow | None:
    """Read one line; `None` if it is no completed step of the trainer."""
    try:
        metrics = json.loads(line)
    except ValueError:
        return None
    if not isinstance(metrics, dict) or "step" not in metrics:
        return None
    if not {"env/all/reward/total", "train/nll"} & set(metrics):
        return None
    read = _number(metrics, "env/all/total_ob_tokens")
    return StepRow(
        step=int(metrics["step"]),
        reward=_number(metrics, "env/all/reward/total"),
        uniform_rate=_number(metrics, "env/all/reward_uniform_group_rate"),
        tie_pair_rate=_number(metrics, "env/all/reward_tie_pair_rate"),
        malformed_share=_number(metrics, "env/all/malformed"),
        tokens=read
        + _number(metrics, "env/all/total_ac_tokens")
        + _number(metrics, "train/tokens"),
        seconds=_number(metrics, "time/total"),
        metrics=metrics,
    )


def _number(metrics: Mapping[str, Any], name: str) -> float:
    value = metrics.get(name, 0.0)
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else 0.0
