"""Batches from preferences: pairs of a run's rollouts, for direct preference optimisation (DPO)."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import tinker
import torch
from tinker_cookbook.preference.train_dpo import compute_dpo_loss
from tinker_cookbook.supervised.common import datum_from_model_input_weights

from tokengym.agents.training.earlier_runs import TokenPair, numbers_of_step
from tokengym.agents.training.folder.run import POLICY
from tokengym.agents.training.loop import Batch, Loss

_REFERENCE = "reference_logprobs"


@dataclass(frozen=True)
class Preferences:
    """A source of batches: pairs of replies, each pair's chosen one before its rejected one.

    All pairs are seen once, in an order of the seed's, before any is seen again.

    Attributes:
        pairs: to learn from.
        pairs_per_batch: pairs of a step.
        steps: number of steps.
        reference: the policy that training starts from.
        beta: weight of leaving the reference.
        seed: of the order.
    """

    pairs: Sequence[TokenPair]
    pairs_per_batch: int
    steps: int
    reference: tinker.SamplingClient
    beta: float
    seed: int
    on_policy = False
    _known: dict[int, list[tinker.Datum]] = field(default_factory=dict)

    @property
    def loss(self) -> Loss:
        """DPO's, the mean over pairs; logged as `dpo/loss`."""
        return Loss(self._loss, _measure, together=2)

    def __len__(self) -> int:
        """Return the number of steps."""
        return self.steps

    async def batch(self, step: int, samplers: Mapping[str, tinker.SamplingClient]) -> Batch:
        """Return a step's pairs; `samplers` are not asked."""
        numbers = numbers_of_step(len(self.pairs), self.pairs_per_batch, step, self.seed)
        await asyncio.gather(*(self._read(number) for number in set(numbers)))
        data = list(chain.from_iterable(self._known[number] for number in numbers))
        tokens = sum(datum.model_input.length for datum in data)
        metrics = {
            "train/tokens": float(tokens),
            "dpo/epoch": (step + 1) * self.pairs_per_batch / len(self.pairs),
        }
        return Batch({POLICY: data}, metrics)

    async def _read(self, number: int) -> None:
        """Lay out a pair, with its log-probabilities under the reference."""
        if number not in self._known:
            prompt, *replies = self.pairs[number]
            both = (self._datum(prompt, reply) for reply in replies)
            self._known[number] = list(await asyncio.gather(*both))

    async def _datum(self, prompt: Sequence[int], reply: Sequence[int]) -> tinker.Datum:
        tokens = tinker.ModelInput.from_ints([*prompt, *reply])
        weights = torch.zeros(len(prompt) + len(reply))
        weights[len(prompt) :] = 1.0
        datum = datum_from_model_input_weights(tokens, weights)
        logprobs = await self.reference.compute_logprobs(tokens)
        reference = torch.tensor(logprobs[1:], dtype=torch.float32)
        inputs = {**datum.loss_fn_inputs, _REFERENCE: tinker.TensorData.from_torch(reference)}
        return tinker.Datum(model_input=datum.model_input, loss_fn_inputs=inputs)

    def _loss(
        self, data: Sequence[tinker.Datum], logprobs: Sequence[torch.Tensor]
    ) -> tuple[torch.Tensor, dict[str, float]]:
        """Return DPO's loss of pairs, and its figures; runs in the client."""
        trained = [_weighted(row, datum) for row, datum in zip(logprobs, data, strict=True)]
        reference = [
            _weighted(datum.loss_fn_inputs[_REFERENCE].to_torch(), datum) for datum in data
        ]
        return compute_dpo_loss(
            trained[::2], trained[1::2], reference[::2], reference[1::2], self.beta
        )


def _weighted(logprobs: torch.Tensor, datum: tinker.Datum) -> torch.Tensor:
    weights = datum.loss_fn_inputs["weights"].to_torch()
    return torch.dot(logprobs.float(), weights.float())


def _measure(
    data: Sequence[tinker.Datum], outputs: Sequence[tinker.ForwardBackwardOutput]
) -> dict[str, float]:
    """Return the figures of an update's passes, whose numbers of pairs differ by at most one."""
    names = {
        "dpo/loss": "dpo_loss",
        "dpo/accuracy": "accuracy",
        "dpo/margin": "margin",
        "dpo/chosen_reward": "chosen_reward",
        "dpo/rejected_reward": "rejected_reward",
    }
    means: dict[str, Any] = {
        name: sum(output.metrics[logged] for output in outputs) / len(outputs)
        for name, logged in names.items()
    }
    return {"dpo/pairs": len(data) / 2, **means}
