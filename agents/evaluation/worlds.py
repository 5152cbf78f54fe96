"""A world of an evaluation, its names resolved: all that the policies in it share."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

from tokengym.agents.evaluation.config import EvaluationConfig, WorldLevel
from tokengym.agents.evaluation.yardstick import yardstick_on
from tokengym.agents.rollouts import Origin
from tokengym.envs.core.errors import OptionError
from tokengym.envs.core.rollout import Policy
from tokengym.envs.core.spec import WorldSpec
from tokengym.envs.core.task import Task
from tokengym.envs.core.world import World
from tokengym.envs.registry import baselines, make_world, scripted_opponent, spec
from tokengym.rewards.skill import Yardstick


@dataclass(frozen=True)
class EvaluatedWorld:
    """A world of an evaluation with its Tasks, its roles and who plays them.

    Attributes:
        place: the world and level as the settings name them.
        name: the world's short name and the level: `energy:day`.
        world: the world; fork it to play.
        tasks: the Tasks.
        role: the evaluated role.
        opponents: by other role, the scripted policy that plays it.
        baselines: the world's scripted policies by name.
        origin: what all rollouts in it have in common, whoever plays.
    """

    place: WorldLevel
    name: str
    world: World
    tasks: Sequence[Task]
    role: str
    opponents: Mapping[str, Policy]
    baselines: Mapping[str, Policy]
    origin: Origin

    @classmethod
    def resolve(cls, place: WorldLevel, config: EvaluationConfig) -> Self:
        """Make a world of an evaluation, and draw its Tasks.

        Raises:
            UnknownWorldError: if there is no such world.
            OptionError: if the level, an option, the role or an opponent is not the world's, or
                the split has fewer than two Tasks.
        """
        row = spec(place.world)
        role = config.role or row.roles[0]
        if role not in row.roles:
            raise OptionError(f"{row.id} has the roles {list(row.roles)}, got {role!r}")
        known = baselines(row)
        opponents = _opponents(row, role, known, config.opponents)
        options = {**row.evaluation, **config.options}
        world = make_world(row, place.level, **options)
        tasks, name = world.first_tasks(config.split, config.tasks), place.name
        if len(tasks) < 2:
            raise OptionError(
                f"{name} has {len(tasks)} Tasks in {config.split!r}; an interval needs two"
            )
        return cls(
            place,
            name,
            world,
            tasks,
            role,
            {other: known[who] for other, who in opponents.items()},
            known,
            Origin("evaluation", opponents=opponents, options=options, seed=config.seed),
        )

    @cached_property
    def yardstick(self) -> Yardstick:
        """What the ends of skill earn on the Tasks."""
        return yardstick_on(self.world, self.tasks, self.role, self.opponents)


def _opponents(
    row: WorldSpec, role: str, known: Mapping[str, Policy], requested: Mapping[str, str]
) -> dict[str, str]:
    """Return by other role the baseline that plays it.

    Raises:
        OptionError: if a role or a baseline is not the world's.
    """
    others = [other for other in row.roles if other != role]
    unknown = sorted(set(requested) - set(others))
    if unknown:
        raise OptionError(f"{row.id} has the other roles {others}, got opponents of {unknown}")
    opponents = {other: requested.get(other) or scripted_opponent(row, other) for other in others}
    for other, name in opponents.items():
        if name not in known:
            raise OptionError(f"{other} must be one of the baselines {sorted(known)}, got {name!r}")
    return opponents
