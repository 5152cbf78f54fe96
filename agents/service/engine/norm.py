"""Root mean square normalisation, y = w x / sqrt(mean(x^2) + epsilon), in few passes over x."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import nn

if TYPE_CHECKING:
    from collections.abc import Iterator


class RmsNorm(nn.Module):
    """Normalises the last dimension by its root mean square; the weight is frozen."""

    def __init__(self, weight: torch.Tensor, epsilon: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight.detach(), False)
        self.epsilon = epsilon

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map [..., n] to [..., n]."""
        if not torch.is_grad_enabled():
            return _scaled(x, _inverse_rms(x, self.epsilon), self.weight)
        apply: Any = _RmsNorm.apply  # torch leaves it untyped
        result: torch.Tensor = apply(x, self.weight, self.epsilon)
        return result


def replace_norms(model: nn.Module) -> None:
    """Replace the float32 norms that `RmsNorm` reproduces; leave others unchanged."""
    for name, norm in list(_candidates(model)):
        mine = RmsNorm(norm.weight, norm.variance_epsilon)
        x = torch.randn(4, len(norm.weight), device=norm.weight.device)
        with torch.no_grad():
            if torch.allclose(mine(x), norm(x), rtol=1e-5, atol=1e-6):
                parent, _, own = name.rpartition(".")
                setattr(model.get_submodule(parent), own, mine)


def _candidates(model: nn.Module) -> Iterator[tuple[str, Any]]:
    for name, module in model.named_modules():
        weight = getattr(module, "weight", None)
        if (
            type(module).__name__.endswith("RMSNorm")
            and hasattr(module, "variance_epsilon")
            and isinstance(weight, torch.Tensor)
            and weight.dtype == torch.float32
        ):
            yield name, module


def _inverse_rms(x: torch.Tensor, epsilon: float) -> torch.Tensor:
    norm: torch.Tensor = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    return norm.square_().div_(x.shape[-1]).add_(epsilon).rsqrt_()


def _scaled(x: torch.Tensor, inverse: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return (x * inverse).mul_(weight)


class _RmsNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor, epsilon: float) -> torch.Tensor:
        inverse = _inverse_rms(x, epsilon)
        ctx.save_for_backward(x, weight, inverse)
        return _scaled(x, inverse, weight)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        x, weight, inverse = ctx.saved_tensors
        gradient = gradients[0] * weight
        # r (g - x r^2 mean(g x)), with r the inverse of the root mean square.
        along = torch.linalg.vecdot(gradient, x).unsqueeze(-1)
        along.mul_(inverse).mul_(inverse).div_(x.shape[-1])
        return torch.addcmul(gradient, x, along, value=-1).mul_(inverse), None, None
