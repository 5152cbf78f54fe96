"""Who asks for much does not keep others waiting, and nobody's numbers change by a bit."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tinker.types import SamplingParams

from tests.service.toy import VOCABULARY, sampler_with
from tokengym.agents.service.engine.compute_thread import ComputeThread, Pieces
from tokengym.agents.service.generation.jobs import SampleRequest, SampleResult
from tokengym.agents.service.generation.sampled_weights import BASE

if TYPE_CHECKING:
    from tokengym.agents.service.engine.base_model import BaseModel


@pytest.fixture
def compute() -> Iterator[ComputeThread]:
    thread = ComputeThread()
    thread.start([])
    yield thread
    thread.stop()


def test_operations_of_many_clients_take_turns_in_pieces(compute: ComputeThread) -> None:
    done: list[str] = []
    queued = threading.Event()

    def work(client: str, pieces: int) -> Pieces[str]:
        queued.wait()
        for _ in range(pieces):
            yield
            threading.Event().wait(0.005)
            done.append(client)
        return client

    large = [compute.call("large", partial(work, "large", 4)) for _ in range(12)]
    small = [compute.call(name, partial(work, name, 1)) for name in ("one", "two")]
    queued.set()
    assert [future.result(20) for future in (*small, *large)] == ["one", "two", *["large"] * 12]
    assert len(done) == 50
    assert {"one", "two"} <= set(done[:6])


def test_a_client_has_no_claim_to_time_before_it_came() -> None:
    done: list[str] = []
    queued = threading.Event()
    queued.set()

    def work(name: str) -> None:
        queued.wait()
        done.append(name)

    # Everything takes one second by this clock, however long the machine lets it wait.
    compute = ComputeThread(clock=lambda: float(len(done)))
    compute.start([])
    for _ in range(10):
        compute.call("first", partial(work, "first")).result(20)
    queued.clear()
    futures = [compute.call(n, partial(work, n)) for _ in range(4) for n in ("first", "second")]
    queued.set()
    for future in futures:
        future.result(20)
    compute.stop()
    assert 2 <= done[10:15].count("first") <= 3


def _request(client: str, count: int, length: int, tokens: int, weights: str = BASE) -> Any:
    prompt = np.random.default_rng(length).integers(0, VOCABULARY, length).astype(np.int32)
    sampling = SamplingParams(seed=count)
    return SampleRequest(
        weights, prompt, count, sampling, tokens, frozenset(), score=True, client=client
    )


@pytest.mark.nightly
@pytest.mark.parametrize("capacity", [1 << 20, 5000])
def test_a_sample_does_not_wait_for_another_clients(base_model: BaseModel, capacity: int) -> None:
    sampler = sampler_with(base_model, capacity)
    large: list[Future[SampleResult]] = [Future() for _ in range(8)]
    for future in large:
        sampler.submit(_request("large", 256, 20, 40), future)
    for _ in range(3):
        sampler.step("large")
    small: Future[SampleResult] = Future()
    sampler.submit(_request("small", 1, 9, 4), small)
    for _ in range(3):  # The first step appends two tokens.
        assert set(sampler.waiting()) == {"small", "large"}
        sampler.step("small")
    assert small.done()
    assert not any(future.done() for future in large)


def test_who_waits_for_room_is_the_next_to_get_it(base_model: BaseModel) -> None:
    sampler = sampler_with(base_model, 400)
    large: list[Future[SampleResult]] = [Future() for _ in range(4)]
    for future in large:
        sampler.submit(_request("large", 32, 20, 10), future)
    sampler.step("large")
    long: Future[SampleResult] = Future()
    sampler.submit(_request("long", 1, 100, 100), long)
    sampler.step("long")  # Scores its prompt; there is no room for its keys.
    steps = 0
    while not long.done():
        ready = sampler.waiting()
        sampler.step("long" if "long" in ready else "large")
        steps += 1
    assert steps < 150
    assert not all(future.done() for future in large)
    while sampler.busy:
        sampler.step("large")
    assert [len(future.result().sequences) for future in large] == [32] * 4
