"""One update: all its requests are submitted before any is awaited."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import tinker
from tinker_cookbook.utils.misc_utils import split_list

# The cookbook's constants of Adam: with them both loops make the same updates.
_BETA1, _BETA2, _EPSILON = 0.9, 0.95, 1e-8


@dataclass(frozen=True)
class Loss:
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
class Update:
    """An update in progress.

    Attributes:
        data: what was sent, with its masks.
        loss: what it minimises.
        passes: forward and backward passes, in order, one for each optimizer step.
        steps: optimizer steps.
        known: metrics that were known before.
    """

    data: Sequence[tinker.Datum]
    loss: Loss
    passes: Sequence[tinker.APIFuture[tinker.ForwardBackwardOutput]]
    steps: Sequence[tinker.APIFuture[tinker.OptimStepResponse]]
    known: Mapping[str, float] = field(default_factory=dict)

    async def metrics(self) -> dict[str, float]:
        """Wait for the update; returns the metrics of loss and optimizer."""
        outputs = [await one for one in self.passes]
        responses = [await one for one in self.steps]
        last = responses[-1].metrics if responses else None
        found = self.loss.measure(self.data, outputs) if self.data else {}
        return {
            **self.known,
            "optim/skipped": float(not self.data),
            **found,
            **(last or {}),
        }


def submit(
    client: tinker.TrainingClient,
    data: Sequence[tinker.Datum],
    loss: Loss,
    learning_rate: float,
    optimizer_steps: int = 1,
    known: Mapping[str, float] | None = None,
) -> Update:
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
    return Update(data, loss, passes, steps, known or {})


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
