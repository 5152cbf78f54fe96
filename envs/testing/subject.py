"""The world under test: created for every check, with its policies and its Tasks."""

import pickle
from collections.abc import Mapping

import numpy as np
from hypothesis import strategies as st

from tokengym.envs.core.odd_replies import HOSTILE, near_misses
from tokengym.envs.core.play import PlayedEpisode, Policy
from tokengym.envs.core.task import Task
from tokengym.envs.core.turn import Turn
from tokengym.envs.core.world import World
from tokengym.envs.registry import import_object, make_world
from tokengym.envs.testing.written import written

WorldLike = World | str | tuple[str, str | None]
"""A world as an object, an id (of its first level), or an id and a level."""


class Subject:
    """A world under test.

    Args:
        world: the world. One given by id is created for every check; an object is copied.
        policies: scripted policies by name, as `WorldSpec.baselines`; those of the spec if `None`.
            A missing `null` replies nothing, a missing `random` draws hostile replies.
        tasks: number of Tasks on which mean returns are compared, at least 2.
        examples: number of examples that Hypothesis generates for a law, at least 1.
        seed: makes checks repeatable; with `None` Hypothesis generates other examples each time.
        ties: largest share of groups of eight noisy rollouts in which all returns may be equal.

    Attributes:
        name: world and level, for messages.
        spec: the world's declaration.
        level: the level.
        registered: whether the world was given by its id.
        policies: scripted policies by name.
        replies: a strategy of replies, with near misses of this world's form.
        records: episodes that laws share, by policy and fingerprint.

    Raises:
        ValueError: if a number is too small, or the world has no training Tasks.
    """

    def __init__(
        self,
        world: WorldLike,
        *,
        policies: Mapping[str, Policy] | None = None,
        tasks: int = 12,
        examples: int = 25,
        seed: int | None = None,
        ties: float = 0.5,
    ) -> None:
        if tasks < 2 or examples < 1:
            raise ValueError(f"at least 2 tasks and 1 example are needed, got {tasks=} {examples=}")
        self.registered = not isinstance(world, World)
        template = world_of(world)
        if template.size("train") == 0:
            raise ValueError(f"{template.spec.id} has no training Tasks to check")
        self.spec, self.level = template.spec, template.level
        self.name = f"{self.spec.id} at level {self.level!r}"
        self.tasks_of_means, self.examples, self.seed, self.ties = tasks, examples, seed, ties
        scripted: Mapping[str, Policy] = {} if policies is None else policies
        if policies is None and self.spec.baselines:
            scripted = import_object(self.spec.baselines)
        self.policies: Mapping[str, Policy] = {"null": _null, "random": _random, **scripted}
        self.replies: st.SearchStrategy[str] = written(near_misses(template.expected_form))
        self._template = template
        self._tasks: dict[tuple[str, int], Task] = {}
        self.records: dict[tuple[str, str], PlayedEpisode] = {}

    def make(self) -> World:
        """Return a fresh world, in which no episode has been played."""
        if self.registered:
            return make_world(self.spec.id, self.level)
        try:
            return pickled(self._template)
        except Exception:
            # A law of its own requires that it pickles; the others are checked all the same.
            return self._template.fork()

    def task(self, split: str, index: int) -> Task:
        """Return a Task, kept for the checks that follow."""
        key = split, index
        if key not in self._tasks:
            self._tasks[key] = self.make().task(split, index)
        return self._tasks[key]

    def tasks(self, split: str, count: int) -> list[Task]:
        """Return the first Tasks of a split, fewer than `count` if it holds fewer."""
        size = self.make().size(split)
        most = count if size is None else min(size, count)
        return [self.task(split, index) for index in range(most)]

    def rng(self, number: int = 0) -> np.random.Generator:
        """Return a generator that depends on `seed` and `number` alone."""
        return np.random.default_rng([*self.key(number)])

    def key(self, number: int = 0) -> tuple[int, int]:
        """Return what the draws of one of several plays depend on: `seed` and `number`."""
        return self.seed or 0, number


def world_of(world: WorldLike) -> World:
    """Return the world itself, or the one that an id, or an id and a level, names."""
    if isinstance(world, World):
        return world
    return make_world(world) if isinstance(world, str) else make_world(*world)


def pickled(world: World) -> World:
    """Return a copy of a world made by pickling it."""
    twin: World = pickle.loads(pickle.dumps(world))
    return twin


def _null(world: World, turn: Turn, rng: np.random.Generator) -> str:
    return ""


def _random(world: World, turn: Turn, rng: np.random.Generator) -> str:
    candidates = [*HOSTILE, world.expected_form, *near_misses(world.expected_form)]
    return candidates[int(rng.integers(len(candidates)))]
