"""Before a run resumes: repair what a killed process left, and find the step to resume from."""

import tinker

from tokengym.agents.training.connection import SAVE_EVERY
from tokengym.agents.training.folder.run import RunFolder
from tokengym.envs.core.errors import OptionError


def mend_run(run: RunFolder) -> list[str]:
    """Cut off incomplete lines, and forget the states that were deleted as the run ended.

    Args:
        run: the run, which nobody else may be training; it may be a new one.

    Returns:
        what was lost, for people.

    Raises:
        OptionError: if a file cannot be read, or the record of the saved states is lost.
    """
    notices = []
    for folder in (run, run.warm_start):
        notices += [f"{folder.folder.name}/{lost}" for lost in folder.mend()]
        folder.forget_deleted_checkpoints()
    # A disk may have been full before anything was saved; a record that is lost is another matter.
    local = run.service_folder.is_dir()
    recorded = run.holds_states or not local
    unsaved = run.steps_done > (1 if local else SAVE_EVERY) and not run.saved_steps
    if unsaved and run.outcome is None and recorded:
        raise OptionError(
            f"{run.folder} has {run.steps_done} completed steps, but its checkpoints.jsonl records "
            "no state to resume from: restore that file, or train in another folder"
        )
    return notices


async def forget_lost_states(run: RunFolder, base_url: str | None) -> list[str]:
    """Forget the saved states after the last one that the service still has.

    A service deletes rolling states when their time is over. A finished run needs none.

    Args:
        run: the run.
        base_url: address of the service; `None` for the hosted one's own.

    Returns:
        what was lost, for people.

    Raises:
        OptionError: if the service has none of them. Nothing is forgotten then.
    """
    states, steps = run.states(), run.saved_steps
    if run.outcome is not None or not steps:
        return []
    rest = tinker.RestClient(base_url=base_url)
    for step in reversed(steps):
        if await _is_kept(rest, states[step]):
            break
    else:
        raise OptionError(
            f"the service has no state of {run.folder} any more (the last one was saved after step "
            f"{steps[-1]}): train in another folder"
        )
    if step == steps[-1]:
        return []
    run.forget_checkpoints_after(step)
    return [f"the service no longer has the state after step {steps[-1]}"]


def forget_unsaved_steps(run: RunFolder) -> list[str]:
    """Forget the steps after the last saved state, which are done again; returns what was lost."""
    done, saved = run.steps_done, max(run.saved_steps, default=0)
    if done <= saved:
        return []
    run.forget_steps_from(saved)
    steps = "1 step was" if done == saved + 1 else f"{done - saved} steps were"
    return [f"{steps} completed but not saved: resuming from step {saved}"]


async def _is_kept(rest: tinker.RestClient, path: str) -> bool:
    try:
        await rest.get_weights_info_by_tinker_path(path)
    except tinker.NotFoundError:
        return False
    return True
