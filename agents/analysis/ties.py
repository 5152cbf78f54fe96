"""The group-size study: what groups of each size teach, and the smallest size that is enough.

One set of rollouts serves all sizes: a group of 4 is the first 4 rollouts of a group of 16, and
chances for a size come from all choices of that many rollouts. So sizes differ by size alone.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from tokengym.agents.analysis.evaluate import play_group, well_formed
from tokengym.envs.core.errors import OptionError
from tokengym.envs.core.play import Policy
from tokengym.envs.core.seeding import generator
from tokengym.envs.core.task import Task
from tokengym.envs.core.world import World
from tokengym.envs.tokens.codec import ByteCodec
from tokengym.envs.tokens.episode import Episode
from tokengym.rewards.control import SAFE_RETURN
from tokengym.rewards.estimates import Estimate
from tokengym.rewards.ties import tie_counts

Floats = npt.NDArray[np.float64]

WITHIN = 0.02
"""A size is enough if its share of useful groups is at most this far below the best, relatively."""

FEW = 0.01
"""A rate of tied pairs below this is not worth an explanation."""


_RESAMPLES = 1000


class TieCause(StrEnum):
    """Where ties come from, decided in this order."""

    FEW = "few"
    """Too few pairs tie to ask."""
    FLOOR = "floor"
    """Most tied pairs lie on the safety floor: the reward made them."""
    INTRINSIC = "intrinsic"
    """Most lie above it, or there is no floor: the policy repeats itself, or its different
    replies are worth the same."""


@dataclass(frozen=True)
class SizeRow:
    """What groups of one size are like.

    Attributes:
        size: rollouts of a group.
        useful: chance that a group has an advantage: the share of tokens not spent on dead groups.
        rates: every rate of `TieCounts.intervals`.
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
    """

    codec: str
    tokens_per_rollout: float
    written_per_rollout: float
    seconds: float


@dataclass(frozen=True)
class TieStudy:
    """Ties of one policy on one level.

    Attributes:
        world: id of the world.
        level: the level.
        policy: name of the policy.
        groups: Tasks, each played by the largest size.
        fallen: which rollouts missed the safety floor, by group; `None` where the world has none.
            Others may earn as little, for malformed replies.
        threshold: a reward above it counts as correct.
        mean_reward: mean over all rollouts.
        correct_rate: share of rollouts above the threshold.
        malformed: share of the policy's malformed replies.
        effort: what the rollouts took.
        sizes: one row a size, ascending.
        rewards: every reward, by group.
        recommended_between: the smallest and largest size that a study of as many other Tasks
            would recommend, in 95 % of such studies.
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
    effort: Effort
    sizes: tuple[SizeRow, ...]
    rewards: tuple[tuple[float, ...], ...]
    recommended_between: tuple[int, int]

    @property
    def rollouts_per_second(self) -> float:
        """Rollouts per second of wall time."""
        return sum(map(len, self.rewards)) / self.effort.seconds

    @property
    def tokens_per_second(self) -> float:
        """Tokens read and written per second of wall time, each counted once."""
        return self.rollouts_per_second * self.effort.tokens_per_rollout

    @property
    def kept_for_little(self) -> float:
        """Share of rollouts that kept the safety floor and earn less than `SAFE_RETURN`."""
        little = np.array(self.rewards) < SAFE_RETURN
        return float((little & ~np.array(self.fallen)).mean())

    @property
    def origin(self) -> TieCause:
        """Where the ties of the largest size come from; the floor is checked first."""
        rates = self.sizes[-1].rates
        if rates["reward_tie_pair_rate"].value < FEW:
            return TieCause.FEW
        on_floor = self.fallen is not None and rates["floor_tie_share"].value >= 0.5
        return TieCause.FLOOR if on_floor else TieCause.INTRINSIC

    @property
    def verdict(self) -> str:
        """Where the ties come from, in words, with the figures that show it."""
        rates = {name: rate.value for name, rate in self.sizes[-1].rates.items()}
        ties = f"{rates['reward_tie_pair_rate']:.1%} of the pairs within a group tie"
        if self.malformed:
            ties += f" ({self.malformed:.1%} of the replies were malformed)"
        if self.fallen is None:
            looked = "The world has no safety floor"
        else:
            looked = (
                f"The safety floor first: {rates['floor_mass']:.1%} of the rollouts missed it, "
                f"with {rates['floor_tie_share']:.1%} of all tied pairs; of pairs that kept it "
                f"{rates['interior_tie_pair_rate']:.1%} tie, and {self.kept_for_little:.1%} of "
                "the rollouts kept it and earn as little, for malformed replies"
            )
        meaning = {
            TieCause.FEW: "too few to matter",
            TieCause.FLOOR: "these are the floor's ties, not intrinsic ones",
            TieCause.INTRINSIC: "these ties are intrinsic",
        }
        return f"{looked}. {ties}: {meaning[self.origin]}."

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
        reason = (
            f"{row.useful.value:.1%} of its groups have an advantage, within {WITHIN:.0%} of the "
            f"best of these sizes ({best:.1%})"
        )
        return row.size, f"{reason}; no smaller one comes as close"

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        rows = [
            {
                "size": row.size,
                "useful": row.useful._asdict(),
                **{name: value._asdict() for name, value in row.rates.items()},
            }
            for row in self.sizes
        ]
        size, reason = self.recommended
        return asdict(self) | {
            "sizes": rows,
            "rollouts_per_second": self.rollouts_per_second,
            "tokens_per_second": self.tokens_per_second,
            "origin": str(self.origin),
            "verdict": self.verdict,
            "recommended": size,
            "reason": reason,
        }


def fallen_of(ends: Sequence[Sequence[Mapping[str, float]]]) -> list[list[bool]] | None:
    """Return which rollouts missed the safety floor, from the metrics of their ends, by group."""
    if "safety_floor_mass" not in ends[0][0]:
        return None
    return [[end["safety_floor_mass"] > 0.0 for end in group] for group in ends]


def require_sizes(tasks: Sequence[Task], sizes: Sequence[int]) -> None:
    """Refuse sizes that make no study.

    Raises:
        OptionError: if there is no Task, no size or a size below 2.
    """
    if not tasks or not sizes or min(sizes) < 2:
        raise OptionError(f"a study needs Tasks and sizes from 2 on, got {len(tasks)}, {[*sizes]}")


def tie_study(
    world: World,
    tasks: Sequence[Task],
    policies: Mapping[str, Policy],
    name: str,
    sizes: Sequence[int],
    *,
    threshold: float | None = None,
    seed: int = 0,
) -> TieStudy:
    """Play groups of the largest size with a scripted policy and describe what each size is like.

    Args:
        world: the level; an episode under way in it is dropped.
        tasks: one a group, at least one.
        policies: scripted policies of the world; `null` plays the other roles.
        name: the one that is studied.
        sizes: group sizes, each at least 2.
        threshold: a reward above it counts as correct; the middle of the declared range if `None`.
        seed: seed of the policy's randomness and of the bootstrap.

    Raises:
        OptionError: if there is no Task, no such policy or a size below 2.
    """
    require_sizes(tasks, sizes)
    if name not in policies:
        raise OptionError(f"{world.spec.id} has the baselines {sorted(policies)}, got {name!r}")
    role = world.spec.roles[0]
    speakers = dict.fromkeys(world.spec.roles, policies["null"]) | {role: policies[name]}
    begun = time.perf_counter()
    groups = [play_group(world, task, speakers, max(sizes), seed) for task in tasks]
    seconds = time.perf_counter() - begun
    codec = ByteCodec()
    lengths, written = [], []
    for group in groups:
        episode = Episode(world, group[0].task, codec, roles=(role,))
        for turn, reply in zip(group[0].turns, group[0].replies, strict=False):
            written.append(len(codec.write(reply)) if turn.role == role else 0)
            episode.say(reply)
        lengths.append(len(episode.observation_of(role)))
    formed = well_formed((record for group in groups for record in group), role)
    return study_of(
        world,
        name,
        [[record.returns[role] for record in group] for group in groups],
        sizes,
        fallen=fallen_of([[record.metrics for record in group] for group in groups]),
        malformed=1.0 - float(np.mean(formed)) if formed else 0.0,
        effort=Effort(codec.name, float(np.mean(lengths)), sum(written) / len(groups), seconds),
        threshold=threshold,
        seed=seed,
    )


def study_of(
    world: World,
    policy: str,
    rewards: Sequence[Sequence[float]],
    sizes: Sequence[int],
    *,
    fallen: Sequence[Sequence[bool]] | None,
    malformed: float,
    effort: Effort,
    role: str | None = None,
    threshold: float | None = None,
    seed: int = 0,
) -> TieStudy:
    """Describe what groups of each size are like, from the rewards of groups of the largest.

    Args:
        world: the level that was played.
        policy: who played it.
        rewards: of each group's rollouts, at least `max(sizes)` of them.
        sizes: group sizes, each at least 2.
        fallen: which rollouts missed the safety floor, shaped like `rewards`; `None` where there
            is none.
        malformed: share of malformed replies.
        effort: what the rollouts took.
        role: whose rewards these are; the world's first role if `None`.
        threshold: see `tie_study`.
        seed: seed of the bootstrap.
    """
    rewards_NG = np.asarray(rewards, np.float64)
    declared = world.spec.return_range[world.spec.roles[0] if role is None else role]
    threshold = (declared.low + declared.high) / 2.0 if threshold is None else threshold
    return TieStudy(
        world=world.spec.id,
        level=world.level,
        policy=policy,
        groups=len(rewards_NG),
        fallen=None if fallen is None else tuple(map(tuple, fallen)),
        threshold=threshold,
        mean_reward=float(rewards_NG.mean()),
        correct_rate=float((rewards_NG > threshold).mean()),
        malformed=malformed,
        effort=effort,
        sizes=tuple(size_row(rewards_NG, size, fallen, seed) for size in sorted(set(sizes))),
        rewards=tuple(tuple(group) for group in rewards_NG.tolist()),
        recommended_between=_recommended_between(rewards_NG, sorted(set(sizes)), seed),
    )


def size_row(
    rewards_NG: Floats, size: int, fallen: Sequence[Sequence[bool]] | None, seed: int
) -> SizeRow:
    """Return what groups of `size` are like, from groups of at least as many rewards."""
    rates = tie_counts(rewards_NG[:, :size]).intervals(generator("ties", seed))
    if fallen is not None:
        # Moved below all others, as those that kept the floor may earn as little.
        least = float(rewards_NG.min())
        down_NG = np.where(fallen, rewards_NG - np.ptp(rewards_NG) - 1.0, rewards_NG)
        parted = tie_counts(down_NG[:, :size], floor=least).intervals(generator("ties", seed))
        rates |= {
            name: rate for name, rate in parted.items() if name.startswith(("floor", "interior"))
        }
    # The chance for a size has less noise from all choices of the rollouts than from the first.
    dead = tie_counts(rewards_NG).intervals(generator("ties", seed), sizes=(size,))[
        f"zero_advantage_probability_{size}"
    ]
    useful = Estimate(1.0 - dead.value, 1.0 - dead.high, 1.0 - dead.low)
    return SizeRow(size, useful, rates)


def _first_enough(useful_S: Floats) -> npt.NDArray[np.int64]:
    """Return the position of the smallest size that is enough, of shares of shape (..., S)."""
    enough = useful_S >= (1.0 - WITHIN) * useful_S.max(axis=-1, keepdims=True)
    first: npt.NDArray[np.int64] = np.argmax(enough, axis=-1)
    return first


def _recommended_between(rewards_NG: Floats, sizes: Sequence[int], seed: int) -> tuple[int, int]:
    """Return the middle 95 % of the sizes recommended by resampled groups."""
    useful_NS = 1.0 - tie_counts(rewards_NG).dead_shares(sizes)
    count = len(useful_NS)
    times_RN = generator("recommended", seed).multinomial(
        count, np.full(count, 1.0 / count), _RESAMPLES
    )
    chosen_R = np.asarray(sizes)[_first_enough(times_RN @ useful_NS / count)]
    low, high = np.quantile(chosen_R, (0.025, 0.975), method="inverted_cdf")
    return int(low), int(high)
