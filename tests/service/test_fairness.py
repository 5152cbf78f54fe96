"""Who asks for much does not keep others waiting, and nobody's numbers change by a bit."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from tinker.types import AdamParams

from tests.service.toy import VOCABULARY, sampler_with
from tokengym.agents.service.config import ServiceConfig
from tokengym.agents.service.engine import compute_thread
from tokengym.agents.service.engine.adapters import LoraSpec
from tokengym.agents.service.engine.base_model import BaseModel, load_base_model
from tokengym.agents.service.engine.compute_thread import ComputeThread, Pieces
from tokengym.agents.service.engine.trainer import Datum, LossRequest
from tokengym.agents.service.generation.adapter_cache import BASE
from tokengym.agents.service.generation.jobs import SampleRequest, SampleResult
from tokengym.agents.service.generation.token_sampling import TokenSampling
from tokengym.agents.service.state.service import Service

if TYPE_CHECKING:
    from pathlib import Path


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
            yield 1
            threading.Event().wait(0.005)
            done.append(client)
        return client

    large = [compute.call("large", partial(work, "large", 4)) for _ in range(12)]
    small = [compute.call(name, partial(work, name, 1)) for name in ("one", "two")]
    queued.set()
    assert [future.result(20) for future in (*small, *large)] == ["one", "two", *["large"] * 12]
    assert len(done) == 50
    assert {"one", "two"} <= set(done[:6])


def test_a_large_piece_pauses_for_small_ones_of_others_only(
    compute: ComputeThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compute_thread, "LOOK_S", 0.0)
    seen: list[str] = []
    inside, queued = threading.Event(), threading.Event()

    def large() -> Pieces[None]:
        yield 100
        inside.set()
        queued.wait()
        threading.Event().wait(0.01)
        with torch.inference_mode():
            compute_thread.pause()
            seen.append("large")
            assert torch.is_inference_mode_enabled()

    def note(name: str) -> None:
        assert not torch.is_inference_mode_enabled()
        seen.append(name)

    futures = [compute.call("large", large)]
    inside.wait()
    for name, size in (("large", 1), ("small", 25), ("small too", 1), ("other", 26)):
        futures.append(compute.call(name, partial(note, f"{name} {size}"), size))
    queued.set()
    for future in futures:
        future.result(20)
    assert set(seen[:2]) == {"small 25", "small too 1"}
    assert seen[2] == "large"
    assert set(seen[3:]) == {"large 1", "other 26"}


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


@pytest.fixture(scope="module")
def base_model(model_dir: Path) -> BaseModel:
    return load_base_model(model_dir, "cpu")


def _request(client: str, count: int, length: int, tokens: int, weights: str = BASE) -> Any:
    prompt = np.random.default_rng(length).integers(0, VOCABULARY, length).astype(np.int32)
    sampling = TokenSampling(seed=count)
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
        assert sampler.waiting().keys() == {"small", "large"}
        sampler.step("small")
    assert small.done()
    assert not any(future.done() for future in large)


@pytest.mark.nightly
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


def _loss(seed: int, count: int, length: int) -> LossRequest:
    draw = np.random.default_rng(seed)
    tokens = [draw.integers(0, VOCABULARY, length + 1) for _ in range(count)]
    return LossRequest(
        [Datum(t[:-1].astype(np.int32), {"target_tokens": t[1:].astype(np.int64)}) for t in tokens],
        "cross_entropy",
    )


@pytest.mark.nightly
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_work_between_layers_changes_no_bit(
    model_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, precision: Any
) -> None:
    monkeypatch.setattr(compute_thread, "LOOK_S", 0.0)
    config = ServiceConfig(models=(model_dir,), state_dir=tmp_path, precision=precision)
    service = Service(config)
    (model,), compute = service.models, service.compute
    service.start()
    started = threading.Event()

    def train(run_id: str, loss: LossRequest) -> Any:
        started.set()
        return model.trainer.forward_backward(run_id, loss)

    def sample(request: SampleRequest) -> Future[SampleResult]:
        future: Future[SampleResult] = Future()
        compute.post(partial(model.sampler.submit, request, future))
        return future

    def small(name: str) -> list[Any]:
        """A few small requests: two steps of training, and samples of what was learned so far."""
        found: list[Any] = []
        compute.call(name, partial(model.trainer.create, name, LoraSpec(4, seed=1)), 1)
        for step in range(2):
            work = partial(train, name, _loss(step, 2, 12))
            found.append(compute.call(name, work, 1))
            update = partial(model.trainer.optim_step, name, AdamParams(learning_rate=1e-2))
            found.append(compute.call(name, update, 1))
        compute.call(name, partial(model.copy_adapter, name, name), 1).result(20)
        found += [sample(_request(name, 2, 10, 6, name)), sample(_request(name, 1, 15, 3))]
        return [future.result(20) for future in found]

    def large(name: str) -> Future[Any]:
        started.clear()
        compute.call(name, partial(model.trainer.create, name, LoraSpec(8, seed=2)), 1).result(20)
        future = compute.call(name, partial(train, name, _loss(7, 24, 230)), 1)
        assert started.wait(20)
        return future

    def gradients(name: str) -> list[Any]:
        return [p.grad for p in model.trainer.run(name).parameters.values() if p.grad is not None]

    try:
        alone = small("alone")
        expected = large("whole").result(20)
        busy = large("paused")
        among = small("among")
        assert not busy.done()
        found = busy.result(20)
        for one, other in zip(expected.logprobs, found.logprobs, strict=True):
            assert np.array_equal(one, other)
        assert gradients("whole")
        for one, other in zip(gradients("whole"), gradients("paused"), strict=True):
            assert torch.equal(one, other)
        for one, other in zip(alone[:4:2], among[:4:2], strict=True):
            assert all(map(np.array_equal, one.logprobs, other.logprobs))
        for one, other in zip(alone[4:], among[4:], strict=True):
            assert np.array_equal(one.scores.logprobs, other.scores.logprobs, equal_nan=True)
            for mine, theirs in zip(one.sequences, other.sequences, strict=True):
                assert (mine.tokens, mine.logprobs) == (theirs.tokens, theirs.logprobs)
        assert alone[1] == among[1]
    finally:
        service.stop()
