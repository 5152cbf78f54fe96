"""What a law is checked of: one world at one level, made afresh as often as a check likes."""

import pickle
from collections.abc import Mapping

import numpy as np
from hypothesis import strategies as st

from tokengym.envs.core.rollout import Policy
from tokengym.envs.core.task import Task
from tokengym.envs.core.turn import Turn
from tokengym.envs.core.world import World
from tokengym.envs.registry import load, make_world
from tokengym.envs.testing.replies import HOSTILE, near_misses, written

WorldLike = World | str | tuple[str, str | None]
"""A world as an object, by its id at the first level, or by id and level."""


class Subject:
    """A world under test.

    Args:
        world: the world. One given by id is made again for every check; an object is copied.
        policies: scripted policies by name, as `WorldSpec.baselines`; those of the spec if `None`.
            Without a `null` policy one says nothing, without a `random` one hostile replies are
            drawn; what needs an `oracle` is not checked without one.
        tasks: Tasks of a check that compares means.
        examples: Hypothesis's examples of a check that generates replies.
        seed: seed of all randomness, Hypothesis's too. `None` leaves Hypothesis's to itself.

    Attributes:
        name: world and level, in words.
        registered: whether the world was given by its id.
        policies: scripted policies by name.
        tasks_of_means: Tasks of a check that compares means.
        examples: examples of a check that generates replies.
        seed: seed of those examples, and of all other randomness.
        replies: a strategy of replies, hostile ones to this very world among them.
    """

    def __init__(
        self,
        world: WorldLike,
        *,
        policies: Mapping[str, Policy] | None = None,
        tasks: int = 12,
        examples: int = 25,
        seed: int | None = None,
    ) -> None:
        if tasks < 2 or examples < 1:
            raise ValueError(f"at least 2 tasks and 1 example are needed, got {tasks=} {examples=}")
        self.registered = not isinstance(world, World)
        template = world_of(world)
        self.spec, self.level = template.spec, template.level
        self.name = f"{self.spec.id} at level {self.level!r}"
        self.tasks_of_means, self.examples, self.seed = tasks, examples, seed
        if policies is None:
            policies = load(self.spec.baselines) if self.spec.baselines else {}
        self.policies: Mapping[str, Policy] = {"null": _null, "random": _random, **policies}
        self.replies: st.SearchStrategy[str] = written(near_misses(template.expected_form))
        self._template = template
        self._tasks: dict[tuple[str, int], Task] = {}

    def make(self) -> World:
        """Return a world that no episode was played in."""
        if self.registered:
            return make_world(self.spec.id, self.level)
        try:
            return pickled(self._template)
        except Exception:
            # That it pickles is a law of its own; the others are checked all the same.
            return self._template.fork()

    def task(self, split: str, index: int) -> Task:
        """Return a Task; one that another check has drawn is not drawn again."""
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
        """Return a generator; the same one for the same number."""
        return np.random.default_rng([self.seed or 0, number])


def world_of(world: WorldLike) -> World:
    """Return a world as it is, or the one of an id or of an id and a level."""
    if isinstance(world, World):
        return world
    return make_world(world) if isinstance(world, str) else make_world(*world)


def pickled(world: World) -> World:
    """Return what a world is after a journey to another process."""
    twin: World = pickle.loads(pickle.dumps(world))
    return twin


def _null(world: World, turn: Turn, rng: np.random.Generator) -> str:
    return ""


def _random(world: World, turn: Turn, rng: np.random.Generator) -> str:
    known = [*HOSTILE, world.expected_form, *near_misses(world.expected_form)]
    return known[int(rng.integers(len(known)))]
