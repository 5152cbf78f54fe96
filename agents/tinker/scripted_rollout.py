"""Roll out a scripted policy in one role against any opponents; return its tokens and return."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from tokengym.agents.tinker.coordinator import Coordinator, Opponent
from tokengym.envs.core.play import Policy
from tokengym.envs.core.task import Task
from tokengym.envs.core.world import World
from tokengym.envs.tokens.codec import Codec


class TurnTokens(NamedTuple):
    """One turn of a role: its whole observation, and its reply."""

    observation: list[int]
    reply: list[int]


class ScriptedRollout(NamedTuple):
    """One role's side of an episode: its turns, the sum of its rewards, metrics of the end."""

    turns: list[TurnTokens]
    total_reward: float
    metrics: Mapping[str, float]


async def roll_out_scripted(
    world: World,
    task: Task,
    codec: Codec,
    role: str,
    policy: Policy,
    opponents: Mapping[str, Opponent],
    rng: np.random.Generator,
) -> ScriptedRollout:
    """Play one episode with a scripted policy in one role and opponents in the others.

    Args:
        world: the world; it is forked.
        task: what to play.
        codec: encodes the role's observations and replies.
        role: the role the policy plays.
        policy: the scripted policy.
        opponents: who plays each other role.
        rng: the policy's randomness.
    """
    coordinator = Coordinator(world.fork(), task, codec, roles=(role,), opponents=opponents)
    turns: list[TurnTokens] = []
    await coordinator.join(role)
    while not coordinator.episode.done:
        episode = coordinator.episode
        reply = list(codec.write(policy(coordinator.world, episode.turn, rng)))
        turns.append(TurnTokens(episode.tokens_of(role), reply))
        await coordinator.play(role, reply, "stop")
    last = coordinator.episode.turn
    return ScriptedRollout(turns, coordinator.world.returns[role], last.metrics)
