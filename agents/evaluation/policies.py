"""The policies of an evaluation, their names resolved: scripts, endpoints and models."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Protocol

from tokengym.agents.evaluation.chat_client import ChatClient
from tokengym.agents.evaluation.config import EvaluationConfig
from tokengym.agents.evaluation.endpoint import (
    PREFIX,
    Endpoint,
    EndpointName,
    EndpointPlayer,
    require_endpoint,
)
from tokengym.agents.evaluation.play_missing import PolicyRollouts
from tokengym.agents.evaluation.worlds import EvaluatedWorld
from tokengym.agents.rollouts import RolloutOrigin, RolloutRecord, record_play
from tokengym.agents.run_async import run_async
from tokengym.agents.training.setting_groups import TOY_MODEL
from tokengym.envs.core.errors import OptionError
from tokengym.envs.core.play import Policy, play
from tokengym.envs.core.seeding import generator
from tokengym.envs.core.task import Task
from tokengym.envs.core.world import World

ENDPOINT_TOKENS = 1024
"""Most tokens of an endpoint's reply, unless asked otherwise."""


class EvaluatedPolicy(Protocol):
    """A policy of an evaluation, in every world."""

    @property
    def name(self) -> str:
        """As the user named it."""
        ...

    def play(self, worlds: Sequence[EvaluatedWorld], rollouts: PolicyRollouts) -> None:
        """Play the missing rollouts, one world after the other."""
        ...


def resolve_policy(
    name: str, config: EvaluationConfig, worlds: Sequence[EvaluatedWorld], concurrency: int
) -> EvaluatedPolicy:
    """Return the policy that a name means.

    Args:
        name: the name.
        config: of the evaluation.
        worlds: of the evaluation.
        concurrency: most requests to an endpoint at once.

    Raises:
        OptionError: if the policy is unknown or cannot be had; it names who there is.
    """
    if name.startswith(PREFIX):
        endpoint = EndpointName.parse(name)
        require_endpoint(endpoint)
        return EndpointPolicy(name, endpoint, config, concurrency)
    without = [world.name for world in worlds if name not in world.baselines]
    if not without:
        return ScriptedPolicy(name)
    if len(without) < len(worlds):
        raise OptionError(f"{name!r} is a baseline, but not of {without}")
    names = sorted(set.intersection(*(set(world.baselines) for world in worlds)))
    rule = (
        f"a policy is one of the baselines {names}, openai:MODEL@URL, or with the extra 'tinker' a "
        f"run folder, a model's name or directory, or a tinker:// path; got {name!r}"
    )
    if find_spec("tinker") is None:
        raise OptionError(f"{rule}, and the extra is not installed: pip install 'tokengym[tinker]'")
    from tokengym.agents.evaluation.models import ModelPolicy
    from tokengym.agents.models.resolve import model_kind
    from tokengym.agents.service import CHECKPOINT_SCHEME

    if not (name == TOY_MODEL or name.startswith(CHECKPOINT_SCHEME) or model_kind(name)):
        raise OptionError(rule)
    return ModelPolicy.resolve(name, config, worlds)


@dataclass(frozen=True)
class ScriptedPolicy:
    """A baseline of every world.

    Attributes:
        name: its name.
    """

    name: str

    def play(self, worlds: Sequence[EvaluatedWorld], rollouts: PolicyRollouts) -> None:
        """Play the missing rollouts, one world after the other."""

        async def all_worlds() -> None:
            for world in worlds:
                policies = {**world.opponents, world.role: world.baselines[self.name]}
                origin = replace(world.origin, policy=self.name)
                player = ScriptedPlayer(world.world, world.role, policies, origin)
                await rollouts.play(world, player, asyncio.Semaphore(1))

        run_async(all_worlds())


@dataclass(frozen=True)
class ScriptedPlayer:
    """A world's scripted policy.

    Its randomness depends on the seed, the Task and the number of the rollout alone.

    Attributes:
        world: the world; it is forked.
        role: the role it plays.
        policies: who plays each role.
        origin: what its rollouts have in common.
    """

    world: World
    role: str
    policies: Mapping[str, Policy]
    origin: RolloutOrigin

    async def play(self, task: Task, origin: RolloutOrigin) -> RolloutRecord:
        """Play one rollout in a thread, since a plan may take seconds."""
        return await asyncio.to_thread(self._play, task, origin)

    def _play(self, task: Task, origin: RolloutOrigin) -> RolloutRecord:
        rng = generator("evaluate", origin.seed, task.fingerprint, origin.member)
        return record_play(origin, play(self.world.fork(), task, self.policies, rng), self.role)


@dataclass(frozen=True)
class EndpointPolicy:
    """A model behind an endpoint.

    Attributes:
        name: as the user named it.
        endpoint: the model and its address.
        config: of the evaluation.
        concurrency: most requests at once.
    """

    name: str
    endpoint: EndpointName
    config: EvaluationConfig
    concurrency: int

    def play(self, worlds: Sequence[EvaluatedWorld], rollouts: PolicyRollouts) -> None:
        """Play the missing rollouts, one world after the other."""
        config = self.config

        async def all_worlds() -> None:
            async with ChatClient(self.endpoint.url, rollouts.patience) as client:
                endpoint = Endpoint(client, self.name, self.endpoint.model)
                for world in worlds:
                    player = EndpointPlayer(
                        endpoint,
                        world.world,
                        world.role,
                        world.opponents,
                        replace(
                            world.origin,
                            policy=self.name,
                            temperature=1.0 if config.temperature is None else config.temperature,
                            max_tokens=config.max_tokens or ENDPOINT_TOKENS,
                        ),
                        config.system,
                    )
                    await rollouts.play(world, player, asyncio.Semaphore(self.concurrency))

        run_async(all_worlds())
