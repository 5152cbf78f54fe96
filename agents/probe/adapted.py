"""The tiny model as a function of a LoRA adapter alone, as the local service trains it."""

from collections.abc import Mapping
from typing import Any

import torch
from torch.func import functional_call

from tokengym.agents.probe.policy import Checkpoint


class Adapted(torch.nn.Module):
    """A model whose parameters are an adapter's matrices.

    Args:
        model: the model, with weights of its own.
        adapter: matrices A [rank, in] and B [out, rank] of layers, as `layer/A`.
        scaling: factor of B A.
    """

    def __init__(
        self, model: torch.nn.Module, adapter: Mapping[str, torch.Tensor], scaling: float
    ) -> None:
        super().__init__()
        # In a list, its weights are not parameters of this module.
        self.models, self.scaling = [model.double()], scaling
        self.layers = sorted({name.rpartition("/")[0] for name in adapter})
        for name, value in adapter.items():
            self.register_parameter(name, torch.nn.Parameter(value.clone()))

    def forward(self, **inputs: torch.Tensor) -> Any:
        """Return what the adapted model makes of its inputs."""
        (model,) = self.models
        own, weights = model.state_dict(), {}
        for layer in self.layers:
            matrices = getattr(self, f"{layer}/B") @ getattr(self, f"{layer}/A")
            name = f"{layer.replace('/', '.')}.weight"
            weights[name] = own[name] + self.scaling * matrices
        # An adapter of the last layer leaves the embedding that it shares weights with as it is.
        return functional_call(model, weights, kwargs=inputs, tie_weights=False)


def adapter_checkpoint(
    tensors: Mapping[str, torch.Tensor], moments: Mapping[str, torch.Tensor]
) -> Checkpoint:
    """Return an adapter's matrices and Adam's first moments of them, both as `layer.A`, ...

    Parameters of a module may not have a dot in their name: here layers are written with slashes.
    """
    weights, first = (
        {name.replace(".", "/"): value.detach().clone() for name, value in values.items()}
        for values in (tensors, moments)
    )
    return Checkpoint(weights, first)
