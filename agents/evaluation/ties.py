"""The group-size study: how often groups of each size tie.

One set of rollouts serves all sizes: a group of 4 is the first 4 rollouts of a group of 16, and
chances for a size come from all choices of that many rollouts. So sizes differ by size alone.
Rollouts may be played for it or recorded by any trainer; for sizes larger than the recorded groups
chances are predicted, see `TieCounts.dead_group_rates`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tokengym.agents.settings import plain
from tokengym.envs.core.errors import OptionError
from tokengym.envs.core.seeding import generator
from tokengym.envs.core.world import World
from tokengym.rewards.arrays import Floats
from tokengym.rewards.estimates import Estimate
from tokengym.rewards.ties import TOLERANCE, tie_counts

if TYPE_CHECKING:
    from tokengym.agents.evaluation.first_play import FirstPlay

_SHORT = 0.1
"""Share of the groups that may have fewer rollouts than the study counts, and are left out."""


class TieReading(NamedTuple):
    """How a study reads rewards.

    Attributes:
        threshold: a reward above it counts as correct; if `None` the middle of the declared range,
            of recorded rollouts that of the rewards.
        tolerance: distance within which rewards count as equal.
        seed: of the bootstrap, and of a scripted policy's randomness.
    """

    threshold: float | None = None
    tolerance: float = TOLERANCE
    seed: int = 0


USUAL_READING = TieReading()


@dataclass(frozen=True)
class SizeRow:
    """Ties among groups of one size.

    Attributes:
        size: rollouts of a group.
        useful: chance that a group has an advantage: the share of tokens not spent on dead groups.
        rates: every rate of `TieCounts.intervals`; none where the groups are smaller, and what is
            useful is predicted.
    """

    size: int
    useful: Estimate
    rates: Mapping[str, Estimate]


@dataclass(frozen=True)
class TieStudy:
    """Ties of one policy on one level.

    Attributes:
        world: id of the world, or the file or folder of recorded rollouts.
        level: the level; empty for recorded rollouts.
        policy: name of the policy.
        groups: how many were counted, each a Task played by the largest size, or recorded.
        fallen: which rollouts missed the safety floor, by group; `None` where the world has none.
            Others may earn as little, for malformed replies.
        threshold: a reward above it counts as correct.
        mean_reward: mean over all rollouts.
        correct_rate: share of rollouts above the threshold.
        malformed: share of the policy's malformed replies.
        sizes: one row a size, ascending.
        rewards: every reward, by group.
        tasks: the Task of each group: intervals are over Tasks.
        left_out: recorded groups that were not counted, as most have more rollouts.
        first: what a model's groups recommend for its training; `None` of scripts and records.
    """

    world: str
    level: str
    policy: str
    groups: int
    fallen: tuple[tuple[bool, ...], ...] | None
    threshold: float
    mean_reward: float
    correct_rate: float
    malformed: float
    sizes: tuple[SizeRow, ...]
    rewards: tuple[tuple[float, ...], ...]
    tasks: tuple[str, ...] = ()
    left_out: int = 0
    first: "FirstPlay | None" = None

    @property
    def title(self) -> str:
        """World, level and policy of the study."""
        where = f"{self.world} {self.level}".strip()
        return f"{where}, {self.policy}, {self.groups} groups"

    @property
    def seen(self) -> SizeRow:
        """The largest size that was played."""
        return next(row for row in reversed(self.sizes) if row.rates)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        rows = [{"size": row.size, "useful": row.useful, **row.rates} for row in self.sizes]
        values: dict[str, Any] = plain(vars(self) | {"sizes": rows})
        return values


def fallen_of(ends: Sequence[Sequence[Mapping[str, float | None]]]) -> list[list[bool]] | None:
    """Return which rollouts missed the safety floor, from the metrics of their ends, by group."""
    if "safety_floor_mass" not in ends[0][0]:
        return None
    return [[(end["safety_floor_mass"] or 0.0) > 0.0 for end in group] for group in ends]


def require_sizes(groups: Sequence[Any], sizes: Sequence[int]) -> None:
    """Refuse sizes that make no study of Tasks or groups.

    Raises:
        OptionError: if there is no group, no size or a size below 2.
    """
    if not groups or not sizes or min(sizes) < 2:
        raise OptionError(
            f"a study needs groups and sizes above 1, got {len(groups)} and {[*sizes]}"
        )


def study_of(
    played: World | str,
    policy: str,
    rewards: Sequence[Sequence[float]],
    sizes: Sequence[int],
    reading: TieReading = USUAL_READING,
    *,
    tasks: Sequence[str] = (),
    fallen: Sequence[Sequence[bool]] | None = None,
    malformed: float = 0.0,
    role: str | None = None,
) -> TieStudy:
    """Describe what groups of each size are like, from the rewards of any groups.

    Args:
        played: the level, or the name of recorded rollouts.
        policy: who played.
        rewards: of each group's rollouts, of a group at least two. Where groups are of several
            sizes, those count that nine in ten have, and smaller ones are left out.
        sizes: group sizes, each at least 2; the size of the groups is one of the rows too.
        reading: how the rewards are read.
        tasks: the Task of each group; each has its own if empty.
        fallen: which rollouts missed the safety floor, shaped like `rewards`; `None` where there
            is none.
        malformed: share of malformed replies.
        role: whose rewards these are; the world's first role if `None`.

    Raises:
        OptionError: if there is no group, or groups of two are to tell of larger ones.
    """
    require_sizes(rewards, sizes)
    size = int(np.quantile([*map(len, rewards)], _SHORT, method="lower"))
    if size < min(3, max(sizes)):
        raise OptionError(f"groups of {size} rollouts cannot predict groups of {max(sizes)}")
    tasks = tasks or [*map(str, range(len(rewards)))]
    kept = [(task, group) for task, group in zip(tasks, rewards, strict=True) if len(group) >= size]
    of_task, counted = zip(*kept, strict=True)
    rewards_R = np.concatenate(counted)
    if isinstance(played, str):
        low, high, world, level = rewards_R.min(), rewards_R.max(), played, ""
    else:
        declared = played.spec.return_range[role or played.spec.roles[0]]
        low, high = declared.low, declared.high
        world, level = played.spec.id, played.level
    threshold, tolerance, seed = reading
    threshold = float(low + high) / 2.0 if threshold is None else threshold
    rows = sorted({*sizes, size})
    dead = tie_counts(counted, tolerance, clusters=of_task).dead_group_rates(
        rows, generator("ties", seed)
    )
    cut_NG = np.array([group[:size] for group in counted])

    def rates(rewards_NG: Floats, floor: float | None = None) -> dict[str, Estimate]:
        counts = tie_counts(rewards_NG, tolerance, floor=floor, clusters=of_task)
        return counts.intervals(generator("ties", seed))

    def row(of: int, rate: Estimate) -> SizeRow:
        if of > size:
            return SizeRow(of, rate.rest, {})
        found = rates(cut_NG[:, :of])
        if fallen is not None:
            # Moved below all others, as those that kept the floor may earn as little.
            down_NG = np.where(fallen, cut_NG - np.ptp(cut_NG) - 1.0, cut_NG)[:, :of]
            parted = rates(down_NG, float(cut_NG.min()))
            found |= {name: parted[name] for name in parted if name.startswith(("floor", "inter"))}
        return SizeRow(of, rate.rest, found)

    return TieStudy(
        world=world,
        level=level,
        policy=policy,
        groups=len(counted),
        fallen=None if fallen is None else tuple(map(tuple, fallen)),
        threshold=threshold,
        mean_reward=float(rewards_R.mean()),
        correct_rate=float((rewards_R > threshold).mean()),
        malformed=malformed,
        sizes=tuple(map(row, rows, dead)),
        rewards=tuple(tuple(map(float, group)) for group in counted),
        tasks=of_task,
        left_out=len(rewards) - len(counted),
    )
