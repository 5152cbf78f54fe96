"""The training loop: batches from a source, updates of a policy; resumable."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

import tinker
from tinker_cookbook.rl.metrics import incorporate_kl_penalty
from tinker_cookbook.rl.train import Config
from tinker_cookbook.utils import ml_log, trace
from tinker_cookbook.utils.git_rev import recipe_user_metadata
from tinker_cookbook.utils.lr_scheduling import LRSchedule, compute_schedule_lr_multiplier
from tinker_cookbook.utils.misc_utils import split_list

from tokengym.agents.training.folder.monitor import named
from tokengym.agents.training.folder.run import RunFolder
from tokengym.agents.training.policy_trainer import PolicyTrainer, service_session
from tokengym.envs.core.errors import OptionError

logger = logging.getLogger(__name__)

_PLAYED = ("env/all/total_ob_tokens", "env/all/total_ac_tokens", "tokens/further")
"""Metrics of a batch that count the tokens read and sampled for it."""
# The cookbook's constants of Adam: given the same data, its loop makes the same updates.
_BETA1, _BETA2, _EPSILON = 0.9, 0.95, 1e-8


@dataclass(frozen=True)
class BatchLoss:
    """The loss of an update.

    Attributes:
        function: the loss function's name in Tinker, or one that runs in the client: from data and
            the log-probabilities of their targets to the loss and its metrics.
        measure: from what was sent and what came back for it, in order, to metrics.
        settings: of the loss function.
        together: data in a row that belong together, which no split of a batch may part.
    """

    function: tinker.types.LossFnType | Callable[..., tuple[Any, dict[str, float]]]
    measure: Callable[
        [Sequence[tinker.Datum], Sequence[tinker.ForwardBackwardOutput]], dict[str, float]
    ]
    settings: dict[str, Any] | None = None
    together: int = 1


@dataclass(frozen=True)
class SubmittedUpdate:
    """An update in progress.

    Attributes:
        data: what was sent, with its masks.
        loss: what it minimises.
        passes: forward and backward passes, in order, one for each optimizer step.
        steps: optimizer steps.
        known: metrics that were known before.
    """

    data: Sequence[tinker.Datum]
    loss: BatchLoss
    passes: Sequence[tinker.APIFuture[tinker.ForwardBackwardOutput]]
    steps: Sequence[tinker.APIFuture[tinker.OptimStepResponse]]
    known: Mapping[str, float] = field(default_factory=dict)

    async def metrics(self) -> dict[str, float]:
        """Wait for the update; returns the metrics of loss and optimizer."""
        outputs = [await future for future in self.passes]
        responses = [await future for future in self.steps]
        last = responses[-1].metrics if responses else None
        measured = self.loss.measure(self.data, outputs) if self.data else {}
        return {**self.known, "optim/skipped": float(not self.data), **measured, **(last or {})}


@dataclass(frozen=True)
class StepBatch:
    """Training data of a step.

    Attributes:
        data: what the policy is trained on; without any it is not updated.
        metrics: what was collected, what became of it and why.
    """

    data: Sequence[tinker.Datum]
    metrics: dict[str, float]


class BatchSource(Protocol):
    """Where batches come from: rollouts of the policy, or demonstrations."""

    @property
    def loss(self) -> BatchLoss:
        """The loss to minimise."""
        ...

    @property
    def on_policy(self) -> bool:
        """Whether batches are sampled from the policy as it is."""
        ...

    def __len__(self) -> int:
        """Return the number of steps."""
        ...

    async def batch(self, step: int, sampler: tinker.SamplingClient | None) -> StepBatch:
        """Return a step's batch; apart from sampling, the same one each time.

        Args:
            step: the step.
            sampler: of the policy, for batches that are sampled from it.
        """
        ...


async def train(
    config: Config,
    source: BatchSource,
    folder: RunFolder,
    seed: int = 0,
    schedule: LRSchedule = "constant",
    warmup: int = 0,
    warn: Callable[[str], None] = logger.warning,
) -> None:
    """Train a policy on the batches of a source, as `tinker_cookbook.rl.train.main` would.

    The run folder is the cookbook's: `config.json`, `metrics.jsonl`, `checkpoints.jsonl`; a run
    that is there is resumed. The run's name, the folder's, names the session, the log's lines and,
    where there is one, the Weights & Biases run.

    A step waits for its batch, submits the updates and the saving of their weights together, and
    samples the next batch from these weights. With `config.async_config` the next batch is sampled
    while the update runs, from the weights before it: one step off the policy, whatever lag the
    configuration would allow. Batches that do not depend on the policy are always made ahead.

    Where a batch has no data the policy is not updated: the optimizer's momentum would move the
    weights without a reason.

    Args:
        config: in the cookbook's terms; its dataset is not looked at.
        source: of the batches.
        folder: the run in which checkpoints are recorded.
        seed: of new adapters.
        schedule: how the learning rate changes over the steps.
        warmup: first steps, over which it rises to what the schedule has. Adam's very first updates
            move every weight by the whole learning rate, however small the signal.
        warn: shows a line.
    """
    run = Path(config.log_path).name
    log = ml_log.setup_logging(
        log_dir=config.log_path,
        wandb_project=config.wandb_project,
        wandb_name=config.wandb_name or run,
        config=config,
    )
    labels = recipe_user_metadata(config.recipe_name)
    title = config.session_name or config.wandb_name or run
    opened = service_session(config.base_url, user_metadata=labels, display_name=title)
    async with opened as service:
        learner = await PolicyTrainer.open(service, config, folder, seed, warn)
        steps = range(learner.start, min(len(source), config.max_steps or len(source)))
        logger.info("%s: steps %d to %d", run, steps.start, steps.stop)
        reference = await _reference(service, config)
        loop = _Loop(config, schedule, warmup, source, learner, reference, log)
        await loop.run(steps)
        await learner.finish(max(steps.start, steps.stop))
    log.close()


@dataclass(frozen=True)
class _Loop:
    """The steps of one run."""

    config: Config
    schedule: LRSchedule
    warmup: int
    source: BatchSource
    learner: PolicyTrainer
    reference: tinker.SamplingClient | None
    log: ml_log.Logger

    async def run(self, steps: range) -> None:
        """Run steps."""
        ahead = self.config.async_config is not None or not self.source.on_policy
        sampler = await self._sampler()
        following: asyncio.Task[StepBatch] | None = None
        try:
            for step in steps:
                with trace.trace_iteration(step=step) as window:
                    lag = int(following is not None and self.source.on_policy)
                    batch = await (following or self.source.batch(step, sampler))
                    following = None
                    if ahead and step + 1 in steps:
                        following = asyncio.create_task(self.source.batch(step + 1, sampler))
                    rate = self._learning_rate(step, steps.stop)
                    update = await self._submit(list(batch.data), rate)
                    # Requests of one client are served in order: these weights are the new ones.
                    measured, sampler = await asyncio.gather(update.metrics(), self._sampler())
                metrics = batch.metrics | measured
                metrics |= {
                    "progress/batch": step,
                    "progress/done_frac": (step + 1) / steps.stop,
                    "optim/lr": rate,
                    "tokens/total": self._tokens(batch),
                    **({"sampler/lag": lag} if self.source.on_policy else {}),
                    **window.get_timing_metrics(),
                }
                window.save_timing(step, store=self.log.store)
                self.log.log_metrics(metrics | named(metrics), step=step)
                # Not before: a kill between the two would lose the metrics of a step that is done.
                await self.learner.save(step + 1)
        finally:
            if following is not None:
                following.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await following

    def _tokens(self, batch: StepBatch) -> int:
        """Return what a batch costs: read, sampled, and read again by whoever learns or judges."""
        readers = 1 + (self.reference is not None)
        trained = sum(datum.model_input.length for datum in batch.data)
        return int(sum(batch.metrics.get(name, 0.0) for name in _PLAYED)) + readers * trained

    async def _sampler(self) -> tinker.SamplingClient | None:
        return await self.learner.sampler() if self.source.on_policy else None

    def _learning_rate(self, step: int, steps: int) -> float:
        """Return the rate of a step: the schedule's, less in the first steps."""
        rising = min(1.0, (step + 1) / self.warmup) if self.warmup else 1.0
        scheduled = compute_schedule_lr_multiplier(self.schedule, step, steps)
        return self.config.learning_rate * rising * scheduled

    async def _submit(self, data: list[tinker.Datum], rate: float) -> SubmittedUpdate:
        penalty: dict[str, float] = {}
        if not data:
            logger.warning("nothing to train on: no update")
        elif self.reference is not None:
            result = await incorporate_kl_penalty(
                data, self.reference, self.config.kl_penalty_coef, self.config.kl_discount_factor
            )
            # From 0.6 on the cookbook returns counts of tokens too.
            penalty = result[0] if isinstance(result, tuple) else result
        steps = self.config.num_substeps
        return submit(self.learner.client, data, self.source.loss, rate, steps, penalty)


async def _reference(service: tinker.ServiceClient, config: Config) -> tinker.SamplingClient | None:
    """Return the reference policy of a KL penalty, `None` without a penalty.

    Raises:
        OptionError: if there is a penalty and no reference.
    """
    if config.kl_penalty_coef <= 0:
        return None
    if config.kl_reference_config is None:
        raise OptionError(
            f"kl_penalty_coef={config.kl_penalty_coef} needs kl_reference_config, got none"
        )
    reference: tinker.SamplingClient = await service.create_sampling_client(
        base_model=config.kl_reference_config.base_model,
        model_path=config.kl_reference_config.load_checkpoint_path,
    )
    return reference


def submit(
    client: tinker.TrainingClient,
    data: Sequence[tinker.Datum],
    loss: BatchLoss,
    learning_rate: float,
    optimizer_steps: int = 1,
    known: Mapping[str, float] | None = None,
) -> SubmittedUpdate:
    """Submit an update; requests made afterwards see its weights.

    Args:
        client: of the policy.
        data: what to train on, with masks where the loss is over sampled tokens.
        loss: what to minimise.
        learning_rate: of Adam.
        optimizer_steps: how many share the data.
        known: metrics that are known already.
    """
    adam = tinker.AdamParams(learning_rate=learning_rate, beta1=_BETA1, beta2=_BETA2, eps=_EPSILON)
    passes, steps = [], []
    units = [data[n : n + loss.together] for n in range(0, len(data), loss.together)]
    parts = split_list(units, min(optimizer_steps, len(units))) if units else []
    for part in parts:
        sent = without_mask(list(chain.from_iterable(part)))
        passes.append(
            client.forward_backward_custom(sent, loss.function)
            if callable(loss.function)
            else client.forward_backward(sent, loss_fn=loss.function, loss_fn_config=loss.settings)
        )
        steps.append(client.optim_step(adam))
    return SubmittedUpdate(data, loss, passes, steps, known or {})


def without_mask(data: Sequence[tinker.Datum]) -> list[tinker.Datum]:
    """Return data as a service takes it, without the mask, which is for metrics only."""
    return [
        tinker.Datum(
            model_input=datum.model_input,
            loss_fn_inputs={
                name: tensor for name, tensor in datum.loss_fn_inputs.items() if name != "mask"
            },
        )
        for datum in data
    ]
