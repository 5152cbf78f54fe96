"""Watching a run through its `metrics.jsonl`: progress, rates, and collapse."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
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
    def dead(self) -> bool:
        """Whether the step had nothing to learn from: no spread in any group, or no form left."""
        return self.uniform_rate >= 1.0 or self.malformed_share >= _MALFORMED_SHARE


def read_steps(path: Path) -> list[StepRow]:
    """Return the completed steps of a run in order; a step done again after a resume counts once.

    Args:
        path: the run's `metrics.jsonl`; may be missing, and its last line may be cut off.
    """
    rows: dict[int, StepRow] = {}
    for line in _lines(path):
        metrics = _parse(line)
        if metrics is None or "env/all/reward/total" not in metrics:
            continue
        step = int(metrics.get("step", metrics.get("progress/batch", len(rows))))
        rows[step] = StepRow(
            step=step,
            reward=float(metrics["env/all/reward/total"]),
            uniform_rate=_number(metrics, "env/all/reward_uniform_group_rate"),
            tie_pair_rate=_number(metrics, "env/all/reward_tie_pair_rate"),
            malformed_share=_number(metrics, "env/all/malformed"),
            tokens=_number(metrics, "env/all/total_ob_tokens")
            + _number(metrics, "env/all/total_ac_tokens"),
            seconds=_number(metrics, "time/total"),
            metrics=metrics,
        )
    return [rows[step] for step in sorted(rows)]


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
    return Collapse(since, "all rollouts of every group earn the same: there is no gradient left")


def _lines(path: Path) -> Iterator[str]:
    if path.exists():
        with path.open(encoding="utf-8") as file:
            yield from file


def _parse(line: str) -> Mapping[str, Any] | None:
    """One logged step, or `None` for a line that a killed process left half written."""
    try:
        metrics = json.loads(line)
    except ValueError:
        return None
    return metrics if isinstance(metrics, dict) else None


def _number(metrics: Mapping[str, Any], name: str) -> float:
    value = metrics.get(name, 0.0)
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else 0.0
