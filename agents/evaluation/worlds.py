"""A setting of an evaluation, its names resolved, and the scale of skill on its Tasks."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

from tokengym.agents.evaluation.plan import EvaluationPlace
from tokengym.agents.evaluation.scripted import draw_tasks
from tokengym.agents.execution.executors import IN_PROCESS, Executor
from tokengym.agents.rollouts import RolloutOrigin
from tokengym.agents.scale.ladder import rung_names
from tokengym.agents.scale.level_scale import Scale
from tokengym.envs.core.errors import OptionError
from tokengym.envs.core.play import Policy
from tokengym.envs.core.task import Task
from tokengym.envs.core.world import World
from tokengym.envs.registry import baselines_at, make_world, scripted_opponent


@dataclass(frozen=True)
class EvaluatedWorld:
    """A place of an evaluation: its world and Tasks, and who plays the other roles.

    Attributes:
        place: as the plan names it.
        world: the world; fork it to play.
        tasks: the Tasks.
        opponents: by other role, the scripted policy that plays it; instead of a model, the one
            that plays the role by default.
        baselines: the world's scripted policies by name.
        origin: what all rollouts in it have in common, whoever plays.
        executor: draws the Tasks, and plays the ends of skill.
        measured: the scale, where it is known already.
    """

    place: EvaluationPlace
    world: World
    tasks: Sequence[Task]
    opponents: Mapping[str, Policy]
    baselines: Mapping[str, Policy]
    origin: RolloutOrigin
    executor: Executor = IN_PROCESS
    measured: Scale | None = None

    @classmethod
    def resolve(
        cls,
        place: EvaluationPlace,
        seed: int,
        executor: Executor = IN_PROCESS,
        made: World | None = None,
    ) -> Self:
        """Make the world of a setting, and draw its Tasks.

        Args:
            place: the setting.
            seed: of the plan.
            executor: see the attribute.
            made: the world, where it has been made already.

        Raises:
            UnknownWorldError: if there is no such world.
            OptionError: if the level or an option is not the world's, or the split has fewer than
                two Tasks.
        """
        world = made or make_world(place.world, place.level, **place.options)
        scripts = baselines_at(world)
        tasks = _Tasks(draw_tasks(world, place.split, place.tasks, executor))
        if len(tasks) < 2:
            raise OptionError(
                f"{place.name} has {len(tasks)} Tasks in {place.split!r}; an interval needs two"
            )
        opponents = {
            other: scripts[who if who in scripts else scripted_opponent(world.spec, other)]
            for other, who in place.opponents.items()
        }
        origin = RolloutOrigin(
            "evaluation", opponents=place.opponents, options=place.options, seed=seed
        )
        return cls(place, world, tasks, opponents, scripts, origin, executor)

    @property
    def role(self) -> str:
        """The evaluated role."""
        return self.place.role

    @property
    def scripted(self) -> bool:
        """Whether scripts play all other roles."""
        return set(self.place.opponents.values()) <= set(self.baselines)

    @cached_property
    def scale(self) -> Scale:
        """Returns of skill's two ends on the Tasks."""
        return self.measured or self.measure()

    def first(self, count: int | None) -> Self:
        """Return the setting with its first Tasks alone; as it is if `None`."""
        if count is None or count >= len(self.tasks):
            return self
        return replace(self, tasks=self.tasks[:count], measured=self.scale.first(count))

    def measure(self, policies: Iterable[str] = ()) -> Scale:
        """Play the ends of skill, the reference policies and other baselines, against scripts."""
        of = self.world, self.tasks, self.role, self.opponents
        rungs = rung_names(self.world, self.role)
        return Scale.measure(*of, self.executor, [*policies, *rungs])


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
