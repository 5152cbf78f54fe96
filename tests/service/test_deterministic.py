"""With `deterministic`, what one request gets does not depend on the others by a single bit."""

from __future__ import annotations

from concurrent.futures import Future
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tokengym.agents.service.config import ServiceConfig
from tokengym.agents.service.engine.checkpoints import CheckpointStore
from tokengym.agents.service.generation.sampler import SampleRequest, SampleResult
from tokengym.agents.service.generation.token_sampling import TokenSampling
from tokengym.agents.service.served_model import ServedModel

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def served(model_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> ServedModel:
    state = tmp_path_factory.mktemp("deterministic")
    config = ServiceConfig(models=(model_dir,), state_dir=state, deterministic=True)
    return ServedModel(model_dir, config, CheckpointStore(state), lambda: 1)


def _request(number: int) -> SampleRequest:
    generator = np.random.default_rng(number)
    # Prompts that begin alike, or one with another: what is kept of one must not serve the next.
    prompt = np.r_[np.arange(30), generator.integers(0, 300, number % 5)].astype(np.int32)
    return SampleRequest(
        "base", prompt, 2, TokenSampling(number), 3 + number % 6, frozenset(), score=number % 2 == 0
    )


def _play(served: ServedModel, arrivals: list[list[int]]) -> dict[int, SampleResult]:
    """Submit requests some steps apart; returns what each got."""
    futures: dict[int, Future[SampleResult]] = {}
    for together in arrivals:
        for number in together:
            futures[number] = Future()
            served.sampler.submit(_request(number), futures[number])
        if served.sampler.busy:
            served.sampler.step()
    while served.sampler.busy:
        served.sampler.step()
    return {number: future.result() for number, future in futures.items()}


def test_a_request_gets_the_same_bits_alone_and_among_others_in_any_order(
    served: ServedModel,
) -> None:
    alone = {number: _play(served, [[number]])[number] for number in range(8)}
    crowds = [[list(range(8))], [[7, 6], [5], [4, 3, 2], [], [1, 0]], [list(range(63, -1, -1))]]
    for arrivals in crowds:
        found = _play(served, arrivals)
        for number, expected in alone.items():
            got = found[number]
            for one, other in zip(got.sequences, expected.sequences, strict=True):
                assert one.tokens == other.tokens
                assert one.logprobs == other.logprobs
            if expected.prompt_logprobs is not None:
                assert got.prompt_logprobs is not None
                assert got.prompt_logprobs.tobytes() == expected.prompt_logprobs.tobytes()
