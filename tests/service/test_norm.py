"""The norm that replaces a model's own: the same values and gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from transformers import AutoModelForCausalLM
from transformers.models.qwen3.modeling_qwen3 import Qwen3RMSNorm

from tests.service.toy import make_model
from tokengym.agents.service.engine.norm import rms_norm, speed_up_norms

if TYPE_CHECKING:
    from pathlib import Path


def test_values_and_gradients_are_those_of_transformers() -> None:
    torch.manual_seed(0)
    theirs: Any = Qwen3RMSNorm(48, eps=1e-6)
    torch.nn.init.normal_(theirs.weight)
    weight = theirs.weight.detach()
    x = torch.randn(3, 5, 48, requires_grad=True)
    upstream = torch.randn(3, 5, 48)
    (expected,) = torch.autograd.grad(theirs(x), x, upstream)
    (found,) = torch.autograd.grad(rms_norm(weight, 1e-6, x), x, upstream)
    assert torch.allclose(found, expected, atol=1e-4)
    for enabled in (True, False):
        with torch.set_grad_enabled(enabled):
            assert torch.allclose(rms_norm(weight, 1e-6, x), theirs(x), atol=1e-5)


def test_only_llama_like_norms_are_replaced(tmp_path: Path) -> None:
    for kind, replaced in (("qwen3", True), ("llama", True), ("gpt2", False)):
        model = AutoModelForCausalLM.from_pretrained(make_model(tmp_path / kind, kind))
        speed_up_norms(model)
        assert any("forward" in vars(module) for module in model.modules()) is replaced
