"""Sampling and training compute the same log-probabilities; Adam keeps weights finite."""

from __future__ import annotations

import math
from concurrent.futures import Future
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from tinker.types import AdamParams, SamplingParams

from tests.every import every
from tests.service.toy import at_once
from tokengym.agents.service.engine.adapters import LoraSpec
from tokengym.agents.service.engine.base_model import BaseModel
from tokengym.agents.service.engine.forward import PackedForward
from tokengym.agents.service.engine.linear import lora_layers
from tokengym.agents.service.engine.trainer import Datum, LossRequest, Trainer
from tokengym.agents.service.errors import BadRequestError
from tokengym.agents.service.generation.decoder import KeptDecoder
from tokengym.agents.service.generation.jobs import SampleRequest, SampleResult
from tokengym.agents.service.generation.sampler import Sampler

if TYPE_CHECKING:
    from pathlib import Path

SPEC = LoraSpec(8, seed=1)


def _sampled(sampler: Sampler, prompts: list[np.ndarray]) -> list[tuple[np.ndarray, list]]:
    """Eight samples of each prompt: all their tokens, and the log-probabilities of the new ones."""
    futures: list[Future[SampleResult]] = []
    for seed, prompt in enumerate(prompts):
        futures.append(Future())
        request = SampleRequest("run", prompt, 8, SamplingParams(seed=seed), 20, frozenset())
        sampler.submit(request, futures[-1])
    while sampler.busy:
        sampler.step()
    return [
        (np.append(prompt, np.array(one.tokens, np.int32)), one.logprobs.tolist())
        for prompt, future in zip(prompts, futures, strict=True)
        for one in future.result().sequences
    ]


# In bfloat16 products of other shapes round apart, by an amount that depends on the processor.
@pytest.mark.nightly
@pytest.mark.parametrize(("precision", "limit"), [("float32", 1e-5), ("bfloat16", 2e-2)])
def test_training_computes_the_log_probabilities_that_were_sampled_with(
    model_dir: Path, precision: str, limit: float
) -> None:
    base_model = BaseModel(model_dir, "cpu", precision)
    assert base_model.precision == precision
    forward = PackedForward(base_model.trained)
    trainer = Trainer(forward, base_model.vocabulary, base_model.context)
    trainer.create("run", SPEC)
    for parameter in trainer.run("run").parameters.values():
        torch.nn.init.normal_(parameter, std=0.02)
    layers = lora_layers(base_model.sampled)
    for name, adapter in trainer.run("run").export().adapters().items():
        layers[name].attach_for_sampling(adapter)
    generator = np.random.default_rng(0)
    prompts = [generator.integers(0, 320, n).astype(np.int32) for n in (12, 40, 70)]
    decoder = KeptDecoder(base_model.sampled)
    sampler = Sampler(forward, lambda: decoder, lambda _weights: None, str)
    first = _sampled(sampler, prompts)
    # The next turn of some of them reads only what is new.
    longer = [np.append(tokens, [5, 6, 7]).astype(np.int32) for tokens, _ in first[::8]]
    assert all(decoder.known(prompt) == len(prompt) - 4 for prompt in longer)
    gaps = []
    for tokens, logprobs in first + _sampled(sampler, longer):
        targets = {"target_tokens": tokens[1:].astype(np.int64)}
        request = LossRequest([Datum(tokens[:-1], targets)], "cross_entropy", forward_only=True)
        (trained,) = at_once(trainer.forward_backward("run", request)).logprobs
        gaps.append(np.abs(trained[-len(logprobs) :] - logprobs))
    assert float(np.mean(gaps)) < limit


def test_bfloat16_is_near_float32_which_small_models_have_by_default(model_dir: Path) -> None:
    assert BaseModel(model_dir, "cpu").precision == "float32"
    ids = torch.arange(60)[None]
    exact, rounded = (
        torch.log_softmax(BaseModel(model_dir, "cpu", p).sampled(input_ids=ids).logits, -1)
        for p in ("float32", "bfloat16")
    )
    assert float((exact - rounded.float()).detach().abs().mean()) < 0.02


@pytest.mark.nightly
@pytest.mark.reference_model
def test_a_language_model_is_bfloat16_where_the_processor_has_it(reference_directory: Path) -> None:
    known = torch.cpu.get_capabilities()
    fast = known.get("avx512_bf16") or known.get("amx_bf16")
    precision = BaseModel(reference_directory, "cpu").precision
    assert precision == ("bfloat16" if fast else "float32")


@every(
    ("setting", "value"),
    [
        (name, value)
        for name in ("learning_rate", "beta1", "beta2", "eps", "weight_decay", "grad_clip_norm")
        for value in (math.nan, math.inf, -1e-3)
    ]
    + [("beta1", 1.0), ("beta2", 1.0), ("eps", 0.0)],
)
def test_settings_of_adam_that_ruin_weights_are_refused(
    trainer: Trainer, setting: str, value: float
) -> None:
    with pytest.raises(BadRequestError, match=f"{setting} must be from .* got {value}"):
        trainer.optim_step("run", AdamParams(**{setting: value}))


@pytest.fixture(scope="module")
def trainer(model_dir: Path) -> Trainer:
    base_model = BaseModel(model_dir, "cpu")
    forward = PackedForward(base_model.trained)
    trainer = Trainer(forward, base_model.vocabulary, base_model.context)
    trainer.create("run", SPEC)
    return trainer


def test_no_allowed_step_makes_weights_that_are_not_finite(trainer: Trainer) -> None:
    run = trainer.run("run")
    with pytest.raises(BadRequestError, match="learning_rate times weight_decay must be at most 1"):
        trainer.optim_step("run", AdamParams(learning_rate=1e3, weight_decay=1e3))
    violent = AdamParams(learning_rate=1e3, weight_decay=1e-3, beta1=0.0, beta2=1 - 1e-6, eps=1e-30)
    for sign in (1.0, -1.0) * 10:
        for parameter in run.parameters.values():
            parameter.grad = torch.full_like(parameter, sign)
        trainer.optim_step("run", violent)
    assert all(bool(torch.isfinite(p).all()) for p in run.parameters.values())
