"""The two ends of skill on given Tasks: the best policy that ignores the Task, and the oracle."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tokengym.agents.analysis.evaluate import play_all, returns_on
from tokengym.envs.core.play import PlayedEpisode, Policy
from tokengym.envs.core.task import Task
from tokengym.envs.core.world import World
from tokengym.envs.registry import baselines, import_object
from tokengym.rewards.skill import Yardstick


class BestBlind(NamedTuple):
    """The blind policy that earns most on given Tasks.

    Attributes:
        name: what reports call it.
        policy: the policy.
        records: its episodes, one of each Task.
    """

    name: str
    policy: Policy
    records: Sequence[PlayedEpisode]


def best_blind(
    world: World, tasks: Sequence[Task], role: str, opponents: Mapping[str, Policy]
) -> BestBlind:
    """Return the best of the world's blind policies on these Tasks; `null` if it has none.

    Args:
        world: the world.
        tasks: Tasks of it.
        role: the role it plays.
        opponents: by other role, who plays it.
    """
    spec = world.spec
    blind: Mapping[str, Policy] = import_object(spec.blind)(world) if spec.blind else {}
    candidates = blind or {"null": baselines(spec)["null"]}
    played = {
        name: play_all(world, tasks, {**opponents, role: policy})
        for name, policy in candidates.items()
    }
    best = max(played, key=lambda name: sum(record.returns[role] for record in played[name]))
    return BestBlind(
        f"{spec.blind_name} ({best})" if blind else best, candidates[best], played[best]
    )


def yardstick_on(
    world: World, tasks: Sequence[Task], role: str, opponents: Mapping[str, Policy]
) -> Yardstick:
    """Return both ends of the scale of skill; see `best_blind`."""
    blind = best_blind(world, tasks, role, opponents)
    oracle = {**opponents, role: baselines(world.spec)["oracle"]}
    earned = returns_on(world, tasks, oracle, role=role)
    returns = tuple(record.returns[role] for record in blind.records)
    return Yardstick(returns, tuple(earned), blind.name)
