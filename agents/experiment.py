"""An experiment: evaluate a policy, train it, evaluate it again, report."""

import asyncio
from dataclasses import replace

from tokengym.agents.analysis.report import Table
from tokengym.agents.evaluation.held_out import evaluate_roles, reference_lines
from tokengym.agents.rollouts.same_answers import require_same_answers
from tokengym.agents.run_async import run_async
from tokengym.agents.training.budget import TokenBudget
from tokengym.agents.training.capabilities import require, service_capabilities
from tokengym.agents.training.connection import Connection
from tokengym.agents.training.folder.environment import describe_environment
from tokengym.agents.training.folder.run import RunFolder
from tokengym.agents.training.folder.run_summary import Evaluation, RunSummary
from tokengym.agents.training.job import Job
from tokengym.agents.training.progress import Progress
from tokengym.agents.training.resume import forget_lost_states, forget_unsaved_steps, mend_run
from tokengym.agents.training.session import TrainingSession
from tokengym.agents.training.trainer import train_job
from tokengym.agents.viewer import REPORT, write_page


def run_experiment(job: Job, run: RunFolder, progress: Progress) -> RunSummary:
    """Run a job in its folder, or resume the one that is there.

    Args:
        job: the job.
        run: its run folder; made if missing. The run resumes from the last state that was saved
            and that the service still has; what is lost is shown.
        progress: where to show how it goes.

    Raises:
        OptionError: if another process trains the run, its files are damaged, answers in its data
            have changed, or the service has none of its states any more.
        ServiceDiedError: if the local service ended by itself; the run can be resumed.
        ServiceRefusedError: if the service answered with an error, or lacks what the job needs.
    """

    async def connected() -> RunSummary:
        if not job.target.local:
            await _capabilities(job, connection, progress)
        async with TrainingSession.open(job, connection) as session:
            lost = await connection.guard(forget_lost_states(run, connection.base_url))
            for notice in [*lost, *forget_unsaved_steps(run)]:
                progress.say(notice)
            return await _experiment(session, run, progress)

    with run.lock():
        for notice in mend_run(run):
            progress.say(notice)
        if not all(part.world.generates for part in (job, *job.others)):
            anew = "restore them, or train in a new folder (--run)"
            require_same_answers(run.rollouts.read(), str(run.folder), anew)
        run.write_config(job.config)
        progress.say(f"run folder: {run.folder}")
        opened = Connection.open(job.target, run.service_folder, job.config.seed)
        with opened as connection, run.console():
            if run.write_environment(describe_environment(connection)):
                progress.say(
                    "the run began in another environment: figures may differ, see environment.json"
                )
            return run_async(connected())


async def _capabilities(job: Job, connection: Connection, progress: Progress) -> None:
    """Show what a service that is not ours can do; refuse it if the job needs more."""
    found = await service_capabilities(job, connection)
    cells = [[row.name, f"no: {row.missing}" if row.missing else "yes", row.use] for row in found]
    header = ["of the protocol", job.target.base_url or "hosted service", "this run"]
    progress.show(Table(header, cells).for_terminal())
    require(found)


async def _experiment(session: TrainingSession, run: RunFolder, progress: Progress) -> RunSummary:
    job, guard = session.job, session.connection.guard
    for part in (job, *job.others):
        # In a thread: drawing a Task may take a solver.
        await asyncio.to_thread(getattr, part.evaluated, "held_out")
    start = session.start(state=False)
    # What scripted policies earn is measured meanwhile.
    references, before = await asyncio.gather(
        guard(reference_lines(session)), _evaluated(session, run, start, "before")
    )
    run.write_references(references)
    for name, (part, _) in job.trained.items():
        of_name = f" ({name})" if len(job.trained) > 1 else ""
        count = len(part.held_out)
        progress.say(f"before{of_name}: {before.of(name).earned} on {count} held-out Tasks")
        if warning := before.of(name).form_warning:
            progress.say(warning)
    warm, budget = None, TokenBudget.of_run(job.config, run)
    if job.learning.warm_start:
        session, warm = await _warm_start(session, run, progress, budget)
        start, budget = session.start(state=False), TokenBudget.of_run(job.config, run)
    collapse = await train_job(session, run, progress, budget)
    policies = run.policies
    paths = {name: policies.get(name, run).weights.sampler or start for name in job.trained}
    after = await guard(evaluate_roles(session, paths, run.rollouts, "after"))
    ending = budget.ending(job.config.steps)
    outcome = RunSummary(before, after, references, collapse, paths, warm, ending)
    run.write_outcome(outcome)
    write_page([run.folder], run.folder / REPORT)
    return outcome


async def _warm_start(
    session: TrainingSession, run: RunFolder, progress: Progress, budget: TokenBudget
) -> tuple[TrainingSession, Evaluation]:
    """Fit demonstrations; returns the session that continues from there, and an evaluation."""
    job, supervised = session.job, run.warm_start
    if supervised.final_step < job.learning.warm_start:
        await train_job(replace(session, job=job.warm_start()), supervised, progress, budget)
    session = replace(session, weights=supervised.weights)
    warm = await _evaluated(session, run, supervised.weights.sampler, "warm")
    progress.say(f"after the warm start: {warm.earned}")
    return session, warm


async def _evaluated(
    session: TrainingSession, run: RunFolder, path: str | None, name: str
) -> Evaluation:
    """Return an evaluation of the weights at a path; it is played unless it is on record."""
    evaluation = run.evaluation(name)
    if evaluation is None:
        paths = dict.fromkeys(session.job.trained, path)
        played = evaluate_roles(session, paths, run.rollouts, name)
        evaluation = await session.connection.guard(played)
        run.write_evaluation(name, evaluation)
    return evaluation
