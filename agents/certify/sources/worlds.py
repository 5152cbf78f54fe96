"""Our own worlds, in their first role; scripts play the others."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.metadata import version
from typing import Any

from tokengym.agents.certify.source import Facts, Source, SourceEpisode, SourceStep, TaskPlace
from tokengym.envs.core.episode import role_stream
from tokengym.envs.core.play import Policy
from tokengym.envs.core.seeding import SPLITS
from tokengym.envs.core.task import Task
from tokengym.envs.core.turn import expected_return
from tokengym.envs.core.world import World
from tokengym.envs.registry import baselines, make_world
from tokengym.envs.rollouts import Rollout, Rollouts

_TASKS_KEPT = 2000


class TokengymWorld(Source):
    """A world at one level. The oracle's replies are the references.

    Where chance decides what a role earns, nothing is claimed of a single episode.

    Args:
        world: the world.
        oracle: the policy that knows the answers, which is asked for references, if there is one.
        opponents: who plays the roles but the first; the world's usual ones if `None`.
        drawn: the first training Tasks, if they were drawn already.
    """

    def __init__(
        self,
        world: World,
        oracle: Policy | None,
        opponents: Mapping[str, Policy] | None = None,
        drawn: Sequence[Task] = (),
    ) -> None:
        self._rollouts = Rollouts(world, role=world.spec.roles[0], opponents=opponents)
        self._oracle = oracle
        self._drawn: dict[tuple[str, int], list[Task]] = defaultdict(list)
        self._given = {(SPLITS[0], index): task for index, task in enumerate(drawn)}
        self._known = lru_cache(_TASKS_KEPT)(self._told)
        declared = world.spec.return_range[self._rollouts.role]
        sizes = [size for split in SPLITS if (size := world.size(split)) is not None]
        size, bounds = min(sizes, default=None), (declared.low, declared.high)
        package = f"tokengym {version('tokengym')}"
        self.facts = Facts(package, SPLITS, False, size, bounds, world.turn_limit)

    @classmethod
    def open(cls, target: str, level: str = "", **options: Any) -> "TokengymWorld":
        """Open a world of the registry.

        Args:
            target: `forecast`, or with a level `energy:day`.
            level: instead of the one that the target names.
            **options: of the world.

        Raises:
            UnknownWorldError: if there is no such world.
            OptionError: if the level or an option is unknown.
        """
        world = make_world(target.partition(":")[0] if level else target, level or None, **options)
        return cls(world, baselines(world.spec)["oracle"])

    def start(self, place: TaskPlace) -> SourceEpisode:
        """Begin a rollout."""
        rollout = self._rollout(place.split, place.index)

        def reply(text: str) -> SourceStep:
            earlier = len(rollout.rewards)
            rollout.say(text)
            return SourceStep(sum(rollout.rewards[earlier:]), rollout.done, rollout.text)

        return SourceEpisode(rollout.text, reply, *self._known(place.split, place.index))

    def _rollout(self, split: str, index: int) -> Rollout:
        """Start a rollout that is scored as evaluations are, on every split."""
        return Rollout(self._rollouts, self._rollouts.world, self._task(split, index))

    def _task(self, split: str, index: int) -> Task:
        """Return a Task, drawn twice, as a world may not draw it alike, and kept from then on."""
        drawn = self._drawn[split, index]
        if len(drawn) < 2:
            given = self._given.pop((split, index), None)
            drawn.append(given or self._rollouts.world.task(split, index))
        return drawn[-1]

    def _told(self, split: str, index: int) -> tuple[tuple[str, ...], float | None]:
        """Return the oracle's replies and, where it is sure to earn the optimum, that."""
        if self._oracle is None:
            return (), None
        told = self._rollout(split, index)
        rng = role_stream(told.task, told.role)
        replies = []
        while not told.done:
            replies.append(self._oracle(told.episode.world, told.turn, rng))
            told.say(replies[-1])
        optimum = self._rollouts.world.optimum(told.task)[told.role]
        by_chance = expected_return(told.role) in told.turn.metrics
        return tuple(replies), optimum.value if optimum.exact and not by_chance else None
