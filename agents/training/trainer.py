"""Training a job, monitored."""

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import chz
import tinker_cookbook
from tinker_cookbook.rl import train as cookbook
from tinker_cookbook.rl.rollout_presets import default_rollout_strategy_for_model
from tinker_cookbook.rl.rollout_strategy import FailFast
from tinker_cookbook.rl.types import RLDataset

from tokengym.agents.rollouts import TrainRollouts
from tokengym.agents.training.batches.collect import RolloutCollector
from tokengym.agents.training.batches.examples import ExampleOrder, demonstrations, preference_pairs
from tokengym.agents.training.batches.mixture import WorldMixture
from tokengym.agents.training.batches.sampling import SeededRollouts
from tokengym.agents.training.config import PreferenceSettings, RolloutSettings
from tokengym.agents.training.connection import environment_variable
from tokengym.agents.training.folder.collapse import Collapse, find_collapse
from tokengym.agents.training.folder.run import RunFolder
from tokengym.agents.training.job import Job
from tokengym.agents.training.loop import BatchSource, train
from tokengym.agents.training.progress import Progress
from tokengym.agents.training.session import TrainingSession

_POLL_SECONDS = 0.3


async def train_job(
    session: TrainingSession,
    run: RunFolder,
    progress: Progress,
    blind: float | None = None,
) -> Collapse | None:
    """Train a job into its run folder, from where the folder's checkpoints end.

    Args:
        session: the job.
        run: its folder.
        progress: where to show how it goes.
        blind: what the best policy that ignores the Task earns on average; `None` where training
            Tasks differ from those it was measured on.

    Returns:
        how the run collapsed, or `None`. Its checkpoints since then are forgotten.
    """
    job = session.job
    run.write_config(job.config)
    rollouts = kept_rollouts(session, run)
    # Steps after the last saved one are done again; a kill may have come before that was sealed.
    done = max(run.saved_steps, default=0)
    rollouts.discard_from(done)
    rollouts.seal(done - 1)
    config = _cookbook_config(session, run.folder)
    source = await _source(session, config, run, rollouts)
    schedule, warmup = job.config.schedule, job.config.lr_warmup
    work = train(config, source, run, job.config.seed, schedule, warmup, progress.say)
    # The cookbook looks for a repository around itself, and would write the changes in it to the
    # run folder: an environment may lie within somebody's own project.
    package = Path(tinker_cookbook.__file__).resolve().parent
    with environment_variable("GIT_CEILING_DIRECTORIES", str(package.parent)):
        training = asyncio.ensure_future(work)
        try:
            collapse = await session.connection.guard(
                _watch(training, job, run, rollouts, progress, blind)
            )
        finally:
            if not training.done():
                training.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await training
    run.forget_deleted_checkpoints()
    if collapse is not None:
        run.forget_checkpoints_after(collapse.since)
    return collapse


def kept_rollouts(session: TrainingSession, run: RunFolder) -> TrainRollouts:
    """Return what saves the rollouts of a job's training steps in its run folder."""
    job = session.job
    kept = job.config.group(RolloutSettings)
    others = {} if job.self_play else session.opponents[job.roles[0]]
    return TrainRollouts(
        str(run.rollouts.folder),
        kept.rollout_share,
        kept.rollout_bytes,
        job.config.steps,
        job.origin("train", job.config.model, others),
    )


async def _source(
    session: TrainingSession, config: cookbook.Config, run: RunFolder, rollouts: TrainRollouts
) -> BatchSource:
    job, settings = session.job, session.job.config
    if isinstance(settings, PreferenceSettings):
        reference = await session.sampler(session.start(state=False))
        size = max(1, settings.groups_per_batch * settings.group_size // 2)
        order = ExampleOrder(len(job.preferences), size, settings.seed)
        return preference_pairs(job.preferences, order, settings.steps, reference, settings.beta)
    if not isinstance(settings, RolloutSettings):
        return demonstrations(job, session.opponents)
    spare = None
    if job.algorithm.filter == "resample":
        spare, _ = await job.further_dataset(session.opponents)()
    return RolloutCollector(
        config,
        job.algorithm,
        await _groups(session, settings),
        spare,
        job.config.seed,
        rollouts,
        {part.world.spec.id: part.world.spec for part in (job, *job.others)},
    )


async def _groups(session: TrainingSession, settings: RolloutSettings) -> RLDataset:
    """Return the groups of every step: of one world or several."""
    job, config = session.job, session.job.config
    if not job.others:
        return (await job.dataset(session.opponents)())[0]
    each = {"n_batches": config.steps * config.groups_per_batch, "groups_per_batch": 1}
    parts = [session.of(name)[0] for name in job.trained]
    builders = [part.job.dataset(part.opponents) for part in parts]
    sources = [(await chz.replace(builder, prefetch=False, **each)())[0] for builder in builders]
    return WorldMixture(sources, settings.shares(), config.groups_per_batch, config.seed)


async def _watch(
    training: "asyncio.Future[None]",
    job: Job,
    run: RunFolder,
    rollouts: TrainRollouts,
    progress: Progress,
    blind: float | None,
) -> Collapse | None:
    log = run.step_log()
    log.poll()
    with progress.steps(job.config.steps, log.rows) as show:
        while True:
            done, _ = await asyncio.wait({training}, timeout=_POLL_SECONDS)
            for row in log.poll():
                show(row)
                if epoch := job.epoch_begun(row.step):
                    progress.say(epoch)
                rollouts.seal(row.step)
            if done:
                training.result()
                return None
            # Learning from existing data does not depend on ties.
            patience = job.learning.patience if job.config.command == "train" else 0
            collapse = find_collapse(log.rows, patience, blind)
            if collapse is not None:
                return collapse


def _cookbook_config(session: TrainingSession, folder: Path) -> cookbook.Config:
    """Return a job's configuration in the cookbook's terms, in which run folders keep it."""
    job, config, connection = session.job, session.job.config, session.connection
    fields: dict[str, Any] = {
        "learning_rate": config.learning_rate,
        "dataset_builder": job.dataset(session.opponents),
        "load_checkpoint_path": session.start(state=True),
        "model_name": connection.model,
        "renderer_name": config.renderer,
        "recipe_name": "tokengym",
        "max_tokens": job.max_tokens,
        "temperature": config.temperature,
        "lora_rank": config.lora_rank,
        "log_path": str(folder),
        "session_name": folder.name,
        "base_url": connection.base_url,
        "loss_fn": config.token_loss,
        "loss_fn_config": dict(config.group(RolloutSettings).loss_options) or None,
        "num_substeps": config.substeps,
        "wandb_project": config.wandb,
        "eval_every": 0,
        "save_every": config.save_every,
        "rolling_save_every": job.target.save_interval,
        "rolling_ttl_seconds": job.target.kept_seconds,
        "num_groups_to_log": 0,
        "rollout_json_export": False,
        "ttl_seconds": None,
    }
    if isinstance(default_rollout_strategy_for_model(connection.model), FailFast):
        fields["rollout_error_tolerance"] = SeededRollouts((config.seed,))
    if isinstance(config, RolloutSettings) and config.mode == "async":
        # From 0.6 on the cookbook asks for the loss here as well.
        known = chz.chz_fields(cookbook.AsyncConfig)
        named = {"loss_fn": config.token_loss} if "loss_fn" in known else {}
        fields["async_config"] = cookbook.AsyncConfig(
            max_steps_off_policy=2, groups_per_batch=config.groups_per_batch, **named
        )
    if job.learning.kl:
        fields["kl_penalty_coef"] = job.learning.kl
        fields["kl_reference_config"] = cookbook.KLReferenceConfig(
            base_model=connection.model, load_checkpoint_path=session.start(state=False)
        )
    return cookbook.Config(**fields)
