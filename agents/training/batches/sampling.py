"""Sampling the rollouts of a group: each reply with its own seed, openings in one request.

A seed is a hash of the job's seed, the group, the episode, the role and the turn. So a reply does
not depend on which of the others is asked for first, and a run can be repeated.
"""

import asyncio
import dataclasses
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import tinker
from tinker_cookbook.completers import (
    StopCondition,
    TinkerTokenCompleter,
    TokenCompleter,
    TokensWithLogprobs,
)
from tinker_cookbook.rl.rollout_strategy import RolloutResult, RolloutStrategy
from tinker_cookbook.rl.rollouts import do_single_rollout
from tinker_cookbook.rl.types import Env, EnvGroupBuilder, Trajectory

from tokengym.agents.tinker.env import Member
from tokengym.agents.tinker.groups import TaskGroupBuilder

REQUESTS_AT_ONCE = 256
_SEEDS = 2**31  # what every service takes


class PolicySampler:
    """Samples seeded replies of one policy. Use it within one event loop.

    Args:
        completer: the policy, its temperature and most tokens of one reply.
        requests_at_once: bound on the requests under way, at least 1.
    """

    def __init__(
        self, completer: TinkerTokenCompleter, requests_at_once: int = REQUESTS_AT_ONCE
    ) -> None:
        self.completer = completer
        self._gate = asyncio.Semaphore(requests_at_once)

    def limit(self, max_tokens: int | None) -> int:
        """Return the token limit of a reply, at most `max_tokens`."""
        most = self.completer.max_tokens
        return most if max_tokens is None else min(max_tokens, most)

    async def sample(
        self, prompt: tinker.ModelInput, stop: StopCondition, limit: int, count: int, seed: int
    ) -> list[TokensWithLogprobs]:
        """Sample `count` replies of at most `limit` tokens to a prompt."""
        async with self._gate:
            response = await self.completer.sampling_client.sample(
                prompt=prompt,
                num_samples=count,
                sampling_params=tinker.SamplingParams(
                    stop=stop, max_tokens=limit, temperature=self.completer.temperature, seed=seed
                ),
            )
        return [_completion(sequence) for sequence in response.sequences]


@dataclass(frozen=True)
class SeededRollouts(RolloutStrategy):
    """Rolls a group out with seeds; any error ends the group.

    Attributes:
        key: what sets these rollouts apart from all others of the job, its seed first.
        sampler: samples the replies; `None` where the policy does, which must be a
            `TinkerTokenCompleter`.
    """

    key: tuple[str | int, ...]
    sampler: PolicySampler | None = None

    async def execute(
        self, env_group_builder: EnvGroupBuilder, policy: TokenCompleter
    ) -> RolloutResult:
        """Roll a group out."""
        envs = await env_group_builder.make_envs()
        rollouts = await self.roll_out(envs, policy, _name(env_group_builder))
        return RolloutResult(rollouts, envs, [])

    async def roll_out(
        self, envs: Sequence[Env], policy: TokenCompleter, name: tuple[str | int, ...]
    ) -> list[Trajectory]:
        """Roll out the members of a group; `name` sets it apart from others of its dataset."""
        group = GroupSampler((*self.key, *name), _episodes(envs))
        sampler = self.sampler or _sampler_of(policy)
        members = [
            _MemberSampler(group, sampler, episode, _role(env))
            for env, episode in zip(envs, group.episodes, strict=True)
        ]
        return await asyncio.gather(*map(do_single_rollout, members, envs))

    def to_dict(self) -> dict[str, list[str | int]]:
        """Return JSON values, for the cookbook's `config.json` of a run."""
        return {"key": list(self.key)}


@dataclass(eq=False)
class GroupSampler:
    """Beginning that the members of a group share: the replies that open their episodes.

    Attributes:
        key: of the group.
        episodes: of each member, the number of its episode.
    """

    key: tuple[str | int, ...]
    episodes: Sequence[int]
    _begun: set[int] = field(default_factory=set)
    _opening: tuple[object, ...] = ()
    _replies: asyncio.Task[list[TokensWithLogprobs]] | None = None

    def seed(self, *who: str | int) -> int:
        """Return the seed of one reply."""
        text = "\n".join(map(str, (*self.key, *who)))
        return int.from_bytes(hashlib.sha256(text.encode()).digest()) % _SEEDS

    def begins(self, episode: int) -> bool:
        """Return whether an episode has had no reply yet, and note that it has one now."""
        begins = episode not in self._begun
        self._begun.add(episode)
        return begins

    async def opening(
        self,
        sampler: PolicySampler,
        episode: int,
        prompt: tinker.ModelInput,
        stop: StopCondition,
        limit: int,
    ) -> TokensWithLogprobs | None:
        """Return the reply that opens an episode; `None` if the others open differently.

        The first who asks has the replies of all sampled in one request: a service reads the prompt
        once.
        """
        asked = (tuple(prompt.to_ints()), tuple(stop), limit)
        if self._replies is None:
            self._opening = asked
            count = len(set(self.episodes))
            request = sampler.sample(prompt, stop, limit, count, self.seed("opening"))
            self._replies = asyncio.ensure_future(request)
            # Where another group fails first nobody waits for this one, or its exception, any more.
            self._replies.add_done_callback(lambda done: done.cancelled() or done.exception())
        if asked != self._opening:
            return None
        # Who stops waiting takes nothing from the others.
        return (await asyncio.shield(self._replies))[episode]


@dataclass(eq=False)
class _MemberSampler(TokenCompleter):
    """Samples the replies of one member."""

    group: GroupSampler
    sampler: PolicySampler
    episode: int
    role: str
    turn: int = 0

    async def __call__(
        self, model_input: tinker.ModelInput, stop: StopCondition, *, max_tokens: int | None = None
    ) -> TokensWithLogprobs:
        """Sample one reply to a prompt of text; see `TokenCompleter`."""
        limit = self.sampler.limit(max_tokens)
        turn, self.turn = self.turn, self.turn + 1
        if self.group.begins(self.episode):
            opening = await self.group.opening(self.sampler, self.episode, model_input, stop, limit)
            if opening is not None:
                return opening
        seed = self.group.seed(self.episode, self.role, turn)
        (reply,) = await self.sampler.sample(model_input, stop, limit, 1, seed)
        return reply


def _sampler_of(policy: TokenCompleter) -> PolicySampler:
    if not isinstance(policy, TinkerTokenCompleter):
        raise TypeError(f"policy must be a TinkerTokenCompleter, got {type(policy).__name__}")
    return PolicySampler(policy)


def _name(builder: EnvGroupBuilder) -> tuple[str | int, ...]:
    """Return the name of a group within its dataset."""
    if not isinstance(builder, TaskGroupBuilder):
        return ()
    return (builder.number, builder.task.fingerprint)


def _role(env: Env) -> str:
    return env.role if isinstance(env, Member) else ""


def _episodes(envs: Sequence[Env]) -> list[int]:
    """Return the number of the episode that each env is a part of."""
    numbers: dict[int, int] = {}
    return [
        numbers.setdefault(
            id(env.coordinator) if isinstance(env, Member) else id(env), len(numbers)
        )
        for env in envs
    ]


def _completion(sequence: tinker.SampledSequence) -> TokensWithLogprobs:
    # From 0.6 on the cookbook's type names the sequence, for losses that look it up.
    names = {field.name for field in dataclasses.fields(TokensWithLogprobs)} & {"sequence_id"}
    named: dict[str, Any] = dict.fromkeys(names, sequence.sequence_id)
    return TokensWithLogprobs(sequence.tokens, sequence.logprobs, sequence.stop_reason, **named)
