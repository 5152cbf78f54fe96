"""The policies of an evaluation, their names resolved: scripts, endpoints and models."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING

from tokengym.agents.evaluation.chat_client import EndpointSettings
from tokengym.agents.evaluation.endpoint import PREFIX, Endpoint, EndpointPlayer
from tokengym.agents.evaluation.plan import EvaluationPlan
from tokengym.agents.evaluation.play_missing import PolicyRollouts, ScriptedPlayer
from tokengym.agents.evaluation.worlds import EvaluatedWorld
from tokengym.agents.execution.run_async import run_async
from tokengym.envs.core.errors import OptionError, did_you_mean

if TYPE_CHECKING:
    from tokengym.agents.evaluation.models import ModelPolicy
    from tokengym.agents.training.job import Job


def resolve_policy(
    name: str, plan: EvaluationPlan, worlds: Sequence[EvaluatedWorld], settings: EndpointSettings
) -> "ScriptedPolicy | EndpointPolicy | ModelPolicy":
    """Return the policy that a name means.

    Args:
        name: the name.
        plan: of the evaluation.
        worlds: its settings.
        settings: how endpoints are asked.

    Raises:
        OptionError: if the policy is unknown or cannot be had; it names who there is.
    """
    if name.startswith(PREFIX):
        Endpoint.named(name, settings)  # raises before anything is played
        return EndpointPolicy(name, settings, plan.system or "")
    without = [world.place.name for world in worlds if name not in world.baselines]
    if not without:
        return ScriptedPolicy(name)
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
class ScriptedPolicy:
    """A baseline of every world.

    Attributes:
        name: as the user named it.
        jobs: none.
    """

    name: str
    jobs: Sequence["Job"] = ()

    def play(self, worlds: Sequence[EvaluatedWorld], rollouts: PolicyRollouts) -> None:
        """Play the missing rollouts, one world after the other."""
        for world in worlds:
            policy, origin = world.baselines[self.name], replace(world.origin, policy=self.name)
            of = world.world, world.role, policy, world.opponents, origin
            rollouts.play_script(world, ScriptedPlayer(*of))


@dataclass(frozen=True)
class EndpointPolicy:
    """A model behind an endpoint.

    Attributes:
        name: as the user named it.
        settings: how it is asked.
        system: text before every conversation; none if empty.
        jobs: none.
    """

    name: str
    settings: EndpointSettings
    system: str
    jobs: Sequence["Job"] = ()

    def play(self, worlds: Sequence[EvaluatedWorld], rollouts: PolicyRollouts) -> None:
        """Play the missing rollouts, one world after the other."""
        for world in worlds:
            run_async(self._play(world, rollouts))

    async def _play(self, world: EvaluatedWorld, rollouts: PolicyRollouts) -> None:
        place = world.place
        endpoint = Endpoint.named(self.name, self.settings, place.temperature, place.max_tokens)
        origin = replace(
            world.origin,
            policy=self.name,
            temperature=endpoint.temperature,
            max_tokens=endpoint.max_tokens,
        )
        of = endpoint, world.world, world.role, world.opponents, origin, self.system
        async with endpoint.client:
            at_once = asyncio.Semaphore(self.settings.concurrency)
            await rollouts.play(world, EndpointPlayer(*of), at_once)
