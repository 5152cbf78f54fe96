"""Our own worlds, in their first role; scripts play the others."""

from functools import lru_cache
from importlib.metadata import version
from typing import Any

from tokengym.agents.certify.source import Episode, Facts, Place, Source, Step
from tokengym.envs.adapters.start import Rollouts
from tokengym.envs.core.errors import OptionError
from tokengym.envs.core.seeding import SPLITS, generator
from tokengym.envs.core.turn import expected_return
from tokengym.envs.registry import baselines

_TASKS_KEPT = 2000


class TokengymWorld(Source):
    """A world at one level. The oracle's replies are the references.

    Where chance decides what a role earns, nothing is claimed of a single episode.

    Args:
        target: `forecast`, or with a level `energy:day`.
        **options: of the world.

    Raises:
        UnknownWorldError: if there is no such world.
        OptionError: if the level or an option is unknown.
    """

    def __init__(self, target: str, **options: Any) -> None:
        name, _, level = target.partition(":")
        self._rollouts = Rollouts(name, level or None, **options)
        world = self._rollouts.world
        role = self._rollouts.role
        if role != world.spec.roles[0]:
            raise OptionError(f"{target} is certified in its first role, got {role!r}")
        self._known = lru_cache(_TASKS_KEPT)(self._told)
        declared = world.spec.return_range[role]
        sizes = [size for split in SPLITS if (size := world.size(split)) is not None]
        self.facts = Facts(
            package=f"tokengym {version('tokengym')}",
            splits=SPLITS,
            size=min(sizes, default=None),
            declared=(declared.low, declared.high),
            turns=world.turn_limit,
        )

    def start(self, place: Place) -> Episode:
        """Begin a rollout."""
        rollout = self._rollouts.start_at(place.split, place.index)

        def reply(text: str) -> Step:
            earlier = len(rollout.rewards)
            rollout.say(text)
            return Step(sum(rollout.rewards[earlier:]), rollout.done, rollout.text)

        return Episode(rollout.text, reply, *self._known(place.split, place.index))

    def _told(self, split: str, index: int) -> tuple[tuple[str, ...], float | None]:
        """Return the oracle's replies and, where it is sure to earn the optimum, that."""
        told = self._rollouts.start_at(split, index)
        oracle = baselines(told.episode.world.spec.id)["oracle"]
        rng = generator("certify", told.task.fingerprint)
        replies = []
        while not told.done:
            replies.append(oracle(told.episode.world, told.turn, rng))
            told.say(replies[-1])
        optimum = self._rollouts.world.optimum(told.task)[told.role]
        by_chance = expected_return(told.role) in told.turn.metrics
        return tuple(replies), optimum.value if optimum.exact and not by_chance else None
