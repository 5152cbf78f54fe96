"""Before a run resumes: repair what a killed process left, and find the step to resume from."""

from tokengym.agents.training.job import Job
from tokengym.agents.training.run import Run
from tokengym.agents.training.trainer import save_interval
from tokengym.envs.core.errors import OptionError


def mend_run(job: Job, run: Run) -> list[str]:
    """Cut off incomplete lines, and forget steps that were not saved.

    Args:
        job: that goes on.
        run: its run, which nobody else may be training; it may be a new one.

    Returns:
        what was lost and what is done again, for people.

    Raises:
        OptionError: if a file cannot be read, or the record of the saved states is lost.
    """
    policies = run.policies(job.config, job.roles).values()
    notices = [
        f"{one.folder.name}/{lost}"
        for one in dict.fromkeys([run, run.warm_start, *policies])
        for lost in one.mend()
    ]
    done, saved = run.steps_done, saved_steps(job, run)
    # A disk may have been full before anything was saved; a record that is lost is another matter.
    recorded = run.holds_states or not job.target.local
    if done > save_interval(job.target) and not saved and run.outcome is None and recorded:
        raise OptionError(
            f"{run.folder} has {done} completed steps, but its checkpoints.jsonl records no state "
            "to resume from: restore that file, or train in another folder"
        )
    if done > saved:
        steps = "1 step was" if done == saved + 1 else f"{done - saved} steps were"
        notices.append(f"{steps} completed but not saved: resuming from step {saved}")
        run.forget_steps_from(saved)
    return notices


def saved_steps(job: Job, run: Run) -> int:
    """Return the number of steps after which all policies of a run were last saved."""
    policies = run.policies(job.config, job.roles).values()
    return max(set.intersection(*(set(one.states()) for one in policies)), default=0)
