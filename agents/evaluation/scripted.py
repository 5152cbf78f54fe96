"""Returns of policies on a set of Tasks, with 95 % intervals."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from tokengym.agents.execution.executors import IN_PROCESS, Executor
from tokengym.envs.core.play import PlayedEpisode, Policy, play
from tokengym.envs.core.task import Task
from tokengym.envs.core.world import World
from tokengym.rewards.estimates import Estimate, mean_estimate


def play_all(
    world: World, tasks: Iterable[Task], policies: Mapping[str, Policy] | Policy, seed: int = 0
) -> list[PlayedEpisode]:
    """Play each Task once; policies draw by `seed`, Task and role alone."""
    return [play(world, task, policies, seed=(seed, 0)) for task in tasks]


def evaluate(
    world: World,
    tasks: Iterable[Task],
    policies: Mapping[str, Policy] | Policy,
    *,
    role: str | None = None,
    seed: int = 0,
) -> Estimate:
    """Return the mean return of a role over `tasks`, each played once, with its interval.

    Args:
        world: the world.
        tasks: Tasks of it.
        policies: a policy for each role, or one for all.
        role: whose return; the first role if `None`.
        seed: seed of the policies' randomness.
    """
    role = world.spec.roles[0] if role is None else role
    return mean_estimate([one.returns[role] for one in play_all(world, tasks, policies, seed)])


def draw_tasks(world: World, split: str, count: int, executor: Executor = IN_PROCESS) -> list[Task]:
    """Return the first Tasks of a split, or all it has; to draw one may take long."""
    size = world.size(split)
    indices = range(count if size is None else min(size, count))
    return executor.map(partial(_draw, world, split), indices)


def _draw(world: World, split: str, indices: Sequence[int]) -> list[Task]:
    return [world.task(split, index) for index in indices]
