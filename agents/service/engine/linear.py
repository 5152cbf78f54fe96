"""A frozen linear layer with a LoRA adapter: y = x W^T + bias + (x A^T) (scaling B)^T."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import nn
from transformers.pytorch_utils import Conv1D

# The products with the adapter of a smaller layer take longer than adding it to the weight.
MERGED_BYTES = 1 << 20


class Adapter(NamedTuple):
    """One layer's adapter: A [rank, in], B [out, rank] and the factor that scales B A."""

    a: torch.Tensor
    b: torch.Tensor
    scaling: float


class LoraLinear(nn.Module):
    """A linear layer whose weight is frozen and whose adapter can be exchanged.

    Attributes:
        weight: [out, in].
        adapter: what is added to the weight, or None.
        merged: the weight with an adapter added to it, used in its place, or None.
    """

    weight: nn.Parameter
    bias: nn.Parameter | None
    adapter: Adapter | None
    merged: torch.Tensor | None

    def __init__(self, layer: nn.Linear | Conv1D) -> None:
        super().__init__()
        # transformers' Conv1D keeps its matrix as [in, out].
        weight = layer.weight.T if isinstance(layer, Conv1D) else layer.weight
        self.weight = nn.Parameter(weight.detach(), False)
        bias = layer.bias
        self.bias = None if bias is None else nn.Parameter(bias.detach(), False)
        self.out_features, self.in_features = self.weight.shape
        self.adapter = self.merged = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map [..., in] to [..., out]."""
        if self.adapter is None:
            weight = self.weight if self.merged is None else self.merged
            return F.linear(x, weight, self.bias)
        if self._small:
            return F.linear(x, _merged(self.weight, self.adapter), self.bias)
        a, b, _ = _cast(self.adapter, self.weight)
        rows = x.reshape(-1, self.in_features)
        # The adapter's part comes first, so that the sum is rounded only once.
        y = F.linear(F.linear(rows, a), b).addmm_(rows, self.weight.T)
        if self.bias is not None:
            y += self.bias
        return y.view(*x.shape[:-1], -1)

    def attach_for_sampling(self, adapter: Adapter | None) -> None:
        """Run with a copy of `adapter`, in the fastest form without gradients."""
        self.adapter = self.merged = None
        if adapter is not None:
            adapter = _cast(adapter, self.weight)
            if self._small:
                self.merged = _merged(self.weight, adapter)
            else:
                self.adapter = adapter

    @property
    def _small(self) -> bool:
        """Whether an adapter is added to the weight, which in bfloat16 would round it away."""
        return self.weight.nbytes <= MERGED_BYTES and self.weight.dtype == torch.float32


def _merged(weight: torch.Tensor, adapter: Adapter) -> torch.Tensor:
    return torch.addmm(weight, adapter.b.to(weight), adapter.a.to(weight), alpha=adapter.scaling)


def _cast(adapter: Adapter, weight: torch.Tensor) -> Adapter:
    """Return an adapter on the device of `weight` and of its type, scaled."""
    a, b, scaling = adapter
    return Adapter(a.to(weight), (b if scaling == 1.0 else b * scaling).to(weight), 1.0)


def replace_linear_layers(model: Any) -> None:
    """Replace the linear layers of a model by `LoraLinear`."""
    for name, _ in list(classify_modules(model)):
        parent, _, own = name.rpartition(".")
        setattr(model.get_submodule(parent), own, LoraLinear(model.get_submodule(name)))


def lora_layers(model: nn.Module) -> dict[str, LoraLinear]:
    """Return the layers that can carry an adapter, by name."""
    return {n: layer for n, layer in model.named_modules() if isinstance(layer, LoraLinear)}


def classify_modules(model: Any) -> Iterator[tuple[str, str]]:
    """Yield every linear module of a model with its part: `attn`, `mlp` or `unembed`."""
    head = model.get_output_embeddings()
    for name, module in model.named_modules():
        if not isinstance(module, nn.Linear | Conv1D | LoraLinear):
            continue
        words = name.lower().split(".")
        if module is head:
            yield name, "unembed"
        elif any("attn" in word or "attention" in word for word in words):
            # A router decides which expert sees a token; it is no part of the attention or MLP.
            yield name, "attn"
        elif not any(word in ("gate", "router") for word in words):
            yield name, "mlp"
