"""The group-size study: what groups of each size teach, and the smallest size that is enough.

One set of rollouts serves all sizes: a group of 4 is the first 4 rollouts of a group of 16, and
chances for a size come from all choices of that many rollouts. So sizes differ by size alone.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tokengym.agents.evaluate import play_group
from tokengym.envs.catalogue import Policy
from tokengym.envs.core.errors import OptionError
from tokengym.envs.core.seeding import generator
from tokengym.envs.core.task import Task
from tokengym.envs.core.world import World
from tokengym.envs.tokens.episode import Episode
from tokengym.rewards.control import FLOOR
from tokengym.rewards.ties import Interval, tie_counts

WITHIN = 0.02
"""A size is enough if its share of useful groups is at most this far below the best, relatively."""


@dataclass(frozen=True)
class SizeRow:
    """What groups of one size are like.

    Attributes:
        size: rollouts of a group.
        useful: chance that a group has an advantage: the share of tokens not spent on dead groups.
        rates: every rate of `TieCounts.intervals`.
    """

    size: int
    useful: Interval
    rates: Mapping[str, Interval]


@dataclass(frozen=True)
class TieStudy:
    """Ties of one policy on one level.

    Attributes:
        world: id of the world.
        level: the level.
        policy: name of the policy.
        groups: Tasks, each played by the largest size.
        floor: threshold of the floor; `None` where the world has none.
        threshold: a reward above it counts as correct.
        mean_reward: mean over all rollouts.
        correct_rate: share of rollouts above the threshold.
        rollouts_per_second: rollouts played per second of one process.
        bytes_per_rollout: tokens of the byte codec read and written, mean over the first
            rollout of each group.
        sizes: one row a size, ascending.
        rewards: every reward, by group.
    """

    world: str
    level: str
    policy: str
    groups: int
    floor: float | None
    threshold: float
    mean_reward: float
    correct_rate: float
    rollouts_per_second: float
    bytes_per_rollout: float
    sizes: tuple[SizeRow, ...]
    rewards: tuple[tuple[float, ...], ...]

    @property
    def recommended(self) -> tuple[int, str]:
        """The smallest size that is enough, and why.

        A token is well spent if its group has an advantage, and all groups of a size cost as much:
        so the share of useful groups is the share of well-spent tokens, and of sizes that spend
        them as well, the smallest sees the most prompts.
        """
        best = max(row.useful.value for row in self.sizes)
        row = next(row for row in self.sizes if row.useful.value >= (1.0 - WITHIN) * best)
        if not best:
            return row.size, "no size helps: every group ties"
        reason = (
            f"{row.useful.value:.1%} of its groups have an advantage, within {WITHIN:.0%} of the "
            f"best of these sizes ({best:.1%})"
        )
        return row.size, f"{reason}; no smaller one comes so near"

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
        return asdict(self) | {"sizes": rows, "recommended": size, "reason": reason}


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
    """Play groups of the largest size and tell what each size is like.

    Args:
        world: the level; an episode under way in it is dropped.
        tasks: one a group, at least one.
        policies: scripted policies of the world; `null` speaks for the other roles.
        name: the one that is studied.
        sizes: group sizes, each at least 2.
        threshold: a reward above it counts as correct; the middle of the declared range if `None`.
        seed: seed of the policy's randomness and of the bootstrap.

    Raises:
        OptionError: if there is no Task, no such policy or a size below 2.
    """
    if not tasks or not sizes or min(sizes) < 2:
        raise OptionError(f"a study needs Tasks and sizes from 2 on, got {len(tasks)}, {[*sizes]}")
    if name not in policies:
        raise OptionError(f"{world.spec.id} has the baselines {sorted(policies)}, got {name!r}")
    role = world.spec.roles[0]
    speakers = dict.fromkeys(world.spec.roles, policies["null"]) | {role: policies[name]}
    begun = time.perf_counter()
    groups = [play_group(world, task, speakers, max(sizes), seed) for task in tasks]
    seconds = time.perf_counter() - begun
    rewards_NG = np.array([[record.returns[role] for record in group] for group in groups])
    floored = any("safety_floor_mass" in group[0].metrics for group in groups)
    floor = FLOOR if floored else None
    declared = world.spec.return_range[role]
    threshold = (declared.low + declared.high) / 2.0 if threshold is None else threshold
    lengths = []
    for group in groups:
        episode = Episode(world, group[0].task, roles=(role,))
        for reply in group[0].replies:
            episode.say(reply)
        lengths.append(len(episode.observation_of(role)))
    return TieStudy(
        world=world.spec.id,
        level=world.level,
        policy=name,
        groups=len(tasks),
        floor=floor,
        threshold=threshold,
        mean_reward=float(rewards_NG.mean()),
        correct_rate=float((rewards_NG > threshold).mean()),
        rollouts_per_second=rewards_NG.size / seconds,
        bytes_per_rollout=float(np.mean(lengths)),
        sizes=tuple(_row(rewards_NG, size, floor, seed) for size in sorted(set(sizes))),
        rewards=tuple(tuple(group) for group in rewards_NG.tolist()),
    )


def _row(
    rewards_NG: np.ndarray[Any, np.dtype[Any]], size: int, floor: float | None, seed: int
) -> SizeRow:
    rates = tie_counts(rewards_NG[:, :size], floor=floor).intervals(generator("ties", seed))
    # The chance for a size has less noise from all choices of the rollouts than from the first.
    dead = tie_counts(rewards_NG).intervals(generator("ties", seed), sizes=(size,))[
        f"zero_advantage_probability_{size}"
    ]
    useful = Interval(1.0 - dead.value, 1.0 - dead.high, 1.0 - dead.low)
    return SizeRow(size, useful, rates)


def draw(study: TieStudy, path: Path) -> None:
    """Write the study as a picture: rates by size, and where the rewards lie."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    sizes = [row.size for row in study.sizes]
    for label, found in {
        "groups without advantage": [
            Interval(1 - row.useful.value, 1 - row.useful.high, 1 - row.useful.low)
            for row in study.sizes
        ],
        "tied pairs": [row.rates["reward_tie_pair_rate"] for row in study.sizes],
        "groups with any tie": [row.rates["reward_tie_group_rate"] for row in study.sizes],
    }.items():
        middle = [interval.value for interval in found]
        below = [max(interval.value - interval.low, 0.0) for interval in found]
        above = [max(interval.high - interval.value, 0.0) for interval in found]
        left.errorbar(sizes, middle, yerr=[below, above], marker="o", capsize=3, label=label)
    left.set(xlabel="group size", ylabel="rate", ylim=(-0.02, 1.02), xticks=sizes)
    right.hist(np.ravel(study.rewards), bins=40)
    if study.floor is not None:
        right.axvline(study.floor, color="black", linestyle="--", label="safety floor")
    right.set(xlabel="reward", ylabel="rollouts")
    figure.suptitle(f"{study.world} {study.level}, {study.policy}, {study.groups} groups")
    figure.legend(loc="outside lower center", ncols=4)
    figure.savefig(path, dpi=120)
