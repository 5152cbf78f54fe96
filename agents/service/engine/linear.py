"""A frozen linear layer with a LoRA adapter: y = x W^T + bias + (x A^T) (scaling B)^T.

The product runs in the number type of W. With W in bfloat16 and x in float32 that is mixed
precision: the sum over W and the adapter is accumulated in float32 and rounded once, so that an
update smaller than the rounding of y is not lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import nn
from transformers.pytorch_utils import Conv1D

if TYPE_CHECKING:
    from collections.abc import Iterator


class Adapter(NamedTuple):
    """One layer's adapter: A [rank, in], B [out, rank] and the factor that scales B A."""

    a: torch.Tensor
    b: torch.Tensor
    scaling: float


class LoraLinear(nn.Module):
    """A linear layer whose weight is frozen and whose adapter can be exchanged.

    Attributes:
        weight: [out, in]; its number type is that of the product.
        adapter: what is added to the weight, or None.
        out_dtype: number type of the result.
    """

    weight: nn.Parameter
    bias: nn.Parameter | None
    adapter: Adapter | None

    def __init__(
        self, layer: nn.Linear | Conv1D, dtype: torch.dtype, out_dtype: torch.dtype
    ) -> None:
        super().__init__()
        # transformers' Conv1D keeps its matrix as [in, out].
        weight = layer.weight.T if isinstance(layer, Conv1D) else layer.weight
        self.weight = nn.Parameter(weight.detach().to(dtype), False)
        bias = layer.bias
        self.bias = None if bias is None else nn.Parameter(bias.detach().to(dtype), False)
        self.out_features, self.in_features = self.weight.shape
        self.adapter = None
        self.out_dtype = out_dtype

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map [..., in] to [..., out]."""
        dtype = self.weight.dtype
        if self.adapter is None:
            y = F.linear(x.to(dtype), self.weight, self.bias)
        elif not torch.is_grad_enabled():
            y, _ = _product(x, self.weight, self.bias, *_cast(self.adapter, dtype))
        else:
            apply: Any = _LoraProduct.apply  # torch leaves it untyped
            y = apply(x, self.weight, self.bias, *self.adapter)
        return y.to(self.out_dtype)

    def prepared(self, adapter: Adapter) -> Adapter:
        """Return `adapter` in the form that costs least to run, without gradients."""
        a, b = _cast(adapter, self.weight.dtype)
        return Adapter(a.to(self.weight.device), b.to(self.weight.device), 1.0)


def _cast(adapter: Adapter, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    a, b, scaling = adapter
    return a.to(dtype), (b if scaling == 1.0 else b * scaling).to(dtype)


def _product(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    a: torch.Tensor,
    b: torch.Tensor,
) -> tuple[torch.Tensor, tuple[torch.Tensor, torch.Tensor]]:
    """Return y [..., out], and the rows of x [N, in] and of x A^T [N, rank]."""
    rows = x.reshape(-1, x.shape[-1]).to(weight.dtype)
    inner = rows @ a.T
    # The adapter's part comes first, so that the sum is rounded only once.
    y = (inner @ b.T).addmm_(rows, weight.T)
    if bias is not None:
        y += bias
    return y.view(*x.shape[:-1], -1), (rows, inner)


class _LoraProduct(torch.autograd.Function):
    """The product and its gradients, with no more passes over x and y than it takes."""

    @staticmethod
    def forward(
        ctx: Any,
        x: torch.Tensor,
        weight: torch.Tensor,
        bias: torch.Tensor | None,
        a: torch.Tensor,
        b: torch.Tensor,
        scaling: float,
    ) -> torch.Tensor:
        a, b = _cast(Adapter(a, b, scaling), weight.dtype)
        y, (rows, inner) = _product(x, weight, bias, a, b)
        ctx.save_for_backward(rows, inner, weight, a, b)
        ctx.scaling = scaling
        return y

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        rows, inner, weight, a, b = ctx.saved_tensors
        (gradient,) = gradients
        shape = gradient.shape
        gradient = gradient.reshape(-1, shape[-1]).to(weight.dtype)
        outer = gradient @ b
        into = None
        if ctx.needs_input_grad[0]:
            into = (outer @ a).addmm_(gradient, weight).view(*shape[:-1], -1)
        grad_a = (outer.T @ rows).float()
        grad_b = (gradient.T @ inner).float().mul_(ctx.scaling)
        return into, None, None, grad_a, grad_b, None


def replace_linear_layers(model: Any, dtype: torch.dtype) -> None:
    """Replace the linear layers of a model by `LoraLinear` with weights of `dtype`."""
    for name, part in dict(classify_modules(model)).items():
        parent, _, own = name.rpartition(".")
        # What goes into attention is of the model's type; elsewhere a narrow result is cheaper.
        out_dtype = model.dtype if part == "attn" else dtype
        layer = LoraLinear(model.get_submodule(name), dtype, out_dtype)
        setattr(model.get_submodule(parent), own, layer)


def lora_layers(model: nn.Module) -> dict[str, LoraLinear]:
    """Return the layers that can carry an adapter, by name."""
    return {n: layer for n, layer in model.named_modules() if isinstance(layer, LoraLinear)}


def product_dtype(model: Any) -> torch.dtype:
    """Return the number type in which `model` multiplies."""
    dtype: torch.dtype = model.get_output_embeddings().weight.dtype
    return dtype


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
