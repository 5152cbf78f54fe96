"""Roll out a scripted policy in one role against any opponents; return its tokens and return."""

from collections.abc import Mapping
from typing import NamedTuple

from tokengym.agents.tinker.coordinator import Opponent, policy_of
from tokengym.envs.core.episode import role_stream
from tokengym.envs.core.play import Policy
from tokengym.envs.core.task import Task
from tokengym.envs.core.world import World
from tokengym.envs.tokens.codec import Codec
from tokengym.envs.tokens.episode import Episode


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
    *key: object,
) -> ScriptedRollout:
    """Play one episode with a scripted policy in one role and opponents in the others.

    Args:
        world: the world; it is forked.
        task: what to play.
        codec: encodes the role's observations and replies.
        role: the role the policy plays.
        policy: the scripted policy.
        opponents: who plays each other role.
        *key: tells several rollouts of a Task apart, see `role_stream`.
    """
    others = {other: policy_of(who) for other, who in opponents.items()}
    episode = Episode(world.fork(), task, codec, roles=(role,), opponents=others)
    rng, turns = role_stream(task, role, *key), list[TurnTokens]()
    await episode.advance_awaiting()
    while not episode.done:
        reply = list(codec.write(policy(episode.world, episode.turn, rng)))
        turns.append(TurnTokens(episode.tokens_of(role), reply))
        episode.play(reply, "stop")
        await episode.advance_awaiting()
    return ScriptedRollout(turns, episode.world.returns[role], episode.turn.metrics)
