"""Supervised tuning through the same client: demonstrations fitted by cross-entropy."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path

import tinker
import torch
from tinker_cookbook.rl.train import Config
from tinker_cookbook.supervised.common import compute_mean_nll, datum_from_model_input_weights
from tinker_cookbook.utils import ml_log

from tokengym.agents.tinker.codec import codec_named
from tokengym.agents.tinker.coordinator import Opponent
from tokengym.agents.tinker.dataset import DrawnTasks
from tokengym.agents.tinker.scripted_rollout import Said, tell
from tokengym.agents.training.config import TrainSettings
from tokengym.agents.training.session import learner, training_session
from tokengym.envs.core.rollout import Policy
from tokengym.envs.core.seeding import generator
from tokengym.envs.core.task import Task
from tokengym.envs.registry import baselines, load, make_world, spec
from tokengym.envs.tokens.codec import Codec

_BETA1, _BETA2, _EPSILON = 0.9, 0.95, 1e-8
"""The cookbook's constants of Adam, as for reinforcement learning."""


def demonstration(world_id: str) -> Policy:
    """Return the policy a supervised learner imitates: the spec's, or else the world's oracle."""
    path = spec(world_id).demonstrations
    policy: Policy = load(path) if path else baselines(world_id)["oracle"]
    return policy


def datums(turns: Sequence[Said], *, append_only: bool) -> list[tinker.Datum]:
    """Return one role's side of an episode as data for `cross_entropy`: its own tokens weigh 1.

    Args:
        turns: of the role.
        append_only: whether each turn extends the one before; they then make one datum.
    """
    made = []
    for last in [turns[-1]] if append_only and turns else turns:
        weights = torch.zeros(len(last.read) + len(last.reply))
        for turn in turns if append_only else [last]:
            weights[len(turn.read) : len(turn.read) + len(turn.reply)] = 1.0
        tokens = tinker.ModelInput.from_ints([*last.read, *last.reply])
        made.append(datum_from_model_input_weights(tokens, weights))
    return made


class Demonstrations:
    """The examples of every step: as many Tasks as reinforcement learning has rollouts.

    The same step has the same examples each time it is asked for.

    Args:
        settings: the job.
        model: name or directory that the tokenizer comes from.
        first_task: index of the first Task in the training split.
        opponents: for each trained role, who speaks for the others.
    """

    def __init__(
        self,
        settings: TrainSettings,
        model: str,
        first_task: int,
        opponents: Mapping[str, Mapping[str, str | Opponent]],
    ) -> None:
        self._world = make_world(settings.world, settings.level, **settings.options)
        self._codec: Codec = codec_named(f"{settings.renderer}@{model}")
        self._policy = demonstration(settings.world)
        known = baselines(settings.world)
        self._agents = {
            role: {other: known[who] if isinstance(who, str) else who for other, who in one.items()}
            for role, one in opponents.items()
        }
        self._size = settings.groups_per_batch * settings.group_size
        self._tasks = DrawnTasks(self._world, "train", settings.steps * self._size, first_task)

    async def batch(self, step: int) -> list[tinker.Datum]:
        """Return a step's examples."""
        tasks = self._tasks[step * self._size : (step + 1) * self._size]
        told = await asyncio.gather(
            *(self._example(role, task) for task in tasks for role in self._agents)
        )
        return list(chain.from_iterable(told))

    async def _example(self, role: str, task: Task) -> list[tinker.Datum]:
        rng = generator("demonstration", task.fingerprint, role)
        policy, opponents = self._policy, self._agents[role]
        told = await tell(self._world, task, self._codec, role, policy, opponents, rng)
        return datums(told.turns, append_only=self._codec.append_only)


async def imitate(config: Config, demonstrations: Demonstrations, steps: int) -> None:
    """Fit demonstrations, into a run folder like that of reinforcement learning.

    A step's loss is the mean negative log-likelihood of its own tokens, logged as `train/nll`.
    A run that is there is gone on with.

    Args:
        config: service, model, learning rate, checkpoints and folder, as for the other loops.
        demonstrations: the examples.
        steps: optimizer steps.
    """
    log = ml_log.setup_logging(log_dir=config.log_path, config=config)
    adam = tinker.AdamParams(
        learning_rate=config.learning_rate, beta1=_BETA1, beta2=_BETA2, eps=_EPSILON
    )
    async with training_session(config) as service:
        policy = await learner(service, config, Path(config.log_path), log.store)
        start = policy.start
        data = await demonstrations.batch(start) if start < steps else []
        for step in range(start, steps):
            began = time.monotonic()
            passed = await policy.client.forward_backward_async(data, loss_fn="cross_entropy")
            stepped = await policy.client.optim_step_async(adam)
            # The next examples are written while the service computes.
            following = await demonstrations.batch(step + 1) if step + 1 < steps else []
            output, response = await passed.result_async(), await stepped.result_async()
            await policy.checkpoints.maybe_save_async(step + 1, {"batch": step + 1})
            metrics = {
                **(response.metrics or {}),
                "train/nll": compute_mean_nll(
                    [found["logprobs"] for found in output.loss_fn_outputs],
                    [datum.loss_fn_inputs["weights"] for datum in data],
                ),
                "train/tokens": sum(datum.model_input.length for datum in data),
                "progress/batch": step,
                "progress/done_frac": (step + 1) / steps,
                "optim/lr": config.learning_rate,
                "time/total": time.monotonic() - began,
            }
            log.log_metrics(metrics, step=step)
            data = following
        await policy.finish(range(start, steps))
    log.close()
