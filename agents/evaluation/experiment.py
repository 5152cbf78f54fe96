"""An experiment: evaluate a policy, train it, evaluate it again."""

import time
from dataclasses import replace

from tokengym.agents.conform.trials import require_server
from tokengym.agents.evaluation.folder import EvaluationFolder
from tokengym.agents.evaluation.held_out import HeldOutEvaluation
from tokengym.agents.evaluation.plan import AFTER, BEFORE, WARM
from tokengym.agents.execution.run_async import run_async
from tokengym.agents.rollouts.same_answers import require_same_answers
from tokengym.agents.training.connection import Connection
from tokengym.agents.training.folder.environment import describe_environment
from tokengym.agents.training.folder.run import RunFolder
from tokengym.agents.training.folder.run_summary import RunSummary
from tokengym.agents.training.job import Job
from tokengym.agents.training.presets import is_toy
from tokengym.agents.training.progress import Progress
from tokengym.agents.training.resume import forget_lost_states, forget_unsaved_steps, mend_run
from tokengym.agents.training.session import TrainingSession
from tokengym.agents.training.trainer import train_job
from tokengym.envs.core.errors import OptionError

_SURE = 0.75
"""Lower 95 % limit of the share of malformed replies that stops a run: 13 replies, none in form."""


def run_experiment(job: Job, run: RunFolder, progress: Progress) -> RunSummary:
    """Run a job in its folder, or resume the one that is there.

    Args:
        job: the job.
        run: its run folder; made if missing. The run resumes from the last state that was saved
            and that the service still has; what is lost is shown.
        progress: where to show how it goes.

    Raises:
        OptionError: if another process trains the run, its files are damaged, answers in its data
            have changed, the service has none of its states any more, or no reply before
            training is in form.
        ServiceDiedError: if the local service ended by itself; the run can be resumed.
        ServiceRefusedError: if the service answered with an error, or lacks what the job needs.
    """

    async def connected() -> RunSummary:
        if not job.target.local:
            await require_server(job, connection, progress.say)
        async with TrainingSession.open(job, connection) as session:
            lost = await connection.guard(forget_lost_states(run, connection.base_url))
            for notice in [*lost, *forget_unsaved_steps(run)]:
                progress.say(notice)
            return await _experiment(session, run, progress)

    with run.lock():
        for notice in mend_run(run):
            progress.say(notice)
        if not job.world.generates:
            anew = "restore them, or train in a new folder (--run)"
            require_same_answers(run.rollouts.read(), str(run.folder), anew)
        run.write_config(job.config)
        progress.say(f"run folder: {run.folder}")
        if job.target.local:
            progress.say("starting a service on this machine, some seconds")
        opened = Connection.open(job.target, run.service_folder, job.config.seed)
        with opened as connection, run.console():
            if run.write_environment(describe_environment(connection)):
                progress.say(
                    "the run began in another environment: figures may differ, see environment.json"
                )
            return run_async(connected())


async def _experiment(session: TrainingSession, run: RunFolder, progress: Progress) -> RunSummary:
    job, guard = session.job, session.connection.guard
    start, folder = session.start(state=False), EvaluationFolder(run.folder)
    if job.config.tasks_before:
        progress.say(f"evaluating before training on {job.config.tasks_before:,} held-out Tasks")
    began = time.monotonic()
    with progress.stages() as shown:
        evaluation = await guard(HeldOutEvaluation.of_run(session, folder, start, shown))
    before = folder.saved().results
    assert before is not None
    rows = before.of_policy(BEFORE)
    for row in rows:
        of_role = f" ({row.role})" if job.self_play else ""
        progress.say(f"before{of_role}: {row.earned} on {row.tasks} held-out Tasks")
        if row.form_warning:
            progress.say(row.form_warning)
    if rows and all(row.malformed.value == 1.0 and row.malformed.low > _SURE for row in rows):
        _require_form(job)
    blind = None if job.self_play else evaluation.worlds[0].scale.ends.blind
    if job.learning.warm_start:
        session = await _warm_start(session, run, progress, evaluation)
        start = session.start(state=False)
    collapse = await train_job(session, run, progress, blind)
    held_out = sum(len(world.tasks) for world in evaluation.worlds)
    progress.say(f"evaluating the trained policy on {held_out:,} held-out Tasks")
    with progress.stages() as shown:
        await guard(evaluation.play(AFTER, run.weights.sampler or start, shown))
    outcome = RunSummary(collapse)
    run.write_outcome(outcome)
    progress.say(f"{(time.monotonic() - began) / 60.0:.1f} minutes in all")
    return outcome


def _require_form(job: Job) -> None:
    """Stop a run on rewards whose policy never answered in form: its rewards say nothing.

    Raises:
        OptionError: if the job has no supervised steps that teach the form.
    """
    if job.config.command != "train" or job.learning.warm_start:
        return
    shipped = (
        "; the small policy that ships with the package reads the terse prompts of the levels it "
        "was made for and no others: name a model with --model"
    )
    raise OptionError(
        "no reply before training has the form that is asked for, so rewards would say nothing"
        f"{shipped * is_toy(job.config.model)}. To teach the form first: --warm-start 8, or "
        "tokengym sft"
    )


async def _warm_start(
    session: TrainingSession, run: RunFolder, progress: Progress, evaluation: HeldOutEvaluation
) -> TrainingSession:
    """Fit demonstrations, and evaluate; returns the session that continues from there."""
    job, supervised = session.job, run.warm_start
    if supervised.final_step < job.learning.warm_start:
        await train_job(replace(session, job=job.warm_start()), supervised, progress)
    session = replace(session, weights=supervised.weights)
    sampler = supervised.weights.sampler
    with progress.stages() as shown:
        warm = await session.connection.guard(evaluation.play(WARM, sampler, shown))
    for row in warm.of_policy(WARM)[:1]:
        progress.say(f"after the warm start: {row.earned}")
    return session
