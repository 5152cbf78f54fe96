"""What a policy earns on held-out test Tasks, and what scripted policies earn on the same ones."""

import asyncio
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from tinker_cookbook.completers import TinkerTokenCompleter
from tinker_cookbook.rl.rollouts import do_group_rollout
from tinker_cookbook.rl.types import STOP_METRIC_PREFIX, TrajectoryGroup, Transition

from tokengym.agents.analysis.evaluate import returns_on
from tokengym.agents.tinker.scripted_rollout import roll_out_scripted
from tokengym.agents.training.outcome import Evaluation, References
from tokengym.agents.training.session import Session
from tokengym.envs.core.rollout import Policy
from tokengym.envs.core.seeding import generator
from tokengym.envs.core.task import Task
from tokengym.envs.registry import load, scripted_opponent
from tokengym.envs.tokens.codec import ByteCodec
from tokengym.rewards.estimates import mean_estimate
from tokengym.rewards.skill import Yardstick

_BYTES = ByteCodec()
_AGAINST_MODELS = ("null", "random", "scripted", "oracle")


async def evaluate_roles(session: Session, paths: Mapping[str, str | None]) -> Evaluation:
    """Play each held-out Task once in each trained role, against the job's opponents.

    All roles play at once: a service samples for many episodes in little more time than for one.

    Args:
        session: the job.
        paths: by trained role the `tinker://` path of its weights; `None` for the base model.

    Returns:
        the first role's evaluation, which holds those of the others.
    """
    first, *rest = await asyncio.gather(
        *(_evaluate(session, role, path) for role, path in paths.items())
    )
    return replace(first, others=dict(zip(list(paths)[1:], rest, strict=True)))


async def _evaluate(session: Session, role: str, path: str | None) -> Evaluation:
    job = session.job
    sampler = await session.sampler(path)
    completer = TinkerTokenCompleter(
        sampler, max_tokens=job.max_tokens, temperature=job.config.temperature
    )

    async def play(task: Task) -> TrajectoryGroup:
        builder = job.group(task, 1, role, session.opponents[role])
        async with session.episodes:
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
    return Evaluation(tuple(returns), figures, tuple(stated), replies)


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


async def reference_lines(session: Session) -> dict[str, References]:
    """Return what the world's scripted policies earn on the held-out Tasks, by trained role.

    The best of the world's blind policies on these very Tasks is among them: what a policy reaches
    that has learned to ignore the Task well. Against a model, whose replies cost tokens, only the
    most telling policies play, and the blind one is chosen against a script.
    """
    roles = session.job.roles
    found = await asyncio.gather(*(_references(session, role) for role in roles))
    return dict(zip(roles, found, strict=True))


async def _references(session: Session, role: str) -> References:
    job = session.job
    row, known, opponents = job.world.spec, job.baselines, session.opponents[role]
    scripted = {
        other: known[who if isinstance(who, str) else scripted_opponent(row.id, other)]
        for other, who in opponents.items()
    }
    world, tasks = job.world.fork(), job.held_out

    def play(policies: Mapping[str, Policy]) -> dict[str, list[float]]:
        return {
            name: returns_on(world, tasks, {**scripted, role: policy}, role=role)
            for name, policy in policies.items()
        }

    blind: Mapping[str, Policy] = load(row.blind)(job.world) if row.blind else {}
    # In a thread of its own, so that what is sampled meanwhile does not wait.
    candidates = await asyncio.to_thread(play, blind or {"null": known["null"]})
    best = max(candidates, key=lambda name: sum(candidates[name]))
    blind_name = f"{row.blind_name} ({best})" if blind else best
    if all(isinstance(who, str) for who in opponents.values()):
        returns = await asyncio.to_thread(play, known)
        returns[blind_name] = candidates[best]
    else:
        shown = {name: known[name] for name in _AGAINST_MODELS if name in known}
        shown[blind_name] = blind.get(best, known["null"])
        against_models = await asyncio.gather(
            *(_against_models(session, role, policy) for policy in shown.values())
        )
        returns = dict(zip(shown, against_models, strict=True))
    lines = {name: mean_estimate(found) for name, found in returns.items()}
    ends = (tuple(returns[blind_name]), tuple(returns["oracle"]))
    return References(lines, Yardstick(*ends, blind_name))


async def _against_models(session: Session, role: str, policy: Policy) -> list[float]:
    job = session.job
    opponents = {
        other: job.baselines[who] if isinstance(who, str) else who
        for other, who in session.opponents[role].items()
    }

    async def play(task: Task) -> float:
        rng = generator("evaluate", 0, task.fingerprint)
        async with session.episodes:
            rollout = await roll_out_scripted(job.world, task, _BYTES, role, policy, opponents, rng)
            return rollout.total_reward

    return list(await asyncio.gather(*(play(task) for task in job.held_out)))
