"""With `deterministic`, what one request gets does not depend on the others by a single bit."""

from __future__ import annotations

from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from tinker.types import SamplingParams

from tokengym.agents.service.config import Precision, ServiceConfig
from tokengym.agents.service.engine.checkpoints import CheckpointStore
from tokengym.agents.service.generation.jobs import SampleRequest, SampleResult, Sequence
from tokengym.agents.service.served_model import ServedModel
from tokengym.agents.toy_model import MODEL_DIR

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.nightly


LONG = 30
"""Tokens that most prompts begin with."""


def _served(directory: Path, state: Path, precision: Precision = "float32") -> ServedModel:
    config = ServiceConfig(
        models=(directory,), state_dir=state, precision=precision, deterministic=True
    )
    return ServedModel(directory, config, CheckpointStore(state))


@pytest.fixture(scope="module", params=["float32", "bfloat16"])
def served(
    request: pytest.FixtureRequest, model_dir: Path, tmp_path_factory: pytest.TempPathFactory
) -> ServedModel:
    return _served(model_dir, tmp_path_factory.mktemp("deterministic"), request.param)


def _request(number: int, longer: int = 0) -> SampleRequest:
    generator = np.random.default_rng(number)
    # Prompts that begin alike, or one with another: what is kept of one must not serve the next.
    more = generator.integers(0, 300, number % 5 + longer * number)
    prompt = np.r_[np.arange(LONG), more].astype(np.int32)
    return SampleRequest(
        "base",
        prompt,
        2,
        SamplingParams(seed=number),
        3 + number % 6,
        frozenset(),
        score=number % 2 == 0,
    )


def _play(
    served: ServedModel, arrivals: list[list[int]], longer: int = 0
) -> dict[int, SampleResult]:
    """Submit requests some steps apart; returns what each got."""
    futures: dict[int, Future[SampleResult]] = {}
    for together in arrivals:
        for number in together:
            futures[number] = Future()
            served.sampler.submit(_request(number, longer), futures[number])
        if served.sampler.busy:
            served.sampler.step()
    while served.sampler.busy:
        served.sampler.step()
    return {number: future.result() for number, future in futures.items()}


def test_a_request_gets_the_same_bits_among_others(served: ServedModel) -> None:
    alone = {number: _play(served, [[number]])[number] for number in range(8)}
    crowds = [[list(range(8))], [[7, 6], [5], [4, 3, 2], [], [1, 0]], [list(range(63, -1, -1))]]
    for arrivals in crowds:
        found = _play(served, arrivals)
        for number, expected in alone.items():
            got = found[number]
            for one, other in zip(got.sequences, expected.sequences, strict=True):
                assert one.tokens == other.tokens
                assert one.logprobs == other.logprobs
            if expected.scores is not None:
                assert got.scores is not None
                assert got.scores.logprobs.tobytes() == expected.scores.logprobs.tobytes()


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_other_prompts_lengths_change_no_bit(tmp_path: Path, precision: Precision) -> None:
    served = _served(MODEL_DIR, tmp_path, precision)
    # Up to 800 tokens, as in a day of energy: rows of one to seven tiles of keys run together.
    together = _play(served, [[8, 1], [3], [17, 5, 11]], longer=48)
    for number in (1, 17):
        alone = _play(served, [[number]], longer=48)[number]
        for one, other in zip(together[number].sequences, alone.sequences, strict=True):
            assert one.tokens == other.tokens
            assert one.logprobs == other.logprobs


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_turns_that_were_remembered_change_no_bit_of_the_next(
    tmp_path: Path, precision: Precision
) -> None:
    draw = np.random.default_rng(0)
    text = draw.integers(0, 300, 200).astype(np.int32)
    served = _served(MODEL_DIR, tmp_path / "first", precision)
    read = 0

    def count(_module: object, args: tuple[torch.Tensor], _output: object) -> None:
        nonlocal read
        read += args[0].numel()

    def sample(model: ServedModel) -> list[Sequence]:
        future: Future[SampleResult] = Future()
        sampling = SamplingParams(seed=len(text))
        model.sampler.submit(SampleRequest("base", text, 2, sampling, 5, frozenset()), future)
        while model.sampler.busy:
            model.sampler.step()
        return future.result().sequences

    model: Any = served.base_model.sampled
    model.get_input_embeddings().register_forward_hook(count)
    for _ in range(4):
        read, before = 0, len(text)
        replies = sample(served)
        more = draw.integers(0, 300, 70).astype(np.int32)
        text = np.concatenate([text, np.array(replies[1].tokens, np.int32), more])
    # Rows of decode steps besides.
    assert read < before / 2 + 16 * 5
    expected = sample(_served(MODEL_DIR, tmp_path / "second", precision))
    for one, other in zip(sample(served), expected, strict=True):
        assert (one.tokens, one.logprobs) == (other.tokens, other.logprobs)
