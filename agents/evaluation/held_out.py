"""What a job's policy, and scripted policies, earn on its held-out Tasks."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tokengym.agents.analysis.evaluate import play_all
from tokengym.agents.evaluation.models import ModelPlayer
from tokengym.agents.evaluation.play_missing import Failures, WantedRollouts
from tokengym.agents.ladder import rung_values
from tokengym.agents.rollouts import RolloutLog, evaluation_segment
from tokengym.agents.scale import Earned, Scale, best_known, blind_policies, ladder_of
from tokengym.agents.tinker.scripted_rollout import ScriptedRollout, roll_out_scripted
from tokengym.agents.training.folder.run_summary import Evaluation, References
from tokengym.agents.training.session import TrainingSession
from tokengym.envs.core.display import shorten
from tokengym.envs.core.play import PlayedEpisode, Policy
from tokengym.envs.core.task import Task
from tokengym.envs.registry import scripted_opponent
from tokengym.envs.tokens.codec import ByteCodec

_BYTES = ByteCodec()
_LONGEST_REPLY = 200
_AGAINST_MODELS = ("null", "random", "scripted", "oracle")


async def evaluate_roles(
    session: TrainingSession, paths: Mapping[str, str | None], log: RolloutLog, name: str
) -> Evaluation:
    """Play each held-out Task once in each trained role, against the job's opponents.

    The first Tasks are played at the job's low temperature too, where it asks for that.

    Of several worlds each is played. All roles and worlds play at once: a service samples for many
    episodes in little more time than for one. Rollouts of the same weights that are on record
    already are not played again.

    Args:
        session: the job.
        paths: by name of what is trained (`Job.trained`) the `tinker://` path of its weights;
            `None` for the base model.
        log: keeps the rollouts.
        name: of the evaluation, such as `before`; its segment in the log is named after it.

    Returns:
        the first evaluation, which holds the others.
    """
    evaluations = await asyncio.gather(
        *(_evaluate(*session.of(who), path, log, name) for who, path in paths.items())
    )
    for segment in (name, f"{name}_low"):
        log.seal(evaluation_segment(segment))
    first, *rest = evaluations
    return replace(first, others=dict(zip(list(paths)[1:], rest, strict=True)))


async def _evaluate(
    session: TrainingSession, role: str, path: str | None, log: RolloutLog, name: str
) -> Evaluation:
    job = session.job.evaluated
    tasks, config = job.held_out, job.config
    low = replace(job, config=replace(config, temperature=config.low_temperature))
    some = tasks[: config.low_tasks] if config.low_temperature < config.temperature else ()
    usual, cold = await asyncio.gather(
        _played(replace(session, job=job), role, path, tasks, log, name),
        _played(replace(session, job=low), role, path, some, log, f"{name}_low"),
    )
    assert usual is not None
    return replace(usual, low=cold)


async def _played(
    session: TrainingSession,
    role: str,
    path: str | None,
    tasks: Sequence[Task],
    log: RolloutLog,
    name: str,
) -> Evaluation | None:
    """Play Tasks at the temperature of the session's job; `None` without Tasks."""
    if not tasks:
        return None
    job, wanted = session.job, WantedRollouts(tasks, 1, log, evaluation_segment(name))
    player = await ModelPlayer.open(session, role, path)
    await wanted.play_missing(player, session.episodes, Failures(player.origin.policy))
    played = {record.origin.group: record for record in wanted.saved(player.origin, role)}
    return Evaluation.of_rollouts([played[group] for group in sorted(played)], job.world.spec)


async def reference_lines(session: TrainingSession) -> dict[str, References]:
    """Return what scripted policies earn on the held-out Tasks, by name of what is trained.

    The best of the world's blind policies on these very Tasks is among them: what a policy reaches
    that has learned to ignore the Task well. Against a model, whose replies cost tokens, only the
    most telling policies play, and the blind one is chosen against a script.
    """
    names = list(session.job.trained)
    references = await asyncio.gather(*(_references(*session.of(name)) for name in names))
    return dict(zip(names, references, strict=True))


async def _references(session: TrainingSession, role: str) -> References:
    job = session.job.evaluated
    spec, scripts, opponents = job.world.spec, job.baselines, session.opponents[role]
    scripted = {
        other: scripts[who if isinstance(who, str) else scripted_opponent(spec, other)]
        for other, who in opponents.items()
    }
    world, tasks, names = job.world.fork(), job.held_out, list(scripts)
    alone = all(isinstance(who, str) for who in opponents.values())
    if not alone:
        names = [name for name in _AGAINST_MODELS if name in scripts]

    def play() -> tuple[Scale, tuple[str, ...]]:
        scale = Scale.measure(world, tasks, role, scripted, policies=names if alone else ())
        oracles = play_all(world, tasks, {**scripted, role: scripts["oracle"]}) if alone else ()
        return scale, tuple(_said(episode, role) for episode in oracles)

    # In a thread of its own, so that what is sampled meanwhile does not wait.
    scale, replies = await asyncio.to_thread(play)
    if not alone:
        policies = {name: scripts[name] for name in names}
        policies[scale.blind] = blind_policies(world)[scale.blind]
        played = await asyncio.gather(
            *(_against_models(session, role, policy) for policy in policies.values())
        )
        scale = replace(scale, returns=dict(zip(policies, played, strict=True)))
    best = best_known(job.world)
    rungs = rung_values(world, role, scale)
    return References.of(scale, "" if best is None else best.policy, replies, rungs)


def _said(record: PlayedEpisode, role: str) -> str:
    """Return a role's replies on one line, shortened."""
    turns = zip(record.turns, record.replies, strict=False)
    return shorten(" / ".join(said for turn, said in turns if turn.role == role), _LONGEST_REPLY)


async def _against_models(session: TrainingSession, role: str, policy: Policy) -> Earned:
    job = session.job.evaluated
    opponents = job.players(session.opponents[role])

    async def play(task: Task) -> ScriptedRollout:
        async with session.episodes:
            return await roll_out_scripted(job.world, task, _BYTES, role, policy, opponents, 0, 0)

    rollouts = await asyncio.gather(*(play(task) for task in job.held_out))
    ladder = ladder_of(job.world.spec, job.world.level, role)
    return Earned.of(((each.total_reward, each.metrics) for each in rollouts), role, ladder)
