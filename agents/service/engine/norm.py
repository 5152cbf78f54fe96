"""Root mean square normalisation, y = w x / sqrt(mean(x^2) + epsilon), in few passes over x."""

from typing import Any

import torch
from torch import nn


class RmsNorm(nn.Module):
    """Normalises the last dimension by its root mean square; the weight is frozen."""

    def __init__(self, weight: torch.Tensor, epsilon: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight.detach(), False)
        self.epsilon = epsilon

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map [..., n] to [..., n]."""
        if not torch.is_grad_enabled():
            return _normalised(x, self.weight, self.epsilon)[0]
        apply: Any = _RmsNorm.apply  # torch leaves it untyped
        result: torch.Tensor = apply(x, self.weight, self.epsilon)
        return result


def replace_norms(model: Any) -> None:
    """Replace the norms that `RmsNorm` reproduces in a float32 model; leave others unchanged."""
    for name, norm in list(model.named_modules()):
        sizes = ("weight", "variance_epsilon")
        if not (type(norm).__name__.endswith("RMSNorm") and all(hasattr(norm, n) for n in sizes)):
            continue
        mine = RmsNorm(norm.weight, norm.variance_epsilon)
        x = torch.randn(4, len(norm.weight), device=norm.weight.device)
        with torch.no_grad():
            if torch.allclose(mine(x), norm(x), rtol=1e-5, atol=1e-6):
                parent, _, own = name.rpartition(".")
                setattr(model.get_submodule(parent), own, mine)


def _normalised(
    x: torch.Tensor, weight: torch.Tensor, epsilon: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return y, and the inverse of the root mean square."""
    inverse: torch.Tensor = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    inverse.square_().div_(x.shape[-1]).add_(epsilon).rsqrt_()
    return (x * inverse).mul_(weight), inverse


class _RmsNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor, epsilon: float) -> torch.Tensor:
        y, inverse = _normalised(x, weight, epsilon)
        ctx.save_for_backward(x, weight, inverse)
        return y

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        x, weight, inverse = ctx.saved_tensors
        gradient = gradients[0] * weight
        # r (g - x r^2 mean(g x)), with r the inverse of the root mean square.
        along = torch.linalg.vecdot(gradient, x).unsqueeze(-1)
        along.mul_(inverse).mul_(inverse).div_(x.shape[-1])
        return torch.addcmul(gradient, x, along, value=-1).mul_(inverse), None, None
