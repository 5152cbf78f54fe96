"""What a policy earns on held-out test Tasks, and what scripted policies earn on the same ones."""

import asyncio
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from tinker_cookbook.completers import TinkerTokenCompleter
from tinker_cookbook.rl.rollouts import do_group_rollout
from tinker_cookbook.rl.types import STOP_METRIC_PREFIX, TrajectoryGroup, Transition

from tokengym.agents.analysis.evaluate import evaluate
from tokengym.agents.tinker.scripted_rollout import roll_out_scripted
from tokengym.agents.training.outcome import Evaluation
from tokengym.agents.training.session import Session
from tokengym.envs.core.rollout import Policy
from tokengym.envs.core.seeding import generator
from tokengym.envs.core.task import Task
from tokengym.envs.registry import load
from tokengym.envs.tokens.codec import ByteCodec
from tokengym.rewards.estimates import Estimate, mean_estimate

_AT_ONCE = 256
_BYTES = ByteCodec()
_AGAINST_MODELS = ("null", "random", "scripted", "oracle")


async def evaluate_roles(session: Session, paths: Mapping[str, str | None]) -> Evaluation:
    """Play each held-out Task once in each trained role, against the job's opponents.

    Args:
        session: the job.
        paths: by trained role the `tinker://` path of its weights; `None` for the base model.

    Returns:
        the first role's evaluation, which holds those of the others.
    """
    first, *rest = [await _evaluate(session, role, path) for role, path in paths.items()]
    return replace(first, others=dict(zip(list(paths)[1:], rest, strict=True)))


async def _evaluate(session: Session, role: str, path: str | None) -> Evaluation:
    job = session.job
    sampler = await session.sampler(path)
    completer = TinkerTokenCompleter(
        sampler, max_tokens=job.max_tokens, temperature=job.config.temperature
    )
    gate = asyncio.Semaphore(_AT_ONCE)

    async def play(task: Task) -> TrajectoryGroup:
        builder = job.group(task, 1, role, session.opponents[role])
        async with gate:
            return await do_group_rollout(builder, completer)

    groups = await asyncio.gather(*(play(task) for task in job.held_out))
    returns = [value for group in groups for value in group.get_total_rewards()]
    rollouts = [group.trajectories_G[0].transitions for group in groups]
    stated = _stated(rollouts, job.world.spec.calibration)
    figures = _figures(rollouts)
    if stated:
        figures["discrimination (correlation of stated and label)"] = _correlation(stated)
    # A reply that was cut off can read like a whole one, so malformed ones are left out.
    replies = tuple(
        "" if step.metrics["malformed"] else str(step.logs["reply"])
        for step in rollouts[0]
        if "malformed" in step.metrics
    )
    return Evaluation(mean_estimate(returns), figures, tuple(stated), replies)


def _figures(rollouts: Sequence[Sequence[Transition]]) -> dict[str, float]:
    """Return the means of the metrics at the end of an episode, by name."""
    last = [steps[-1].metrics for steps in rollouts]
    figures = {
        name: sum(float(metrics.get(name, 0.0)) for metrics in last) / len(last)
        if name.startswith(STOP_METRIC_PREFIX)  # an episode names its one reason only
        else statistics.fmean(float(metrics[name]) for metrics in last if name in metrics)
        for name in sorted({name for metrics in last for name in metrics})
    }
    # A role whose turn never came has replied nothing.
    malformed = [
        float(step.metrics["malformed"])
        for steps in rollouts
        for step in steps
        if "malformed" in step.metrics
    ]
    if malformed:
        figures["malformed"] = statistics.fmean(malformed)
    return figures


def _stated(
    rollouts: Sequence[Sequence[Transition]], names: tuple[str, str] | None
) -> list[tuple[float, float]]:
    """Return pairs of label and stated probability, where a world names such metrics."""
    if names is None:
        return []
    label, probability = names
    last = [steps[-1].metrics for steps in rollouts]
    return [
        (float(metrics[label]), float(metrics[probability]))
        for metrics in last
        if label in metrics and probability in metrics
    ]


def _correlation(pairs: Sequence[tuple[float, float]]) -> float:
    """Return Pearson's correlation, 0 where one side does not vary."""
    left, right = np.asarray(pairs, dtype=np.float64).T
    if np.ptp(left) == 0 or np.ptp(right) == 0:
        return 0.0
    return float(np.corrcoef(left, right)[0, 1])


async def reference_lines(session: Session, role: str) -> dict[str, Estimate]:
    """Return what the world's scripted policies earn in a role on the held-out Tasks, by name.

    Where the world names blind policies, the best of them on these very Tasks is among them: what a
    policy reaches that has learned no discrimination. Against a model, whose replies cost tokens,
    only the most telling policies play.
    """
    job = session.job
    opponents = session.opponents[role]
    known = job.baselines
    if any(not isinstance(who, str) for who in opponents.values()):
        shown = [name for name in _AGAINST_MODELS if name in known]
        return {name: await _against_models(session, role, known[name]) for name in shown}
    others = {other: known[who] for other, who in opponents.items() if isinstance(who, str)}

    def line(policy: Policy) -> Estimate:
        return evaluate(job.world, job.held_out, {**others, role: policy}, role=role)

    lines = {name: line(policy) for name, policy in known.items()}
    row = job.world.spec
    if row.blind:
        blind: Mapping[str, Policy] = load(row.blind)(job.world)
        lines[row.blind_name] = max(map(line, blind.values()), key=lambda found: found.value)
    return lines


async def _against_models(session: Session, role: str, policy: Policy) -> Estimate:
    job = session.job
    opponents = {
        other: job.baselines[who] if isinstance(who, str) else who
        for other, who in session.opponents[role].items()
    }
    gate = asyncio.Semaphore(_AT_ONCE)

    async def play(task: Task) -> float:
        rng = generator("evaluate", 0, task.fingerprint)
        async with gate:
            rollout = await roll_out_scripted(job.world, task, _BYTES, role, policy, opponents, rng)
            return rollout.total_reward

    return mean_estimate(await asyncio.gather(*(play(task) for task in job.held_out)))
