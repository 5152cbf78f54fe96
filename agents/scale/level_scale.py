"""The scale of a level: returns of named policies, and skill.

Skill is 0 for the best policy that ignores the Task and 1 for the oracle. `Scale` has both ends on
given Tasks, so that skill is paired by Task. The means of all named policies on the levels we ship
are in `scales.json`, which `python -m benchmarks.level_scales` makes; any other level, option or
data is measured on demand.
The table also names the input-independent baseline at skill 0, once for all who measure skill.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from math import nan
from pathlib import Path
from statistics import fmean
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from tokengym.agents.execution.executors import IN_PROCESS, Executor
from tokengym.envs.core.ladder import Ladder
from tokengym.envs.core.optimum import Optimum
from tokengym.envs.core.play import PlayedEpisode, Policy, play
from tokengym.envs.core.seeding import generator
from tokengym.envs.core.spec import Reachable, WorldSpec
from tokengym.envs.core.task import Task, canonical_json
from tokengym.envs.core.turn import expected_return
from tokengym.envs.core.world import World
from tokengym.envs.registry import baselines, import_object, scripted_opponent
from tokengym.rewards.estimates import Estimate, mean_estimate
from tokengym.rewards.skill import Yardstick

FILE = Path(__file__).with_name("scales.json")
"""The scales of the levels we ship."""
Unit = Literal["expected", "realised"]


class Earned(NamedTuple):
    """Returns of a policy on each of T Tasks.

    Attributes:
        realised_T: as it was paid.
        expected_T: what its replies earn on average over outcomes; `None` where that is unknown.
        values_T: in the unit of the level's ladder; empty where it has none.
        broken_T: whether it broke a rule of the world's, 0 or 1; empty where there is none.
    """

    realised_T: tuple[float, ...]
    expected_T: tuple[float, ...] | None
    values_T: tuple[float, ...] = ()
    broken_T: tuple[float, ...] = ()

    @classmethod
    def of(
        cls,
        ends: Iterable[tuple[float, Mapping[str, float | None]]],
        role: str,
        ladder: Ladder | None = None,
    ) -> Self:
        """Return them from the return and the last metrics of each episode."""
        paid, metrics = zip(*ends, strict=True)
        means = [end.get(expected_return(role)) for end in metrics]
        known = tuple(mean for mean in means if mean is not None)
        values = [] if ladder is None else map(partial(ladder.value, role=role), paid, metrics)
        return cls(tuple(paid), known if len(known) == len(means) else None, tuple(values))

    @classmethod
    def of_played(cls, episodes: Iterable[PlayedEpisode], role: str) -> Self:
        """Return those of scripted episodes."""
        return cls.of(((each.returns[role], each.metrics) for each in episodes), role)

    def first(self, count: int) -> Self:
        """Return what it earns on the first Tasks alone."""
        expected_T = None if self.expected_T is None else self.expected_T[:count]
        return self._replace(
            realised_T=self.realised_T[:count],
            expected_T=expected_T,
            values_T=self.values_T[:count],
        )

    @property
    def used_T(self) -> tuple[float, ...]:
        """Expected returns where they are known, else as they were paid."""
        return self.realised_T if self.expected_T is None else self.expected_T


class Ends(NamedTuple):
    """The ends of a scale in mean returns.

    Attributes:
        blind: of the best policy that ignores the Task: skill 0.
        oracle: of the oracle: skill 1.
    """

    blind: float
    oracle: float

    def skill(self, mean_return: float) -> float:
        """Return where a mean return lies between both ends; 1 if they do not differ."""
        span = self.oracle - self.blind
        return (mean_return - self.blind) / span if span > 0.0 else 1.0


@dataclass(frozen=True)
class Scale:
    """Returns of named policies in one role on the same T Tasks.

    Attributes:
        returns: by name of the policy; at least the blind one's and the oracle's.
        blind: name of the best policy that ignores the Task.
        label: what reports call it.
        limits_T: the best expected return of each Task, or a bound of it.
        reachable: name of the best baseline of those that read only what the Turns say; empty
            where none is declared.
        replies: what the oracle replies on each Task, on one line, shortened; none where that was
            not kept.
    """

    returns: Mapping[str, Earned]
    blind: str
    label: str
    limits_T: Sequence[Optimum]
    reachable: str = ""
    replies: tuple[str, ...] = ()

    @classmethod
    def measure(
        cls,
        world: World,
        tasks: Sequence[Task],
        role: str,
        opponents: Mapping[str, Policy],
        executor: Executor = IN_PROCESS,
        policies: Iterable[str] = (),
        blind: str | None = None,
    ) -> Self:
        """Play both ends, and other baselines, each Task once.

        Args:
            world: the world.
            tasks: Tasks of it.
            role: the role they play.
            opponents: by other role, who plays it.
            executor: plays them.
            policies: names of other baselines.
            blind: name of the input-independent baseline; what `find_blind` says if `None`.
        """
        blind = blind or find_blind(world, tasks, role, opponents, executor)
        names = list(dict.fromkeys((*policies, blind, "oracle")))
        played_TU4 = np.array(executor.map(partial(_play, world, role, opponents, names), tasks))
        placed, returns = ladder_of(world.spec, world.level, role) is not None, {}
        for name, earned_4T in zip(names, played_TU4.transpose(1, 2, 0).tolist(), strict=True):
            paid_T, mean_T, value_T, broken_T = map(tuple, earned_4T)
            means = None if np.isnan(mean_T).any() else mean_T
            broken = broken_T if world.spec.violation else ()
            returns[name] = Earned(paid_T, means, value_T if placed else (), broken)
        limits_T = executor.map(partial(_limits, world, role), tasks)
        best = best_known(world)
        label, reachable = blind_label(world, blind), "" if best is None else best.policy
        return cls(returns, blind, label, limits_T, reachable)

    def first(self, count: int) -> Self:
        """Return the scale of the first Tasks alone."""
        return replace(
            self,
            returns={name: earned.first(count) for name, earned in self.returns.items()},
            limits_T=self.limits_T[:count],
            replies=self.replies[:count],
        )

    @property
    def realised(self) -> Yardstick:
        """The ends as they were paid."""
        blind, oracle = self.returns[self.blind], self.returns["oracle"]
        return Yardstick(blind.realised_T, oracle.realised_T, self.label)

    @property
    def expected(self) -> Yardstick | None:
        """The ends on average over outcomes; `None` where that is unknown."""
        blind, oracle = self.returns[self.blind], self.returns["oracle"]
        if blind.expected_T is None or oracle.expected_T is None:
            return None
        return Yardstick(blind.expected_T, oracle.expected_T, self.label)

    @property
    def used(self) -> Yardstick:
        """The ends in expected returns where they are known, else as they were paid."""
        return self.expected or self.realised

    @property
    def ends(self) -> Ends:
        """Means of `used`."""
        return Ends(fmean(self.used.blind_T), fmean(self.used.oracle_T))

    @property
    def unit(self) -> Unit:
        """Unit of `used`."""
        return "realised" if self.expected is None else "expected"

    @property
    def optimum(self) -> float:
        """Mean over the Tasks of the best expected return, or of a bound of it."""
        return fmean(limit.value for limit in self.limits_T)

    @property
    def exact(self) -> bool:
        """Whether it is the optimum, rather than a bound of it, on every Task."""
        return all(limit.exact for limit in self.limits_T)

    @property
    def lines(self) -> dict[str, Estimate]:
        """Mean returns by what reports call the policy, expected ones where known of both ends."""
        return {
            self.label if name == self.blind else name: mean_estimate(
                earned.realised_T if self.expected is None else earned.used_T
            )
            for name, earned in self.returns.items()
        }

    def levels(self, ladder: Ladder | None) -> dict[str, float]:
        """Return the mean returns that charts show, by name: both ends, and the ladder's policies.

        Args:
            ladder: of the level; its names are the policies'.
        """
        rungs = () if ladder is None else ladder.rungs
        names = {self.label: self.label, "oracle": "oracle", self.reachable: self.reachable}
        names |= {rung.policy: rung.name for rung in rungs}
        lines = self.lines
        return {name: lines[who].value for who, name in names.items() if who in lines}


def shipped_blind(world: World, role: str) -> str | None:
    """Return the best input-independent baseline of a shipped level without options, or `None`."""
    row = _shipped().get(_key(world.spec.id, world.level, role, world.options))
    return None if row is None or not world.draws_as_usual else str(row["blind"])


def shipped_rows() -> Iterable[Mapping[str, Any]]:
    """Return the lines of `scales.json` as they stand there; some have a `ladder` too."""
    return _shipped().values()


@cache
def _shipped() -> Mapping[str, Mapping[str, Any]]:
    rows = map(json.loads, FILE.read_text(encoding="utf-8").splitlines())
    return {_key(row["world"], row["level"], row["role"], row["options"]): row for row in rows}


def _key(*parts: object) -> str:
    return canonical_json(parts)


def skill_of(ends: Yardstick, returns_T: npt.ArrayLike) -> Estimate:
    """Return the skill of a policy on the Tasks of a scale, with the interval that all state.

    Args:
        ends: of the scale.
        returns_T: what the policy earns on the same Tasks, shape (T,); NaN for those it lost.
    """
    return ends.skill(returns_T, _draws(ends))


def skill_gain(ends: Yardstick, after_T: npt.ArrayLike, before_T: npt.ArrayLike) -> Estimate:
    """Return the skill after less the skill before, paired by Task; see `skill_of`."""
    return ends.gain(after_T, before_T, _draws(ends))


def _draws(ends: Yardstick) -> np.random.Generator:
    return generator("evaluation", len(ends.blind_T))


def best_known(world: World) -> Reachable | None:
    """Return the best baseline that reads only what a world's Turns say, if one is declared.

    None is known for a user's data.
    """
    return world.spec.reachable.get(world.level) if world.generates else None


def ladder_of(world: WorldSpec, level: str, role: str) -> Ladder | None:
    """Return the ladder of a world's level; `None` where a role has none."""
    named = world.ladders if role == world.roles[0] else ""
    ladders: Mapping[str, Ladder] = import_object(named) if named else {}
    return ladders.get(level)


def blind_policies(world: World) -> Mapping[str, Policy]:
    """Return the policies of a world that ignore the Task: `null` if it names none."""
    declared = world.spec
    found: Mapping[str, Policy] = import_object(declared.blind)(world) if declared.blind else {}
    return found or {"null": baselines(declared)["null"]}


def blind_label(world: World, name: str) -> str:
    """Return what reports call one of a world's input-independent baselines."""
    return f"best constant ({name})" if world.spec.blind else name


def find_blind(
    world: World,
    tasks: Sequence[Task],
    role: str,
    opponents: Mapping[str, Policy],
    executor: Executor = IN_PROCESS,
) -> str:
    """Return the name of the input-independent baseline that skill is measured from.

    Of a level that we ship it is the best on the Tasks of its scale. Of another level, options,
    data or opponents it is the best on the given Tasks; see `best_blind`, as for the arguments.
    """
    shipped = shipped_blind(world, role)
    if shipped is not None and opponents == scripted_opponents(world, role):
        return shipped
    return best_blind(world, tasks, role, opponents, executor)


def best_blind(
    world: World,
    tasks: Sequence[Task],
    role: str,
    opponents: Mapping[str, Policy],
    executor: Executor = IN_PROCESS,
) -> str:
    """Return which of the world's input-independent baselines earns most on Tasks.

    That is by expected returns where the world knows them.

    Args:
        world: the world.
        tasks: Tasks of it.
        role: the role it plays.
        opponents: by other role, who plays it.
        executor: plays them.
    """
    names = list(blind_policies(world))
    best = import_object(world.spec.best_blind)(world, tasks) if world.spec.best_blind else None
    if best is not None or len(names) == 1:
        return best or names[0]
    played_TB4 = np.array(executor.map(partial(_play, world, role, opponents, names), tasks))
    paid_TB, mean_TB, *_ = np.moveaxis(played_TB4, -1, 0)
    earned_TB = np.where(np.isnan(mean_TB), paid_TB, mean_TB)
    return names[int(earned_TB.sum(axis=0).argmax())]


def scripted_opponents(world: World, role: str | None = None) -> dict[str, Policy]:
    """Return who plays the roles but one, the first if `None`, where nobody was named for them."""
    scripts, roles = baselines(world.spec), world.spec.roles
    return {
        other: scripts[scripted_opponent(world.spec, other)]
        for other in roles
        if other != (role or roles[0])
    }


def _play(
    world: World,
    role: str,
    opponents: Mapping[str, Policy],
    names: Sequence[str],
    tasks: Sequence[Task],
) -> list[list[tuple[float, float, float, bool]]]:
    """Return by Task and policy what it is paid, earns on average and is worth on the ladder.

    These two are NaN where unknown. The last is whether it broke a rule of the world's.

    Input-independent baselines are made here from their names, as not all of them pickle.
    """
    policies = {**baselines(world.spec), **blind_policies(world)}
    mean, ladder = expected_return(role), ladder_of(world.spec, world.level, role)

    def worth(paid: float, ends: Mapping[str, float]) -> float:
        return nan if ladder is None else ladder.value(paid, ends, role)

    return [
        [
            (
                episode.returns[role],
                episode.metrics.get(mean, nan),
                worth(episode.returns[role], episode.metrics),
                broke_a_rule(world, episode),
            )
            for name in names
            for episode in [play(world, task, {**opponents, role: policies[name]}, seed=(0, 0))]
        ]
        for task in tasks
    ]


def broke_a_rule(world: World, episode: PlayedEpisode) -> bool:
    """Return whether an episode broke a rule of the world's; see `WorldSpec.violation`."""
    return episode.metrics.get(world.spec.violation, 0.0) > 0.0


def _limits(world: World, role: str, tasks: Sequence[Task]) -> list[Optimum]:
    return [world.optimum(task)[role] for task in tasks]
