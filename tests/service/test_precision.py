"""Mixed precision: near float32, and the same in sampling and in training."""

from __future__ import annotations

from concurrent.futures import Future
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

from tokengym.agents.service.engine.adapters import LoraAdapters, LoraSpec
from tokengym.agents.service.engine.base_model import BaseModel, load_base_model
from tokengym.agents.service.engine.forward import packed_forward
from tokengym.agents.service.engine.linear import Adapter, lora_layers
from tokengym.agents.service.engine.trainer import Datum, LossRequest, Trainer
from tokengym.agents.service.generation.decoder import SharedPromptDecoder
from tokengym.agents.service.generation.prefix_cache import PrefixCache
from tokengym.agents.service.generation.sampler import Sampler, SampleRequest, SampleResult
from tokengym.agents.service.generation.token_sampling import TokenSampling

if TYPE_CHECKING:
    from pathlib import Path

SPEC = LoraSpec(8, seed=1)


def _sampled(base_model: BaseModel, prompts: list[np.ndarray]) -> list[tuple[np.ndarray, list]]:
    """Eight samples of each prompt: all their tokens, and the log-probabilities of the new ones."""
    sampler = Sampler(
        packed_forward(base_model.sampled, base_model.device, share=True),
        lambda weights: SharedPromptDecoder(base_model.sampled, PrefixCache(1 << 20), weights),
        lambda _weights: None,
        str,
    )
    futures: list[Future[SampleResult]] = []
    for seed, prompt in enumerate(prompts):
        futures.append(Future())
        request = SampleRequest("run", prompt, 8, TokenSampling(seed), 20, frozenset())
        sampler.submit(request, futures[-1])
    while sampler.busy:
        sampler.step()
    return [
        (np.append(prompt, np.array(one.tokens, np.int32)), one.logprobs)
        for prompt, future in zip(prompts, futures, strict=True)
        for one in future.result().sequences
    ]


@pytest.mark.parametrize(("precision", "limit"), [("float32", 1e-5), ("mixed", 1e-2)])
def test_training_computes_the_log_probabilities_that_were_sampled_with(
    model_dir: Path, precision: str, limit: float
) -> None:
    base_model = load_base_model(model_dir, "cpu", precision)
    assert base_model.precision == precision
    adapters = LoraAdapters(base_model.trained)
    forward = packed_forward(base_model.trained, base_model.device, share=True)
    trainer = Trainer(adapters, forward, base_model.vocabulary, base_model.context)
    trainer.create("run", SPEC)
    for parameter in trainer.run("run").parameters.values():
        torch.nn.init.normal_(parameter, std=0.02)
    layers = lora_layers(base_model.sampled)
    for name, (a, b) in adapters.export(trainer.run("run").adapter, SPEC).tensors.items():
        layers[name].adapter = layers[name].prepared(Adapter(a, b, SPEC.scaling))
    generator = np.random.default_rng(0)
    prompts = [generator.integers(0, 320, n).astype(np.int32) for n in (12, 40, 70)]
    gaps = []
    for tokens, logprobs in _sampled(base_model, prompts):
        targets = {"target_tokens": tokens[1:].astype(np.int64)}
        request = LossRequest([Datum(tokens[:-1], targets)], "cross_entropy", forward_only=True)
        (trained,) = trainer.forward_backward("run", request).logprobs
        gaps.append(np.abs(trained[-len(logprobs) :] - logprobs))
    assert float(np.mean(gaps)) < limit


def test_mixed_precision_is_near_float32_which_is_the_default(model_dir: Path) -> None:
    assert load_base_model(model_dir, "cpu").precision == "float32"
    ids = torch.arange(60)[None]
    exact, mixed = (
        torch.log_softmax(load_base_model(model_dir, "cpu", p).sampled(input_ids=ids).logits, -1)
        for p in ("float32", "mixed")
    )
    assert float((exact - mixed.float()).detach().abs().mean()) < 0.02
