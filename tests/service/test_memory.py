"""A bound on memory splits the work and changes nothing else."""

from __future__ import annotations

import platform
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from tinker.types import SamplingParams
from torch.autograd.graph import saved_tensors_hooks

from tests.service.toy import VOCABULARY, sampler_with
from tokengym.agents.execution.memory import large_blocks_apart
from tokengym.agents.service.engine.adapters import LoraAdapter, LoraSpec
from tokengym.agents.service.engine.forward import PackedForward
from tokengym.agents.service.engine.memory import LEAST_BATCH, STEP, divided
from tokengym.agents.service.generation.jobs import SampleRequest, SampleResult

if TYPE_CHECKING:
    from tokengym.agents.service.engine.base_model import BaseModel


def test_memory_is_divided_in_steps_of_a_least_size() -> None:
    assert divided(-5, STEP) == (4 * LEAST_BATCH // 3, 4 * LEAST_BATCH)
    assert divided(12 * STEP, 8 * STEP) == (2 * STEP, 6 * STEP)
    assert divided(32 * STEP, STEP) == (STEP, 16 * STEP)
    # What a process holds at its start does not change how batches are cut.
    assert len({divided(8 * STEP - few, STEP) for few in range(1, STEP, STEP // 7)}) == 1


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the heap is glibc's")
def test_large_blocks_lie_outside_the_heap() -> None:
    """Once a block of 28 MiB was freed, glibc takes those of 5 MiB from the heap."""
    del [torch.empty(7 << 20)][:]
    with large_blocks_apart():
        blocks = [torch.empty(5 << 18) for _ in range(16)]
    maps = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    low, high = next(line for line in maps if "[heap]" in line).split()[0].split("-")
    assert not [one for one in blocks if int(low, 16) <= one.data_ptr() < int(high, 16)]


def _sample(base_model: BaseModel, capacity: int) -> tuple[list[list[int]], int]:
    """Sampled tokens of three requests, and the most sequences that ran at once."""
    sampler = sampler_with(base_model, capacity)
    futures: list[Future[SampleResult]] = []
    for number in range(3):
        prompt = np.arange(10 * number, 10 * number + 12, dtype=np.int32)
        futures.append(Future())
        sampler.submit(
            SampleRequest("base", prompt, 4, SamplingParams(seed=number), 6, frozenset()),
            futures[-1],
        )
    most = 0
    while sampler.busy:
        sampler.step()
        most = max(most, sum(len(batch.rows) for batch in sampler._batches.values()))
    return [one.tokens.tolist() for future in futures for one in future.result().sequences], most


@pytest.mark.nightly
def test_sequences_that_do_not_fit_wait_unchanged(base_model: BaseModel) -> None:
    expected, together = _sample(base_model, 1 << 20)
    assert together == 12
    for capacity, running in ((1, 1), (24, 1), (47, 1), (48, 2), (72, 3), (96, 4)):
        sampled, most = _sample(base_model, capacity)
        assert sampled == expected
        assert most == running


def test_what_a_batch_keeps_is_foreseen(base_model: BaseModel) -> None:
    adapter = LoraAdapter(base_model.trained, LoraSpec(8, seed=1))
    adapter.attach()
    forward = PackedForward(base_model.trained)
    generator = np.random.default_rng(0)
    sequences = [generator.integers(0, VOCABULARY, 150).astype(np.int32) for _ in range(6)]
    (groups,) = forward.plan(sequences)
    weights = {p.untyped_storage().data_ptr() for p in base_model.trained.parameters()}
    kept: dict[int, int] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.untyped_storage().data_ptr() not in weights:
            kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    running = forward.running(groups, sequences)
    with saved_tensors_hooks(keep, lambda tensor: tensor), running as (_, hidden):
        assert hidden.requires_grad
    foreseen = forward.size * sum(map(len, sequences))
    assert 0.7 < sum(kept.values()) / foreseen < 1.2


def test_long_sequences_stay_together_where_layers_are_computed_again(
    base_model: BaseModel,
) -> None:
    adapter = LoraAdapter(base_model.trained, LoraSpec(8, seed=1))
    adapter.attach()
    ample = PackedForward(base_model.trained)
    generator = np.random.default_rng(0)
    prompt = generator.integers(0, VOCABULARY, 120)
    sequences = [
        np.append(prompt, generator.integers(0, VOCABULARY, 20)).astype(np.int32) for _ in range(5)
    ]
    positions = 120 + 5 * 20
    small = PackedForward(base_model.trained, ample.size * 140 - 1)
    assert ample.recomputed * positions < small.memory
    gradients: list[list[torch.Tensor]] = []
    for forward in (ample, small):
        (groups,) = forward.plan(sequences)
        assert sum(group.positions(sequences) for group in groups) == positions
        with forward.running(groups, sequences) as (_, hidden):
            hidden.square().sum().backward()
        gradients.append([])
        for parameter in adapter.parameters.values():
            if parameter.grad is not None:
                gradients[-1].append(parameter.grad)
                parameter.grad = None
    assert gradients[0]
    for whole, again in zip(*gradients, strict=True):
        torch.testing.assert_close(again, whole)


def test_a_client_keeps_the_conversations_of_its_last_weights(base_model: BaseModel) -> None:
    sampler = sampler_with(base_model, 1 << 20)
    for weights in ("a", "b", "c", "a", "d"):
        future: Future[SampleResult] = Future()
        prompt = np.arange(9, dtype=np.int32)
        request = SampleRequest(weights, prompt, 1, SamplingParams(seed=1), 3, frozenset())
        sampler.submit(request, future)
        while sampler.busy:
            sampler.step()
    assert [weights for _, weights in sampler._batches] == ["a", "d"]
    sampler.forget("a")
    assert [weights for _, weights in sampler._batches] == ["d"]
