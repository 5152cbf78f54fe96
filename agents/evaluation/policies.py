"""The policies of an evaluation, their names resolved: scripts, endpoints and models."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from tokengym.agents.evaluation.chat_client import EndpointSettings
from tokengym.agents.evaluation.endpoint import PREFIX, Endpoint, EndpointPlayer
from tokengym.agents.evaluation.plan import EvaluationPlan
from tokengym.agents.evaluation.play_missing import PolicyRollouts, PortablePlayer
from tokengym.agents.evaluation.worlds import EvaluatedWorld
from tokengym.agents.rollouts import RolloutOrigin, RolloutRecord, record_play
from tokengym.envs.core.errors import OptionError, did_you_mean
from tokengym.envs.core.play import Policy, play
from tokengym.envs.core.task import Task
from tokengym.envs.core.world import World

if TYPE_CHECKING:
    from tokengym.agents.evaluation.models import ModelPolicy
    from tokengym.agents.training.job import Job


def resolve_policy(
    name: str,
    plan: EvaluationPlan,
    worlds: Sequence[EvaluatedWorld],
    settings: EndpointSettings,
) -> "PortablePolicy | ModelPolicy":
    """Return the policy that a name means.

    Args:
        name: the name.
        plan: of the evaluation.
        worlds: its places.
        settings: how endpoints are asked.

    Raises:
        OptionError: if the policy is unknown or cannot be had; it names who there is.
    """
    if name.startswith(PREFIX):
        Endpoint.named(name, settings)  # what is wrong with it is said before anything is played
        player = partial(_endpoint_player, name, settings, plan.system or "")
        return PortablePolicy(name, player, settings.concurrency)
    without = [world.place.name for world in worlds if name not in world.baselines]
    if not without:
        return PortablePolicy(name, partial(_scripted_player, name))
    if len(without) < len(worlds):
        raise OptionError(f"{name!r} is a baseline, but not of {without}")
    names = sorted(set.intersection(*(set(world.baselines) for world in worlds)))
    rule = (
        f"a policy is one of the baselines {names}, openai:MODEL@URL, or with the extra 'tinker' a "
        f"run folder, a model's name or directory, or a tinker:// path; got {name!r}"
        f"{did_you_mean(name, names)}"
    )
    if find_spec("tinker") is None:
        raise OptionError(f"{rule}, and the extra is not installed: pip install 'tokengym[tinker]'")
    from tokengym.agents.evaluation.models import ModelPolicy
    from tokengym.agents.models import is_model_name
    from tokengym.agents.service import CHECKPOINT_SCHEME

    if not (name.startswith(CHECKPOINT_SCHEME) or is_model_name(name)):
        raise OptionError(rule)
    return ModelPolicy.resolve(name, plan, worlds)


@dataclass(frozen=True)
class PortablePolicy:
    """A policy that any process can play: a baseline of every world, or an endpoint.

    Attributes:
        name: as the user named it.
        player: from a world to who plays there.
        at_once: most rollouts under way.
        jobs: none.
    """

    name: str
    player: Callable[[EvaluatedWorld], PortablePlayer]
    at_once: int = 1
    jobs: Sequence["Job"] = ()

    @property
    def title(self) -> str:
        """What studies call it."""
        return self.name

    def play(self, worlds: Sequence[EvaluatedWorld], rollouts: PolicyRollouts) -> None:
        """Play the missing rollouts, one world after the other."""
        for world in worlds:
            rollouts.play_in_shards(world, self.player(world), self.at_once)


def _scripted_player(name: str, world: EvaluatedWorld) -> PortablePlayer:
    policy, origin = world.baselines[name], replace(world.origin, policy=name)
    return ScriptedPlayer(world.world, world.role, policy, world.opponents, origin)


def _endpoint_player(
    name: str, settings: EndpointSettings, system: str, world: EvaluatedWorld
) -> PortablePlayer:
    endpoint = Endpoint.named(name, settings, world.place.temperature, world.place.max_tokens)
    origin = replace(
        world.origin,
        policy=name,
        temperature=endpoint.temperature,
        max_tokens=endpoint.max_tokens,
    )
    return EndpointPlayer(endpoint, world.world, world.role, world.opponents, origin, system)


@dataclass(frozen=True)
class ScriptedPlayer:
    """A world's scripted policy.

    Its randomness depends on the seed, the Task and the number of the rollout alone.

    Attributes:
        world: the world; it is forked.
        role: the role it plays.
        policy: who plays it.
        opponents: who plays each other role.
        origin: what its rollouts have in common.
    """

    world: World
    role: str
    policy: Policy
    opponents: Mapping[str, Policy]
    origin: RolloutOrigin

    def connected(self) -> AbstractAsyncContextManager[Any]:
        """Return the context in which it plays: any."""
        return nullcontext()

    async def play(self, task: Task, origin: RolloutOrigin) -> RolloutRecord:
        """Play one rollout in a thread, since a plan may take seconds."""
        return await asyncio.to_thread(self._play, task, origin)

    def _play(self, task: Task, origin: RolloutOrigin) -> RolloutRecord:
        own, seed = {self.role: self.policy}, (origin.seed, origin.member)
        played = play(self.world.fork(), task, own, seed=seed, opponents=self.opponents)
        return record_play(origin, played, self.role)
