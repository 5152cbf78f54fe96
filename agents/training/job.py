"""A training job from start to end: connect, evaluate, train, watch, evaluate again, report."""

import asyncio
import contextlib
import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import chz
import chz.blueprint
import tinker
from filelock import FileLock, Timeout
from tinker_cookbook.rl import train as trainer

from tokengym.agents.analysis.episode_pictures import draw_episodes
from tokengym.agents.analysis.evaluate import Estimate
from tokengym.agents.analysis.evaluation import (
    Evaluation,
    Opponents,
    evaluate_roles,
    held_out_tasks,
    references_beside,
)
from tokengym.agents.analysis.report import write_report
from tokengym.agents.tinker.codec import RendererCodec
from tokengym.agents.tinker.dataset import TaskDatasetBuilder
from tokengym.agents.training.config import SETTINGS_FILE, TrainSettings
from tokengym.agents.training.connection import Connection, resolve_model
from tokengym.agents.training.cost import Cost, job_cost
from tokengym.agents.training.loop import train as train_own
from tokengym.agents.training.monitor import Collapse, StepLog, find_collapse
from tokengym.agents.training.multi_policy import train_separately
from tokengym.agents.training.opponents import (
    check_players,
    players,
    saved_weights,
    weights_at,
)
from tokengym.agents.training.progress import Progress
from tokengym.agents.training.records import (
    forget_checkpoints_from,
    forget_deleted_checkpoints,
)
from tokengym.agents.training.session import session
from tokengym.agents.training.sft import Demonstrations, imitate
from tokengym.envs.core.errors import OptionError

OUTCOME_FILE = "outcome.json"

_POLL_SECONDS = 0.3
_SAVE_EVERY = 20
_ROLLING_SECONDS = 30 * 24 * 3600  # a job stopped on Friday can go on after a holiday
_NO_SUCH_SETTING = (
    ValueError,
    chz.blueprint.ConstructionException,
    chz.blueprint.ExtraneousBlueprintArg,
    chz.blueprint.InvalidBlueprintArg,
    chz.blueprint.MissingBlueprintArg,
)
_TASKS_A_SEED = 1_000_000
_FURTHER_TASKS = 500_000  # of a seed's Tasks, the last ones stand in for others


@dataclass(frozen=True)
class Outcome:
    """What a job came to.

    Attributes:
        folder: the run folder.
        before: the policy as it was, on held-out test Tasks.
        after: the policy as it became. After a collapse that is its last good checkpoint, or the
            start if there was none yet.
        references: scripted policies on the same Tasks, by name.
        collapse: how the run collapsed, or `None`.
        other_references: where several roles are trained, references of all but the first by role.
    """

    folder: Path
    before: Evaluation
    after: Evaluation
    references: Mapping[str, Estimate]
    collapse: Collapse | None
    other_references: Mapping[str, Mapping[str, Estimate]] = field(default_factory=dict)


def run_job(settings: TrainSettings, folder: Path, progress: Progress) -> Outcome:
    """Run a job in `folder`, or go on with the one that is there.

    Args:
        settings: the job.
        folder: the run folder; made if missing. Completed steps in it are kept and not done again.
        progress: where to show how it goes.

    Raises:
        OptionError: if an agent's name is nobody's, an override does not fit the trainer, or the
            run is being trained already.
        ServiceDiedError: if the local service ended by itself; the run can be resumed.
    """
    check_players(settings)
    _check_overrides(settings)
    folder.mkdir(parents=True, exist_ok=True)
    with _held(folder):
        settings.save(folder / SETTINGS_FILE)
        progress.say(f"run folder: {folder}")
        with (
            Connection.open(settings, folder) as connection,
            _console_to(folder / "console.log"),
        ):
            return asyncio.run(_connected(settings, folder, progress, connection))


@contextlib.contextmanager
def _held(folder: Path) -> Iterator[None]:
    """Keep other processes out of a run; the lock goes when this one ends, however that happens."""
    lock = FileLock(folder / "run.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise OptionError(f"{folder} is being trained by another process") from None
    try:
        yield
    finally:
        lock.release()


def tell_cost(settings: TrainSettings) -> Cost:
    """Return what a job will use in tokens, judged by a few scripted episodes."""
    codec = RendererCodec(settings.renderer, resolve_model(settings))
    return job_cost(settings, codec, held_out_tasks(replace(settings, evaluation_tasks=16)))


async def _connected(
    settings: TrainSettings, folder: Path, progress: Progress, connection: Connection
) -> Outcome:
    async with session(connection.base_url) as client:
        return await _run(settings, folder, progress, connection, client)


async def _run(
    settings: TrainSettings,
    folder: Path,
    progress: Progress,
    connection: Connection,
    client: tinker.ServiceClient,
) -> Outcome:
    tasks = held_out_tasks(settings)
    roles = settings.trained
    opponents: dict[str, Opponents] = {}
    references: dict[str, dict[str, Estimate]] = {}
    for role in roles:
        named = settings.opponents_of(role)
        opponents[role] = await connection.guard(players(settings, named, connection, client))
        lines = references_beside(settings, tasks, role, opponents[role])
        references[role] = await connection.guard(lines)
    start = settings.start and weights_at(settings.start, connection, state=False)

    async def evaluation(paths: Mapping[str, str | None]) -> Evaluation:
        samplers = {
            role: await client.create_sampling_client(model_path=path)
            if path
            else await client.create_sampling_client(base_model=connection.model)
            for role, path in paths.items()
        }
        return await evaluate_roles(settings, connection.model, samplers, tasks, opponents)

    before_file = folder / "evaluation_before.json"
    if before_file.exists():
        before = Evaluation.from_dict(json.loads(before_file.read_text()))
    else:
        before = await connection.guard(evaluation(dict.fromkeys(roles, start)))
        _write_json(before_file, before.to_dict())
    progress.say(f"before: {before.returns} on {len(tasks)} held-out Tasks")
    collapse = await _train(settings, folder, progress, connection, opponents)
    saved = {role: saved_weights(_policy_folder(settings, folder, role)) for role in roles}
    paths = {role: found.sampler or start for role, found in saved.items()}
    after = await connection.guard(evaluation(paths))
    first = references.pop(roles[0])
    outcome = Outcome(folder, before, after, first, collapse, references)
    steps = StepLog(folder / "metrics.jsonl")
    steps.poll()
    warning = "" if collapse is None else f"Collapsed at step {collapse.since}: {collapse.reason}."
    episodes = draw_episodes(folder, settings, tasks[0], first, before, after)
    write_report(folder, settings, steps.rows, first, before, after, warning, episodes, references)
    _save_outcome(outcome, paths)
    return outcome


async def _train(
    settings: TrainSettings,
    folder: Path,
    progress: Progress,
    connection: Connection,
    opponents: Mapping[str, Opponents],
) -> Collapse | None:
    """Run the job's loop under watch; `None` unless the run collapsed."""
    for role in settings.trained:
        policy = _policy_folder(settings, folder, role)
        policy.mkdir(exist_ok=True)
        settings.save(policy / SETTINGS_FILE)
    groups = _groups(settings, connection, opponents)
    config = trainer_config(settings, folder, connection, groups)
    if settings.sft:
        first = settings.seed * _TASKS_A_SEED
        shown = Demonstrations(settings, connection.model, first, opponents)
        work = imitate(config, shown, settings.steps)
    elif settings.separate:
        work = train_separately(config, settings.trained)
    elif settings.own_loop:
        spare = _further_groups(settings, groups) if settings.filter == "resample" else None
        work = train_own(config, settings.choices, spare)
    else:
        forget_deleted_checkpoints(folder)
        work = trainer.main(config)
    training = asyncio.ensure_future(work)
    try:
        return await connection.guard(_watch(training, settings, folder, progress))
    finally:
        await _cancelled(training)


async def _watch(
    training: "asyncio.Future[None]", settings: TrainSettings, folder: Path, progress: Progress
) -> Collapse | None:
    log = StepLog(folder / "metrics.jsonl")
    log.poll()
    with progress.steps(settings.steps, log.rows) as bar:
        while True:
            done, _ = await asyncio.wait({training}, timeout=_POLL_SECONDS)
            for row in log.poll():
                bar.show(row)
            if done:
                training.result()
                return None
            collapse = find_collapse(log.rows)
            if collapse is not None:
                await _cancelled(training)
                for role in settings.trained:
                    forget_checkpoints_from(_policy_folder(settings, folder, role), collapse.since)
                return collapse


async def _cancelled(training: "asyncio.Future[None]") -> None:
    """Stop the trainer if it still runs, and wait until it has."""
    if not training.done():
        training.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await training


def _check_overrides(settings: TrainSettings) -> None:
    """Make the trainer's configuration for nobody, so that what does not fit fails at once."""
    nowhere = Connection(resolve_model(settings), None, None)
    groups = _groups(settings, nowhere, {role: {} for role in settings.trained})
    trainer_config(replace(settings, start=None), Path(), nowhere, groups)


def trainer_config(
    settings: TrainSettings, folder: Path, connection: Connection, groups: TaskDatasetBuilder
) -> trainer.Config:
    """Return the cookbook's configuration for a job; `settings.overrides` have the last word.

    Raises:
        OptionError: if an override names no field or has no value for it, or the run to start from
            has saved no weights.
    """
    start = settings.start and weights_at(settings.start, connection, state=True)
    fields: dict[str, Any] = {
        "learning_rate": settings.learning_rate,
        "dataset_builder": groups,
        "load_checkpoint_path": start,
        "model_name": connection.model,
        "renderer_name": settings.renderer,
        "recipe_name": "tokengym",
        "max_tokens": settings.max_tokens,
        "temperature": settings.temperature,
        "lora_rank": settings.lora_rank,
        "log_path": str(folder),
        "session_name": folder.name,
        "base_url": connection.base_url,
        "eval_every": 0,
        "save_every": _SAVE_EVERY,
        "rolling_save_every": 1 if connection.local else _SAVE_EVERY,
        "rolling_ttl_seconds": _ROLLING_SECONDS,
        "num_groups_to_log": 0,
        "rollout_json_export": False,
        "ttl_seconds": None,
        "remove_constant_reward_groups": settings.filter == "drop" and not settings.own_loop,
    }
    if settings.mode == "stream":
        fields["stream_minibatch_config"] = trainer.StreamMinibatchConfig(
            groups_per_batch=settings.groups_per_batch, num_minibatches=2
        )
    elif settings.mode == "async":
        fields["async_config"] = trainer.AsyncConfig(
            max_steps_off_policy=2, groups_per_batch=settings.groups_per_batch
        )
    blueprint = chz.Blueprint(trainer.Config).apply(fields)
    try:
        return blueprint.make_from_argv(list(settings.overrides), allow_hyphens=False)
    except _NO_SUCH_SETTING as error:
        reason = str(error).splitlines()[0]
        raise OptionError(f"{list(settings.overrides)} do not fit the trainer: {reason}") from error


def _groups(
    settings: TrainSettings, connection: Connection, opponents: Mapping[str, Opponents]
) -> TaskDatasetBuilder:
    """Return what builds the groups of every step."""
    role = settings.trained[0]
    return TaskDatasetBuilder(
        world=settings.world,
        level=settings.level,
        options=dict(settings.options),
        first_task=settings.seed * _TASKS_A_SEED,
        n_batches=settings.steps,
        groups_per_batch=settings.groups_per_batch,
        group_size=settings.group_size,
        model_name_for_tokenizer=connection.model,
        renderer_name=settings.renderer,
        role=None if settings.self_play else role,
        self_play=settings.self_play,
        opponents={} if settings.self_play else dict(opponents[role]),
        max_turn_tokens=settings.max_tokens,
    )


def _further_groups(settings: TrainSettings, groups: TaskDatasetBuilder) -> TaskDatasetBuilder:
    """Return what builds groups one by one, of Tasks that no step starts with."""
    first = (settings.seed + 1) * _TASKS_A_SEED - _FURTHER_TASKS
    return chz.replace(groups, first_task=first, n_batches=_FURTHER_TASKS, groups_per_batch=1)


def _policy_folder(settings: TrainSettings, folder: Path, role: str) -> Path:
    """Where the checkpoints of a role's policy are recorded."""
    return folder / role if settings.separate else folder


def _save_outcome(outcome: Outcome, paths: Mapping[str, str | None]) -> None:
    collapse = outcome.collapse
    data = {
        "state": "completed" if collapse is None else "collapsed",
        "collapse": None if collapse is None else asdict(collapse),
        "sampler_path": next(iter(paths.values())),
        "sampler_paths": dict(paths),
        "before": outcome.before.to_dict(),
        "after": outcome.after.to_dict(),
        "references": _listed(outcome.references),
        "other_references": {
            role: _listed(lines) for role, lines in outcome.other_references.items()
        },
    }
    _write_json(outcome.folder / OUTCOME_FILE, data)


def _listed(lines: Mapping[str, Estimate]) -> dict[str, list[float]]:
    return {name: list(value) for name, value in lines.items()}


def _write_json(path: Path, data: Mapping[str, Any]) -> None:
    """Write a file as a whole or not at all: a run may be killed at any moment."""
    new = path.with_suffix(".new")
    new.write_text(json.dumps(data, indent=1) + "\n")
    new.replace(path)


@contextlib.contextmanager
def _console_to(path: Path) -> Iterator[None]:
    """Send what the libraries print (tables, bars, warnings) to a file of the run folder."""
    root = logging.getLogger()
    handlers = list(root.handlers)
    with (
        path.open("a", encoding="utf-8") as file,
        contextlib.redirect_stdout(file),
        contextlib.redirect_stderr(file),
    ):
        try:
            yield
        finally:
            # The trainer's handlers write to the file, which is about to be closed.
            root.handlers[:] = handlers
