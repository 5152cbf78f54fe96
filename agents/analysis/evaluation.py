"""What a policy earns on held-out test Tasks, sampled through a Tinker client."""

import asyncio
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import tinker
from tinker_cookbook.completers import TinkerTokenCompleter
from tinker_cookbook.rl.rollouts import do_group_rollout
from tinker_cookbook.rl.types import STOP_METRIC_PREFIX, TrajectoryGroup

from tokengym.agents.analysis.evaluate import Estimate, estimate, evaluate
from tokengym.agents.tinker.coordinator import Opponent
from tokengym.agents.tinker.groups import TaskGroupBuilder
from tokengym.agents.tinker.scripted_rollout import tell
from tokengym.agents.training.config import TrainSettings
from tokengym.envs.core.rollout import Policy
from tokengym.envs.core.seeding import generator
from tokengym.envs.core.task import Task
from tokengym.envs.registry import baselines, load, make_world, spec
from tokengym.envs.tokens.codec import ByteCodec

_AT_ONCE = 256
_BYTES = ByteCodec()

_BESIDE_MODELS = ("null", "random", "scripted", "oracle")

Opponents = Mapping[str, str | Opponent]
"""Who speaks for which role: a baseline's name or an agent."""


@dataclass(frozen=True)
class Evaluation:
    """A policy on the test Tasks, one rollout each.

    Attributes:
        returns: mean return with its interval.
        figures: means of what the world reports at the end of an episode, by name; `malformed` is
            the share of all replies, if there were any, `stop/REASON` of all episodes.
        stated: for forecasts, pairs of (label, stated probability) of the well-formed replies; the
            label is the exact probability where Tasks are scored against it, else the outcome.
        replies: what the policy said on the first Task; empty where the world could not read it.
        others: where several roles are trained, the evaluations of all but the first by role.
    """

    returns: Estimate
    figures: Mapping[str, float] = field(default_factory=dict)
    stated: Sequence[tuple[float, float]] = ()
    replies: Sequence[str] = ()
    others: Mapping[str, "Evaluation"] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "returns": list(self.returns),
            "figures": dict(self.figures),
            "stated": [list(pair) for pair in self.stated],
            "replies": list(self.replies),
            "others": {role: found.to_dict() for role, found in self.others.items()},
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Evaluation":
        """Read what `to_dict` gave."""
        mean, low, high, count = data["returns"]
        pairs = [(exact, stated) for exact, stated in data["stated"]]
        replies = data.get("replies", ())  # a run folder may be older than these two fields
        others = {role: cls.from_dict(found) for role, found in data.get("others", {}).items()}
        return cls(Estimate(mean, low, high, count), data["figures"], pairs, replies, others)


def held_out_tasks(settings: TrainSettings) -> list[Task]:
    """Return the held-out Tasks of a job: the first of the world's test split, or all it has."""
    world = make_world(settings.world, settings.level, **settings.options)
    size = world.size("test")
    count = settings.evaluation_tasks if size is None else min(size, settings.evaluation_tasks)
    return [world.task("test", index) for index in range(count)]


async def evaluate_policy(
    settings: TrainSettings,
    model: str,
    sampler: tinker.SamplingClient,
    tasks: Sequence[Task],
    *,
    role: str | None = None,
    opponents: Opponents | None = None,
) -> Evaluation:
    """Play each Task once with the sampler's policy.

    Args:
        settings: the job.
        model: name or directory that the tokenizer comes from.
        sampler: samples from the policy.
        tasks: Tasks of the job's world.
        role: who plays; the job's first trained role if `None`.
        opponents: who speaks for the other roles, where the job's settings do not name baselines.
    """
    completer = TinkerTokenCompleter(
        sampler, max_tokens=settings.max_tokens, temperature=settings.temperature
    )
    gate = asyncio.Semaphore(_AT_ONCE)

    async def play(task: Task) -> TrajectoryGroup:
        builder = group_builder(settings, model, task, group_size=1, role=role, opponents=opponents)
        async with gate:
            return await do_group_rollout(builder, completer)

    groups = await asyncio.gather(*(play(task) for task in tasks))
    returns = [value for group in groups for value in group.get_total_rewards()]
    last = [group.trajectories_G[0].transitions[-1].metrics for group in groups]
    names = sorted({name for metrics in last for name in metrics})
    figures = {
        name: sum(float(metrics.get(name, 0.0)) for metrics in last) / len(last)
        if name.startswith(STOP_METRIC_PREFIX)  # an episode names its one reason only
        else statistics.fmean(float(metrics[name]) for metrics in last if name in metrics)
        for name in names
    }
    # A role whose turn never came has replied nothing.
    refused = [
        float(step.metrics["malformed"])
        for group in groups
        for step in group.trajectories_G[0].transitions
        if "malformed" in step.metrics
    ]
    if refused:
        figures["malformed"] = statistics.fmean(refused)
    names_of = spec(settings.world).calibration
    stated = [
        (float(metrics[names_of[0]]), float(metrics[names_of[1]]))
        for metrics in last
        if names_of is not None and set(names_of) <= set(metrics)
    ]
    if stated:
        figures["discrimination (correlation of stated and label)"] = _correlation(stated)
    # A reply that was cut off can read like a whole one, so what was not understood is left out.
    said = [
        "" if step.metrics["malformed"] else str(step.logs["reply"])
        for step in groups[0].trajectories_G[0].transitions
        if "malformed" in step.metrics
    ]
    return Evaluation(estimate(returns), figures, stated, said)


async def evaluate_roles(
    settings: TrainSettings,
    model: str,
    samplers: Mapping[str, tinker.SamplingClient],
    tasks: Sequence[Task],
    opponents: Mapping[str, Opponents],
) -> Evaluation:
    """Evaluate each trained role by itself; the first one's evaluation holds those of the others.

    Args:
        settings: the job.
        model: name or directory that the tokenizer comes from.
        samplers: of each role's policy.
        tasks: Tasks of the job's world.
        opponents: for each role, who speaks for the others.
    """
    first, *rest = [
        await evaluate_policy(settings, model, sampler, tasks, role=role, opponents=opponents[role])
        for role, sampler in samplers.items()
    ]
    return replace(first, others=dict(zip(list(samplers)[1:], rest, strict=True)))


def _correlation(pairs: Sequence[tuple[float, float]]) -> float:
    """Return Pearson's correlation, 0 where one side does not vary."""
    left, right = np.asarray(pairs, dtype=np.float64).T
    if np.ptp(left) == 0 or np.ptp(right) == 0:
        return 0.0
    return float(np.corrcoef(left, right)[0, 1])


def group_builder(
    settings: TrainSettings,
    model: str,
    task: Task,
    group_size: int,
    *,
    role: str | None = None,
    opponents: Opponents | None = None,
) -> TaskGroupBuilder:
    """Return the builder of one group of one role's rollouts; see `evaluate_policy`."""
    role = settings.trained[0] if role is None else role
    return TaskGroupBuilder(
        task=task,
        codec=f"{settings.renderer}@{model}",
        group_size=group_size,
        options=dict(settings.options),
        role=role,
        opponents=settings.opponents_of(role) if opponents is None else opponents,
        max_turn_tokens=settings.max_tokens,
    )


def reference_lines(
    settings: TrainSettings, tasks: Sequence[Task], role: str | None = None
) -> dict[str, Estimate]:
    """Return what the world's scripted policies earn on the same Tasks, by name.

    Other roles are played by the job's opponents, which must be scripted. Where the spec has blind
    policies, the one that is best on these very Tasks is there too: what a policy reaches that has
    learned no discrimination.
    """
    role = settings.trained[0] if role is None else role
    world = make_world(settings.world, settings.level, **settings.options)
    known = baselines(settings.world)
    others = {other: known[name] for other, name in settings.opponents_of(role).items()}
    lines = {
        name: evaluate(world, tasks, {**others, role: policy}, role=role)
        for name, policy in known.items()
    }
    if world.spec.blind:
        blind: Mapping[str, Policy] = load(world.spec.blind)(world)
        found = (
            evaluate(world, tasks, {**others, role: policy}, role=role) for policy in blind.values()
        )
        lines[world.spec.blind_name] = max(found, key=lambda value: value.mean)
    return lines


async def references_beside(
    settings: TrainSettings,
    tasks: Sequence[Task],
    role: str,
    opponents: Opponents,
) -> dict[str, Estimate]:
    """Return what the world's scripted policies earn in a role beside any opponents, by name.

    Beside a model, whose replies cost tokens, only the most telling policies play.
    """
    known = baselines(settings.world)
    speakers = {
        other: known[who] if isinstance(who, str) else who for other, who in opponents.items()
    }
    if all(isinstance(who, str) for who in opponents.values()):
        return reference_lines(settings, tasks, role)
    world = make_world(settings.world, settings.level, **settings.options)
    gate = asyncio.Semaphore(_AT_ONCE)

    async def play(policy: Policy, task: Task) -> float:
        rng = generator("evaluate", 0, task.fingerprint)
        async with gate:
            return (await tell(world, task, _BYTES, role, policy, speakers, rng)).earned

    lines = {}
    for name in (name for name in _BESIDE_MODELS if name in known):
        lines[name] = estimate(await asyncio.gather(*(play(known[name], task) for task in tasks)))
    return lines
