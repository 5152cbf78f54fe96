"""What policies earn on a set of Tasks, with 95 % intervals."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from math import nan

import numpy as np

from tokengym.agents.executors import IN_PROCESS, Executor
from tokengym.envs.core.play import PlayedEpisode, Policy, play
from tokengym.envs.core.spec import Reachable
from tokengym.envs.core.task import Task
from tokengym.envs.core.turn import expected_return
from tokengym.envs.core.world import World
from tokengym.envs.registry import baselines, import_object, scripted_opponent
from tokengym.rewards.estimates import Estimate, Floats, mean_estimate


def play_each(
    world: World, tasks: Iterable[Task], policies: Mapping[str, Policy] | Policy, seed: int = 0
) -> Iterator[PlayedEpisode]:
    """Play each Task once: the first rollouts of `play_group`."""
    for task in tasks:
        yield play(world, task, policies, seed=(seed, 0))


def play_all(
    world: World, tasks: Iterable[Task], policies: Mapping[str, Policy] | Policy, seed: int = 0
) -> list[PlayedEpisode]:
    """Return the episodes of `play_each`."""
    return list(play_each(world, tasks, policies, seed))


def play_group(
    world: World, task: Task, policies: Mapping[str, Policy] | Policy, size: int, seed: int = 0
) -> list[PlayedEpisode]:
    """Play `size` rollouts of one Task; policies draw by `seed`, rollout, Task and role alone."""
    return [play(world, task, policies, seed=(seed, member)) for member in range(size)]


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


def best_known(world: World) -> Reachable | None:
    """Return the best policy known that reads only what a world's Turns say, if one is declared.

    None is known for a user's data.
    """
    return world.spec.reachable.get(world.level) if world.generates else None


def blind_policies(world: World) -> Mapping[str, Policy]:
    """Return the policies of a world that ignore the Task: `null` if it names none."""
    spec = world.spec
    found: Mapping[str, Policy] = import_object(spec.blind)(world) if spec.blind else {}
    return found or {"null": baselines(spec)["null"]}


def best_blind(
    world: World,
    tasks: Sequence[Task],
    role: str,
    opponents: Mapping[str, Policy],
    executor: Executor = IN_PROCESS,
) -> str:
    """Return which of the world's blind policies is best on these Tasks.

    The best one has the highest expected return where the world knows it; see `earned`.

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
    played_TB2 = np.array(executor.map(partial(play_named, world, role, opponents, names), tasks))
    earned_TB = np.where(np.isnan(played_TB2[..., 1]), *np.moveaxis(played_TB2, -1, 0))
    return names[int(earned_TB.sum(axis=0).argmax())]


def play_named(
    world: World,
    role: str,
    opponents: Mapping[str, Policy],
    names: Sequence[str],
    tasks: Sequence[Task],
) -> list[list[tuple[float, float]]]:
    """Return what policies are paid on each Task, and what they earn on average over outcomes.

    Args:
        world: the world.
        role: the role they play.
        opponents: by other role, who plays it.
        names: of baselines or blind policies; the latter are made here, as not all of them pickle.
        tasks: the Tasks.

    Returns:
        Both by Task and policy; the second is NaN where it is unknown.
    """
    policies = {**baselines(world.spec), **blind_policies(world)}
    mean = expected_return(role)
    return [
        [
            (episode.returns[role], episode.metrics.get(mean, nan))
            for name in names
            for episode in play_each(world, [task], {**opponents, role: policies[name]})
        ]
        for task in tasks
    ]


def blind_label(world: World, name: str) -> str:
    """Return what reports call one of a world's blind policies."""
    return f"{world.spec.blind_name} ({name})" if world.spec.blind else name


def find_best_blind(
    world: World, tasks: Sequence[Task], role: str, opponents: Mapping[str, Policy]
) -> tuple[str, Policy]:
    """Return what reports call the `best_blind` policy, and the policy."""
    name = best_blind(world, tasks, role, opponents)
    return blind_label(world, name), blind_policies(world)[name]


def scripted_opponents(world: World) -> dict[str, Policy]:
    """Return who plays the roles other than the first where nobody was named for them."""
    return {
        role: baselines(world.spec)[scripted_opponent(world.spec, role)]
        for role in world.spec.roles[1:]
    }


def earned(records: Iterable[PlayedEpisode], role: str) -> Floats:
    """Return what a role's replies earn on average over outcomes, where the last Turn says it.

    Else it is the return as it was paid. Shape (T,), one of each episode.
    """
    name = expected_return(role)
    return np.array([record.metrics.get(name, record.returns[role]) for record in records])


def well_formed(records: Iterable[PlayedEpisode], role: str) -> list[float]:
    """Return 1 for each well-formed reply of a role and 0 for others, where answers report it."""
    return [
        answer.metrics["well_formed"]
        for record in records
        for asked, answer in zip(record.turns, record.turns[1:], strict=False)
        if asked.role == role and "well_formed" in answer.metrics
    ]
