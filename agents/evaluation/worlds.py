"""A world of an evaluation, its names resolved, and the scale of skill on its Tasks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

from tokengym.agents.analysis.evaluate import draw_tasks
from tokengym.agents.evaluation.config import EvaluationConfig, WorldLevel
from tokengym.agents.executors import IN_PROCESS, Executor
from tokengym.agents.ladder import rung_names
from tokengym.agents.rollouts import RolloutOrigin
from tokengym.agents.scale import Scale
from tokengym.envs.core.errors import OptionError
from tokengym.envs.core.play import Policy
from tokengym.envs.core.spec import WorldSpec
from tokengym.envs.core.task import Task
from tokengym.envs.core.world import World
from tokengym.envs.registry import baselines, make_world, scripted_opponent, spec


@dataclass(frozen=True)
class EvaluatedWorld:
    """A world of an evaluation with its Tasks, its roles and who plays them.

    Attributes:
        place: the world and level as the settings name them.
        world: the world; fork it to play.
        tasks: the Tasks.
        role: the evaluated role.
        opponents: by other role, the scripted policy that plays it.
        baselines: the world's scripted policies by name.
        origin: what all rollouts in it have in common, whoever plays.
        executor: draws the Tasks, and plays the ends of skill.
    """

    place: WorldLevel
    world: World
    tasks: Sequence[Task]
    role: str
    opponents: Mapping[str, Policy]
    baselines: Mapping[str, Policy]
    origin: RolloutOrigin
    executor: Executor

    @classmethod
    def resolve(
        cls, place: WorldLevel, config: EvaluationConfig, executor: Executor = IN_PROCESS
    ) -> Self:
        """Make a world of an evaluation, and draw its Tasks.

        Raises:
            UnknownWorldError: if there is no such world.
            OptionError: if the level, an option, the role or an opponent is not the world's, or
                the split has fewer than two Tasks.
        """
        world_spec = spec(place.world)
        role = config.role or world_spec.roles[0]
        if role not in world_spec.roles:
            raise OptionError(
                f"{world_spec.id} has the roles {list(world_spec.roles)}, got {role!r}"
            )
        scripts = baselines(world_spec)
        opponents = _opponents(world_spec, role, scripts, config.opponents)
        options = {**world_spec.evaluation, **config.options}
        world = make_world(world_spec, place.level, **options)
        tasks = _Tasks(draw_tasks(world, config.split, config.tasks, executor))
        if len(tasks) < 2:
            raise OptionError(
                f"{place.name} has {len(tasks)} Tasks in {config.split!r}; an interval needs two"
            )
        return cls(
            place,
            world,
            tasks,
            role,
            {other: scripts[who] for other, who in opponents.items()},
            scripts,
            RolloutOrigin("evaluation", opponents=opponents, options=options, seed=config.seed),
            executor,
        )

    @cached_property
    def scale(self) -> Scale:
        """What the ends of skill, and the rungs of the ladder, earn on the Tasks."""
        rungs = rung_names(self.world, self.role)
        return Scale.measure(
            self.world, self.tasks, self.role, self.opponents, self.executor, rungs
        )


@dataclass(frozen=True)
class _Tasks(Sequence[Task]):
    """Tasks that forget what they read of themselves: of 100,000 that is most of the memory.

    Attributes:
        kept: the Tasks, none of them used.
    """

    kept: Sequence[Task]

    def __len__(self) -> int:
        """Return the number of Tasks."""
        return len(self.kept)

    def __getitem__(self, place: Any) -> Any:
        """Return a Task that was not used before, or several."""
        found = self.kept[place]
        return [replace(task) for task in found] if isinstance(place, slice) else replace(found)


def _opponents(
    world_spec: WorldSpec, role: str, scripts: Mapping[str, Policy], requested: Mapping[str, str]
) -> dict[str, str]:
    """Return by other role the baseline that plays it.

    Raises:
        OptionError: if a role or a baseline is not the world's.
    """
    others = [other for other in world_spec.roles if other != role]
    unknown = sorted(set(requested) - set(others))
    if unknown:
        raise OptionError(
            f"{world_spec.id} has the other roles {others}, got opponents of {unknown}"
        )
    opponents = {
        other: requested.get(other) or scripted_opponent(world_spec, other) for other in others
    }
    for other, name in opponents.items():
        if name not in scripts:
            raise OptionError(
                f"{other} must be one of the baselines {sorted(scripts)}, got {name!r}"
            )
    return opponents
