"""What `tokengym train` prints at the end of a run, and when one is interrupted."""

import shlex
from typing import TYPE_CHECKING

from tokengym.agents.training.folder.run import RunFolder

if TYPE_CHECKING:
    from tokengym.agents.training.folder.run_summary import RunSummary
    from tokengym.agents.training.job import Job
    from tokengym.agents.training.progress import Progress


def resume_advice(job: "Job", run: RunFolder) -> str:
    """State what is kept of an interrupted run, and how to resume it."""
    if not run.exists:
        return "nothing was begun"
    from tokengym.agents.training.resume import saved_steps

    saved = saved_steps(job, run)
    policies = run.policies(job.config, job.roles).values()
    rows = [row for one in policies for row in one.checkpoints()]
    passing = any(row.get("rolling") and row["batch"] == saved for row in rows)
    days = ", and the service keeps it for 30 days" if passing and not job.target.local else ""
    kept = f"The state after step {saved} is saved{days}" if saved else "No step is saved yet"
    return f"{kept}; {resume_command(run)}"


def resume_command(run: RunFolder) -> str:
    """State the command that resumes a run."""
    return f"resume with: tokengym resume {shlex.quote(str(run.folder))}"


def summarise(job: "Job", run: RunFolder, outcome: "RunSummary", progress: "Progress") -> None:
    """Summarise the job's results in a few lines."""
    if outcome.collapse is not None:
        progress.say(
            f"COLLAPSED at step {outcome.collapse.since}: {outcome.collapse.reason}. The last good "
            f"checkpoint is kept. What to try: {outcome.collapse.advice}."
        )
    first, *further = job.trained
    lines = outcome.references[first].lines
    width = max(map(len, lines)) + 2
    before, after = outcome.before.returns, outcome.after.returns
    progress.say(f"held-out return before {before}, after {after} (95 % intervals)")
    progress.say(
        f"(at temperature {job.config.temperature:g}, at most {job.max_tokens} tokens a reply, "
        f"model {job.config.model})"
    )
    for name, value in sorted(lines.items(), key=lambda item: -item[1].value):
        progress.say(f"  {name:<{width}}{value}")
    exact = outcome.before.expected, outcome.after.expected
    if None not in exact:
        progress.say("given the exact probabilities: before {}, after {}".format(*exact))
    for name in (first, *further):
        if name != first:
            before, after = outcome.before.of(name).returns, outcome.after.of(name).returns
            progress.say(f"held-out return of {name} before {before}, after {after}")
        of_name = f"{name}: " if further else ""
        progress.say(f"{of_name}{outcome.skill(name)}")
        expected = outcome.expected_skill(name)
        if expected is not None:
            progress.say(f"{of_name}given the exact probabilities: {expected}")
        low = outcome.low_returns(name)
        if low is not None:
            progress.say(f"{of_name}{low}")
        for words, skill in outcome.since_warm_start(name):
            progress.say(f"{of_name}{words}: {skill}")
    progress.say("(skill: 0 is the best policy that ignores the Task, 1 the oracle)")
    progress.say(f"report: {run.folder / 'report.html'}")
