"""Scripted policies beside any opponents: what they earn, and what they said in tokens."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from tokengym.agents.tinker.coordinator import Coordinator, Opponent
from tokengym.envs.core.rollout import Policy
from tokengym.envs.core.task import Task
from tokengym.envs.core.world import World
from tokengym.envs.tokens.codec import Codec


class Said(NamedTuple):
    """One turn of a role: what it had read and written before, and its reply, as tokens."""

    read: list[int]
    reply: list[int]


class Told(NamedTuple):
    """One role's side of an episode: its turns, and what it earned in all."""

    turns: list[Said]
    earned: float


async def tell(
    world: World,
    task: Task,
    codec: Codec,
    role: str,
    policy: Policy,
    opponents: Mapping[str, Opponent],
    rng: np.random.Generator,
) -> Told:
    """Play one episode with a scripted policy in one role and opponents in the others.

    Args:
        world: the world; it is forked.
        task: what to play.
        codec: by which the role reads and writes.
        role: the policy's.
        policy: speaks for it.
        opponents: speak for all other roles.
        rng: the policy's randomness.
    """
    coordinator = Coordinator(world.fork(), task, codec, roles=(role,), opponents=opponents)
    turns: list[Said] = []
    await coordinator.join(role)
    while not coordinator.episode.done:
        episode = coordinator.episode
        reply = list(codec.write(policy(coordinator.world, episode.turn, rng)))
        turns.append(Said(episode.tokens_of(role), reply))
        await coordinator.play(role, reply, "stop")
    return Told(turns, coordinator.world.returns[role])
