"""One update: everything it takes is submitted before anything is awaited."""

from collections.abc import Sequence
from dataclasses import dataclass

import tinker
from tinker_cookbook.rl.train import Config
from tinker_cookbook.utils.misc_utils import split_list

from tokengym.agents.training.datums import drift, without_mask

# The cookbook's constants of Adam: with them both loops make the same updates.
_BETA1, _BETA2, _EPSILON = 0.9, 0.95, 1e-8


@dataclass(frozen=True)
class Update:
    """An update on its way.

    Attributes:
        data: what was sent, with its masks.
        passes: forward and backward passes, in order, one for each optimizer step.
        steps: optimizer steps.
    """

    data: Sequence[tinker.Datum]
    passes: Sequence[tinker.APIFuture[tinker.ForwardBackwardOutput]]
    steps: Sequence[tinker.APIFuture[tinker.OptimStepResponse]]

    async def metrics(self) -> dict[str, float]:
        """Wait until it is done; returns the optimizer's metrics and the drift of the policy."""
        outputs = [await one.result_async() for one in self.passes]
        responses = [await one.result_async() for one in self.steps]
        last = responses[-1].metrics if responses else None
        return {**drift(self.data, outputs), **(last or {})}


async def submit(
    client: tinker.TrainingClient, data: Sequence[tinker.Datum], config: Config
) -> Update:
    """Submit an update; requests made afterwards see its weights.

    Args:
        client: of the policy.
        data: what to train on, with masks.
        config: loss, learning rate and number of optimizer steps that share the data.
    """
    adam = tinker.AdamParams(
        learning_rate=config.learning_rate, beta1=_BETA1, beta2=_BETA2, eps=_EPSILON
    )
    passes, steps = [], []
    parts = split_list(list(data), min(config.num_substeps, len(data))) if data else []
    for part in parts:
        passes.append(
            await client.forward_backward_async(
                without_mask(part), loss_fn=config.loss_fn, loss_fn_config=config.loss_fn_config
            )
        )
        steps.append(await client.optim_step_async(adam))
    return Update(data, passes, steps)
