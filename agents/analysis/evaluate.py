"""What policies earn on a set of Tasks, with 95 % intervals."""

from collections.abc import Iterable, Mapping

from tokengym.envs.core.play import PlayedEpisode, Policy, play
from tokengym.envs.core.seeding import generator
from tokengym.envs.core.task import Task
from tokengym.envs.core.world import World
from tokengym.rewards.estimates import Estimate, mean_estimate


def play_all(
    world: World, tasks: Iterable[Task], policies: Mapping[str, Policy] | Policy, seed: int = 0
) -> list[PlayedEpisode]:
    """Play each Task once; a Task's randomness depends on `seed` and the Task alone."""
    return [
        play(world, task, policies, generator("evaluate", seed, task.fingerprint)) for task in tasks
    ]


def play_group(
    world: World, task: Task, policies: Mapping[str, Policy] | Policy, size: int, seed: int = 0
) -> list[PlayedEpisode]:
    """Play `size` rollouts of one Task; their randomness depends on `seed` and the Task alone."""
    rng = generator("group", seed, task.fingerprint)
    return [play(world, task, policies, rng) for _ in range(size)]


def evaluate(
    world: World,
    tasks: Iterable[Task],
    policies: Mapping[str, Policy] | Policy,
    *,
    role: str | None = None,
    seed: int = 0,
) -> Estimate:
    """Return what a role earns on `tasks`, each played once.

    Args:
        world: the world.
        tasks: Tasks of it.
        policies: a policy for each role, or one for all.
        role: whose return; the first role if `None`.
        seed: seed of the policies' randomness.
    """
    return mean_estimate(returns_on(world, tasks, policies, role=role, seed=seed))


def returns_on(
    world: World,
    tasks: Iterable[Task],
    policies: Mapping[str, Policy] | Policy,
    *,
    role: str | None = None,
    seed: int = 0,
) -> list[float]:
    """Return what a role earns on each of `tasks`, each played once; see `evaluate`."""
    role = world.spec.roles[0] if role is None else role
    return [record.returns[role] for record in play_all(world, tasks, policies, seed)]


def well_formed(records: Iterable[PlayedEpisode], role: str) -> list[float]:
    """Return 1 for each well-formed reply of a role and 0 for others, where answers report it."""
    return [
        answer.metrics["well_formed"]
        for record in records
        for asked, answer in zip(record.turns, record.turns[1:], strict=False)
        if asked.role == role and "well_formed" in answer.metrics
    ]
