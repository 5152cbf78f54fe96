"""Batches of existing data: replies to imitate by cross-entropy, pairs to prefer by DPO."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import tinker
import torch
from tinker_cookbook.preference.train_dpo import compute_dpo_loss
from tinker_cookbook.supervised.common import compute_mean_nll, datum_from_model_input_weights

from tokengym.agents.tinker.dataset import TaskRange, number_in_epochs
from tokengym.agents.tinker.scripted_rollout import TurnTokens, roll_out_scripted
from tokengym.agents.training.earlier_runs import Opponents, TokenPair
from tokengym.agents.training.job import Job
from tokengym.agents.training.loop import BatchLoss, StepBatch
from tokengym.agents.training.losses import IMITATION
from tokengym.envs.core.task import Task

_REFERENCE = "reference_logprobs"
Data = Sequence[tinker.Datum]


@dataclass(frozen=True)
class Examples:
    """A source of batches: examples to learn from, the same ones each time a step asks for them.

    Attributes:
        steps: number of steps.
        loss: what an update minimises.
        data: from a step to its examples.
    """

    steps: int
    loss: BatchLoss
    data: Callable[[int], Awaitable[Data]]
    on_policy = False

    def __len__(self) -> int:
        """Return the number of steps."""
        return self.steps

    async def batch(self, step: int, sampler: tinker.SamplingClient | None) -> StepBatch:
        """Return a step's examples; the sampler is not asked."""
        data = await self.data(step)
        tokens = sum(row.model_input.length for row in data)
        return StepBatch(data, {"train/tokens": float(tokens)})


@dataclass(frozen=True)
class ExampleOrder:
    """In which order a run's examples come: all once, in an order of the seed's, then all again.

    Attributes:
        count: examples that there are.
        size: examples of a step.
        seed: of the order.
    """

    count: int
    size: int
    seed: int

    def numbers(self, step: int) -> list[int]:
        """Return the numbers of a step's examples; see `number_in_epochs`."""
        places = range(step * self.size, (step + 1) * self.size)
        return [number_in_epochs(place, self.count, self.seed) for place in places]


def demonstrations(job: Job, opponents: Mapping[str, Opponents]) -> Examples:
    """Return the demonstrations a job fits: a run's rollouts, or a script's replies on Tasks.

    Args:
        job: the job.
        opponents: by trained role, who plays each other role.
    """
    config, codec = job.config, job.codec
    size = config.groups_per_batch * config.group_size
    if job.recorded:
        rollouts = [imitation_data(turns, append_only=codec.append_only) for turns in job.recorded]
        order = ExampleOrder(len(rollouts), size, config.seed)

        async def recorded(step: int) -> Data:
            return list(chain.from_iterable(rollouts[n] for n in order.numbers(step)))

        return Examples(config.steps, _IMITATION, recorded)
    tasks = TaskRange(job.world, "train", config.steps * size, job.first_task)

    async def example(role: str, task: Task) -> list[tinker.Datum]:
        others = job.players(opponents[role])
        played = roll_out_scripted(job.world, task, codec, role, job.demonstrations, others)
        return imitation_data((await played).turns, append_only=codec.append_only)

    async def scripted(step: int) -> Data:
        # In a thread: drawing a Task may take a solver.
        drawn = await asyncio.to_thread(lambda: list(tasks[step * size : (step + 1) * size]))
        both = [example(role, task) for role in opponents for task in drawn]
        return list(chain.from_iterable(await asyncio.gather(*both)))

    return Examples(config.steps, _IMITATION, scripted)


def preference_pairs(
    pairs: Sequence[TokenPair],
    order: ExampleOrder,
    steps: int,
    reference: tinker.SamplingClient,
    beta: float,
) -> Examples:
    """Return pairs of replies, the chosen one before the rejected.

    Args:
        pairs: to learn from.
        order: in which they come.
        steps: number of steps.
        reference: the policy that training starts from.
        beta: weight of leaving the reference.
    """
    read: dict[int, Data] = {}

    async def example(number: int) -> None:
        if number not in read:
            prompt, *replies = pairs[number]
            both = (_with_reference(prompt, reply, reference) for reply in replies)
            read[number] = await asyncio.gather(*both)

    async def examples(step: int) -> Data:
        numbers = order.numbers(step)
        await asyncio.gather(*map(example, set(numbers)))
        return list(chain.from_iterable(read[number] for number in numbers))

    def loss(data: Data, logprobs: Sequence[torch.Tensor]) -> tuple[torch.Tensor, dict[str, float]]:
        known = (datum.loss_fn_inputs[_REFERENCE].to_torch() for datum in data)
        trained, before = (
            [_weighted(row, datum) for row, datum in zip(rows, data, strict=True)]
            for rows in (logprobs, known)
        )
        return compute_dpo_loss(trained[::2], trained[1::2], before[::2], before[1::2], beta)

    return Examples(steps, BatchLoss(loss, _preference_figures, together=2), examples)


def imitation_data(turns: Sequence[TurnTokens], *, append_only: bool) -> list[tinker.Datum]:
    """Return one role's side of an episode as data for `cross_entropy`: its own tokens weigh 1.

    Args:
        turns: of the role.
        append_only: whether each turn extends the one before; they then make one datum.
    """
    made = []
    for last in [turns[-1]] if append_only and turns else turns:
        own = [
            range(len(turn.observation), len(turn.observation) + len(turn.reply))
            for turn in (turns if append_only else [last])
        ]
        made.append(_weighing([*last.observation, *last.reply], own))
    return made


def _weighing(tokens: Sequence[int], own: Sequence[range]) -> tinker.Datum:
    """Return tokens as data in which some weigh 1, the others 0."""
    weights = torch.zeros(len(tokens))
    for places in own:
        weights[places.start : places.stop] = 1.0
    return datum_from_model_input_weights(tinker.ModelInput.from_ints([*tokens]), weights)


async def _with_reference(
    prompt: Sequence[int], reply: Sequence[int], reference: tinker.SamplingClient
) -> tinker.Datum:
    tokens = [*prompt, *reply]
    datum = _weighing(tokens, [range(len(prompt), len(tokens))])
    logprobs = await reference.compute_logprobs(tinker.ModelInput.from_ints(tokens))
    before = torch.tensor(logprobs[1:], dtype=torch.float32)
    inputs = {**datum.loss_fn_inputs, _REFERENCE: tinker.TensorData.from_torch(before)}
    return tinker.Datum(model_input=datum.model_input, loss_fn_inputs=inputs)


def _weighted(logprobs: torch.Tensor, datum: tinker.Datum) -> torch.Tensor:
    weights = datum.loss_fn_inputs["weights"].to_torch()
    return torch.dot(logprobs.float(), weights.float())


def _likelihood(data: Data, outputs: Sequence[tinker.ForwardBackwardOutput]) -> dict[str, float]:
    logprobs = [row["logprobs"] for output in outputs for row in output.loss_fn_outputs]
    weights = [datum.loss_fn_inputs["weights"] for datum in data]
    return {"train/nll": compute_mean_nll(logprobs, weights)}


def _preference_figures(
    data: Data, outputs: Sequence[tinker.ForwardBackwardOutput]
) -> dict[str, float]:
    """Return the figures of an update's passes, whose numbers of pairs differ by at most one."""
    logged = ("dpo_loss", "accuracy", "margin", "chosen_reward", "rejected_reward")
    means = {
        f"dpo/{name.removeprefix('dpo_')}": sum(float(output.metrics[name]) for output in outputs)
        / len(outputs)
        for name in logged
    }
    return {"dpo/pairs": len(data) / 2, **means}


_IMITATION = BatchLoss(IMITATION, _likelihood)
"""Mean negative log-likelihood of the demonstrated tokens, logged as `train/nll`."""
