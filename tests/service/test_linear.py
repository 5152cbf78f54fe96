"""The linear layer with an adapter: its product, its gradients and its rounding."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from transformers.pytorch_utils import Conv1D

from tokengym.agents.service.engine.linear import Adapter, LoraLinear

SHAPE = (3, 70, 24)


def _layer(kind: str) -> tuple[LoraLinear, torch.Tensor]:
    torch.manual_seed(1)
    plain: nn.Linear | Conv1D = Conv1D(40, 24) if kind == "conv1d" else nn.Linear(24, 40)
    nn.init.normal_(plain.bias)
    layer = LoraLinear(plain)
    a, b = nn.Parameter(torch.randn(4, 24) / 5), nn.Parameter(torch.randn(40, 4) / 5)
    layer.adapter = Adapter(a, b, 2.0)
    return layer, plain.weight.T if kind == "conv1d" else plain.weight


@pytest.mark.parametrize("kind", ["linear", "conv1d"])
def test_product_and_gradients_are_those_of_the_merged_weight(kind: str) -> None:
    layer, weight = _layer(kind)
    assert layer.adapter is not None
    (a, b, scaling), x = layer.adapter, torch.randn(SHAPE, requires_grad=True)
    upstream = torch.randn(*SHAPE[:2], 40)
    wanted = nn.functional.linear(x, weight.detach() + scaling * b @ a, layer.bias)
    expected = torch.autograd.grad(wanted, (x, a, b), upstream)
    given = layer(x)
    assert torch.allclose(given, wanted, atol=1e-5)
    for gradient, reference in zip(
        torch.autograd.grad(given, (x, a, b), upstream), expected, strict=True
    ):
        assert torch.allclose(gradient, reference, atol=1e-4)
    with torch.no_grad():
        assert torch.equal(layer(x), given)
        layer.attach_for_sampling(layer.adapter)
        assert torch.allclose(layer(x), given, atol=1e-5)
        layer.attach_for_sampling(None)
        assert torch.allclose(layer(x), nn.functional.linear(x, weight, layer.bias), atol=1e-5)


def test_bfloat16_keeps_small_updates_on_average() -> None:
    torch.manual_seed(0)
    layer = LoraLinear(nn.Linear(256, 256, bias=False).bfloat16())
    x = torch.randn(400, 256)
    with torch.no_grad():
        before = layer(x.bfloat16()).float()
        a, b = torch.randn(1, 256) / 16, torch.randn(256, 1) / 1000
        layer.adapter = Adapter(a, b, 1.0)
        moved = layer(x.bfloat16()).float() - before
        update = x @ a.T @ b.T
    # Far below half a unit in the last place of most outputs, and there all the same.
    assert float((update.abs() < before.abs() / 512).float().mean()) > 0.5
    slope = float((moved * update).sum() / update.square().sum())
    assert slope == pytest.approx(1.0, abs=0.05)
