"""Before a run resumes: repair what a killed process left, and find the step to resume from."""

from collections.abc import Mapping, Sequence

import tinker

from tokengym.agents.training.folder.run import RunFolder
from tokengym.agents.training.job import Job
from tokengym.agents.training.trainer import save_interval
from tokengym.envs.core.errors import OptionError


def mend_run(job: Job, run: RunFolder) -> list[str]:
    """Cut off incomplete lines.

    Args:
        job: that goes on.
        run: its run, which nobody else may be training; it may be a new one.

    Returns:
        what was lost, for people.

    Raises:
        OptionError: if a file cannot be read, or the record of the saved states is lost.
    """
    notices = [
        f"{one.folder.name}/{lost}"
        for one in dict.fromkeys([run, run.warm_start, *_policies(job, run)])
        for lost in one.mend()
    ]
    # A disk may have been full before anything was saved; a record that is lost is another matter.
    recorded = run.holds_states or not job.target.local
    unsaved = run.steps_done > save_interval(job.target) and not saved_steps(job, run)
    if unsaved and run.outcome is None and recorded:
        raise OptionError(
            f"{run.folder} has {run.steps_done} completed steps, but its checkpoints.jsonl records "
            "no state to resume from: restore that file, or train in another folder"
        )
    return notices


async def forget_lost_states(base_url: str | None, job: Job, run: RunFolder) -> list[str]:
    """Forget the saved states after the last one that the service still has for all policies.

    A service deletes rolling states when their time is over. A finished run needs none.

    Args:
        base_url: address of the service; `None` for the hosted one's own.
        job: the job.
        run: its run.

    Returns:
        what was lost, for people.

    Raises:
        OptionError: if it has none of them. Nothing is forgotten then.
    """
    states = [one.states() for one in _policies(job, run)]
    steps = sorted(_common_steps(states), reverse=True)
    if run.outcome is not None or not steps:
        return []
    rest = tinker.RestClient(base_url=base_url)
    for step in steps:
        if all([await _is_kept(rest, one[step]) for one in states]):
            break
    else:
        raise OptionError(
            f"the service has no state of {run.folder} any more (the last one was saved after step "
            f"{steps[0]}): train in another folder"
        )
    if step == steps[0]:
        return []
    for one in _policies(job, run):
        one.forget_checkpoints_after(step)
    return [f"the service no longer has the state after step {steps[0]}"]


def forget_unsaved_steps(job: Job, run: RunFolder) -> list[str]:
    """Forget the steps after the last saved state, which are done again; returns what was lost."""
    done, saved = run.steps_done, saved_steps(job, run)
    if done <= saved:
        return []
    run.forget_steps_from(saved)
    steps = "1 step was" if done == saved + 1 else f"{done - saved} steps were"
    return [f"{steps} completed but not saved: resuming from step {saved}"]


def saved_steps(job: Job, run: RunFolder) -> int:
    """Return the number of steps after which all policies of a run were last saved."""
    return max(_common_steps([one.states() for one in _policies(job, run)]), default=0)


def _policies(job: Job, run: RunFolder) -> list[RunFolder]:
    return list(run.policies(job.config, job.roles).values())


def _common_steps(states: Sequence[Mapping[int, str]]) -> set[int]:
    """Return the steps after which all policies have a saved state."""
    return set.intersection(*map(set, states))


async def _is_kept(rest: tinker.RestClient, path: str) -> bool:
    try:
        await rest.get_weights_info_by_tinker_path(path)
    except tinker.NotFoundError:
        return False
    return True
