"""The loop: draw, update, sample from what it became; resumable, in the cookbook's run folder."""

import asyncio
import contextlib
import logging
from pathlib import Path

import tinker
from tinker_cookbook.rl.metrics import incorporate_kl_penalty
from tinker_cookbook.rl.train import Config, save_checkpoint_and_get_sampling_client
from tinker_cookbook.rl.types import RLDatasetBuilder
from tinker_cookbook.utils import ml_log, trace

from tokengym.agents.training.algorithm import Choices
from tokengym.agents.training.rollouts import Drawer, Drawn
from tokengym.agents.training.session import Learner, learner, training_session
from tokengym.agents.training.updates import submit
from tokengym.envs.core.errors import OptionError

logger = logging.getLogger(__name__)

_OFF: dict[str, object] = {
    "eval_every": 0,
    "evaluator_builders": [],
    "stream_minibatch_config": None,
    "remove_constant_reward_groups": False,
    "compute_post_kl": False,
    "enable_trace": False,
    "span_chart_every": 0,
    "num_groups_to_log": 0,
    "rollout_json_export": False,
}
"""What only the cookbook's loop does, and how it is turned off."""


async def train(config: Config, choices: Choices, spare: RLDatasetBuilder | None = None) -> None:
    """Train as `tinker_cookbook.rl.train.main` does, with any of the choices.

    The run folder is the cookbook's: `config.json`, `metrics.jsonl`, `checkpoints.jsonl`; a run
    that is there is gone on with. The run's name, the folder's, names the session, the log's lines
    and, where there is one, the Weights & Biases run.

    A step waits for its groups, submits the update and the saving of its weights together, and
    samples the next groups from these weights. With `config.async_config` the next groups are
    sampled while the update runs, from the weights before it: one step off the policy, whatever
    lag the configuration would allow.

    Where a filter leaves nothing of a batch there is no update: the optimizer's momentum would
    move the weights without a reason.

    Args:
        config: as for the cookbook's loop.
        choices: what a step learns from.
        spare: groups one at a time, for `filter="resample"`.

    Raises:
        OptionError: if the configuration asks for what only the cookbook's loop does.
    """
    for name, off in _OFF.items():
        if getattr(config, name) != off:
            raise OptionError(
                f"{name}={getattr(config, name)!r} is for the cookbook's loop alone; leave it out, "
                "or choose what that loop can do"
            )
    run = Path(config.log_path).name
    log = ml_log.setup_logging(
        log_dir=config.log_path,
        wandb_project=config.wandb_project,
        wandb_name=config.wandb_name or run,
        config=config,
    )
    async with training_session(config) as service:
        policy = await learner(service, config, Path(config.log_path), log.store)
        dataset, _ = await config.dataset_builder()
        further = (await spare())[0] if spare is not None else None
        steps = range(policy.start, min(len(dataset), config.max_steps or len(dataset)))
        logger.info("%s: steps %d to %d, %s", run, steps.start, steps.stop, choices)
        drawer = Drawer(config, choices, dataset, further)
        reference = await _reference(service, config)
        await _Steps(config, drawer, policy, reference, log, run).run(steps)
        await policy.finish(steps)
    log.close()


class _Steps:
    """The steps of one run."""

    def __init__(
        self,
        config: Config,
        drawer: Drawer,
        policy: Learner,
        reference: tinker.SamplingClient | None,
        log: ml_log.Logger,
        run: str,
    ) -> None:
        self._config = config
        self._drawer = drawer
        self._client = policy.client
        self._reference = reference
        self._checkpoints = policy.checkpoints
        self._log = log
        self._run = run

    async def run(self, steps: range) -> None:
        ahead = self._config.async_config is not None
        sampler = await self._client.save_weights_and_get_sampling_client_async()
        drawing: asyncio.Task[Drawn] | None = None
        try:
            for step in steps:
                with trace.trace_iteration(step=step) as window:
                    lag = int(drawing is not None)
                    drawn = await (drawing or self._drawer.draw(step, sampler))
                    drawing = None
                    if ahead and step + 1 in steps:
                        drawing = asyncio.create_task(self._drawer.draw(step + 1, sampler))
                    sampler, metrics = await self._update(step, drawn)
                metrics |= {
                    "progress/batch": step,
                    "progress/done_frac": (step + 1) / steps.stop,
                    "optim/lr": self._config.learning_rate,
                    "sampler/lag": lag,
                    **window.get_timing_metrics(),
                }
                window.save_timing(step, store=self._log.store)
                self._log.log_metrics(metrics, step=step)
        finally:
            if drawing is not None:
                drawing.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await drawing

    async def _update(
        self, step: int, drawn: Drawn
    ) -> tuple[tinker.SamplingClient, dict[str, float]]:
        """Train on what was drawn; returns who samples next, and what there is to tell."""
        config, metrics = self._config, dict(drawn.metrics)
        data = list(drawn.data)
        if not data:
            logger.warning("%s: step %d has nothing to train on, no update", self._run, step)
        if data and self._reference is not None:
            metrics |= await incorporate_kl_penalty(
                data, self._reference, config.kl_penalty_coef, config.kl_discount_factor
            )
        metrics["optim/skipped"] = float(not data)
        async with trace.scope_span("update"):
            update = await submit(self._client, data, config)
            # Requests of one client are served in order: these weights are the updated ones.
            told, (sampler, _) = await asyncio.gather(
                update.metrics(),
                save_checkpoint_and_get_sampling_client(self._client, self._checkpoints, step + 1),
            )
        await self._checkpoints.maybe_save_rolling_async(
            step=step + 1, loop_state={"batch": step + 1}
        )
        return sampler, metrics | told


async def _reference(service: tinker.ServiceClient, config: Config) -> tinker.SamplingClient | None:
    """Return what the policy is kept near to, `None` without a penalty.

    Raises:
        OptionError: if there is a penalty and no reference.
    """
    if config.kl_penalty_coef <= 0:
        return None
    if config.kl_reference_config is None:
        raise OptionError(
            f"kl_penalty_coef={config.kl_penalty_coef} needs kl_reference_config, got none"
        )
    return await service.create_sampling_client_async(
        base_model=config.kl_reference_config.base_model,
        model_path=config.kl_reference_config.load_checkpoint_path,
    )
