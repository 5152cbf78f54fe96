"""The group-size study: what groups of each size teach, and the smallest size that is enough.

One set of rollouts serves all sizes: a group of 4 is the first 4 rollouts of a group of 16, and
chances for a size come from all choices of that many rollouts. So sizes differ by size alone.
Rollouts may be played for it or recorded by any trainer; for sizes larger than the recorded groups
chances are predicted, see `TieCounts.dead_group_rates`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np

from tokengym.agents.evaluation.tie_groups import RewardGroup
from tokengym.agents.settings import plain
from tokengym.envs.core.errors import OptionError
from tokengym.envs.core.seeding import generator
from tokengym.envs.core.world import World
from tokengym.rewards.arrays import Floats, Ints
from tokengym.rewards.control import SAFE_RETURN
from tokengym.rewards.estimates import Estimate
from tokengym.rewards.ties import TOLERANCE, tie_counts

WITHIN = 0.02
"""A size is enough if its share of useful groups is at most this far below the best, relatively."""

FEW = 0.01
"""A rate of tied pairs below this is not worth an explanation."""

_SHORT = 0.1
"""Share of the groups that may have fewer rollouts than the study counts, and are left out."""


class TieCause(StrEnum):
    """Where ties come from, decided in this order."""

    FEW = "few"
    """Too few pairs tie to ask."""
    FLOOR = "floor"
    """Most tied pairs lie on the safety floor: the reward made them."""
    INTRINSIC = "intrinsic"
    """Most lie above it, or there is no floor: the policy repeats itself, or its different
    replies are worth the same."""


_MEANING = {
    TieCause.FEW: "too few to matter",
    TieCause.FLOOR: "these are the floor's ties, not intrinsic ones",
    TieCause.INTRINSIC: "these ties are intrinsic",
}


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
    """What groups of one size are like.

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
class Effort:
    """What the rollouts took.

    Attributes:
        codec: what the tokens are of.
        tokens_per_rollout: tokens read and written in an episode, each counted once; a mean.
        written_per_rollout: those of them that the policy wrote; a mean.
        seconds: of all rollouts together.
        rollouts: how many there were.
    """

    codec: str
    tokens_per_rollout: float
    written_per_rollout: float
    seconds: float
    rollouts: int

    def __str__(self) -> str:
        """Show speed and tokens, each counted once."""
        speed = self.rollouts / self.seconds
        return (
            f"{speed:,.1f} rollouts/s, {speed * self.tokens_per_rollout:,.0f} tokens/s "
            f"({self.codec}): {self.tokens_per_rollout:,.1f} tokens a rollout, "
            f"{self.written_per_rollout:,.1f} of them written by the policy."
        )


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
        effort: what the rollouts took; `None` where that was not recorded.
        sizes: one row a size, ascending.
        rewards: every reward, by group.
        recommended_between: the smallest and largest size that a study of as many other Tasks
            would recommend, in 95 % of such studies.
        tasks: the Task of each group: intervals are over Tasks.
        left_out: recorded groups that were not counted, as most have more rollouts.
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
    effort: Effort | None
    sizes: tuple[SizeRow, ...]
    rewards: tuple[tuple[float, ...], ...]
    recommended_between: tuple[int, int]
    tasks: tuple[str, ...] = ()
    left_out: int = 0

    @property
    def title(self) -> str:
        """What was studied."""
        where = f"{self.world} {self.level}".strip()
        return f"{where}, {self.policy}, {self.groups} groups"

    @property
    def seen(self) -> SizeRow:
        """The largest size that was played."""
        return next(row for row in reversed(self.sizes) if row.rates)

    @property
    def reward_groups(self) -> list[RewardGroup]:
        """The groups that were counted, by number."""
        named = zip(self.tasks, self.rewards, strict=True)
        return [RewardGroup(str(at), task, [*group]) for at, (task, group) in enumerate(named)]

    @property
    def kept_for_little(self) -> float:
        """Share of rollouts that kept the safety floor and earn less than `SAFE_RETURN`."""
        little = np.array(self.rewards) < SAFE_RETURN
        return float((little & ~np.array(self.fallen)).mean())

    @property
    def origin(self) -> TieCause:
        """Where the ties of the largest size come from; the floor is checked first."""
        rates = self.seen.rates
        if rates["reward_tie_pair_rate"].value < FEW:
            return TieCause.FEW
        on_floor = self.fallen is not None and rates["floor_tie_share"].value >= 0.5
        return TieCause.FLOOR if on_floor else TieCause.INTRINSIC

    @property
    def verdict(self) -> str:
        """Where the ties come from, in words, with the figures that show it."""
        rates = {name: rate.value for name, rate in self.seen.rates.items()}
        ties = f"{rates['reward_tie_pair_rate']:.1%} of the pairs within a group tie"
        ties += f" ({self.malformed:.1%} of the replies were malformed)" * bool(self.malformed)
        looked = "There is no safety floor"
        if self.fallen is not None:
            looked = (
                f"The safety floor first: {rates['floor_mass']:.1%} of the rollouts missed it, "
                f"with {rates['floor_tie_share']:.1%} of all tied pairs; of pairs that kept it "
                f"{rates['interior_tie_pair_rate']:.1%} tie, and {self.kept_for_little:.1%} of "
                "the rollouts kept it and earn as little, for malformed replies"
            )
        return f"{looked}. {ties}: {_MEANING[self.origin]}."

    @property
    def recommended(self) -> tuple[int, str]:
        """The smallest size that is enough, and why.

        A token is well spent if its group has an advantage, and all groups of a size cost as much:
        so the share of useful groups is the share of well-spent tokens, and of sizes that spend
        them as well, the smallest sees the most prompts.
        """
        useful = np.array([row.useful.value for row in self.sizes])
        best, row = float(useful.max()), self.sizes[int(_first_enough(useful))]
        if not best:
            return row.size, "no size helps: every group ties"
        return row.size, (
            f"{row.useful.value:.1%} of its groups have an advantage, within {WITHIN:.0%} of the "
            f"best of these sizes ({best:.1%}); no smaller one comes as close"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        size, reason = self.recommended
        rows = [{"size": row.size, "useful": row.useful, **row.rates} for row in self.sizes]
        found: dict[str, Any] = plain(vars(self) | {"sizes": rows})
        said = {"origin": str(self.origin), "verdict": self.verdict, "reason": reason}
        return found | said | {"recommended": size}


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
    effort: Effort | None = None,
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
        effort: what the rollouts took, if it is known.
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
    dead, dead_RS = tie_counts(counted, tolerance, clusters=of_task).dead_group_rates(
        rows, generator("ties", seed)
    )
    chosen_R = np.asarray(rows)[_first_enough(1.0 - dead_RS)]
    likely = np.quantile(chosen_R, (0.025, 0.975), method="inverted_cdf")
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
        effort=effort,
        sizes=tuple(map(row, rows, dead)),
        rewards=tuple(tuple(map(float, group)) for group in counted),
        recommended_between=(int(likely[0]), int(likely[1])),
        tasks=of_task,
        left_out=len(rewards) - len(counted),
    )


def _first_enough(useful_S: Floats) -> Ints:
    """Return the position of the smallest size that is enough, of shares of shape (..., S)."""
    enough = useful_S >= (1.0 - WITHIN) * useful_S.max(axis=-1, keepdims=True)
    first: Ints = np.argmax(enough, axis=-1)
    return first
