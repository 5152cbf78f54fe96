"""Clients that end without a word give way to others, and find everything when they come back."""

from __future__ import annotations

import asyncio
import re
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import tinker
from tinker.lib.internal_client_holder import sessionless_holder_cache
from tinker.types import AdamParams

from tests.service.toy import VOCABULARY, at_once
from tokengym.agents.service import LocalService
from tokengym.agents.service.config import ServiceConfig
from tokengym.agents.service.engine.adapters import STATES, LoraSpec, adapter_bytes
from tokengym.agents.service.engine.forward import PackedForward
from tokengym.agents.service.engine.parking import Parking
from tokengym.agents.service.engine.trainer import Datum, LossRequest, Trainer
from tokengym.agents.service.errors import BadRequestError
from tokengym.agents.service.state.registry import QUIET_S, SILENCE_S
from tokengym.agents.service.state.service import Service

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tokengym.agents.service.engine.base_model import BaseModel

PAGE = Path(__file__).parents[2] / "docs" / "service.md"
SPEC = LoraSpec(4, seed=3)


def _trainer(base_model: BaseModel, parking: Parking) -> Trainer:
    forward = PackedForward(base_model.trained)
    trainer = Trainer(forward, base_model.vocabulary, base_model.context)
    trainer.parking = parking
    return trainer


def _loss(seed: int, count: int = 1) -> LossRequest:
    draw = np.random.default_rng(seed)
    data = []
    for length in range(9, 9 + count):
        tokens = draw.integers(0, VOCABULARY, length + 1)
        targets = {"target_tokens": tokens[1:].astype(np.int64)}
        data.append(Datum(tokens[:-1].astype(np.int32), targets))
    return LossRequest(data, "cross_entropy")


@pytest.mark.nightly
def test_a_request_in_pieces_gives_way_between_them(base_model: BaseModel, tmp_path: Path) -> None:
    """Each of two requests in turn, with what was accumulated before them."""

    def play(parking: Parking) -> list[dict[str, Any]]:
        trainer = _trainer(base_model, parking)
        # Each datum is a batch of its own.
        trainer._forward = PackedForward(base_model.trained, memory=1)
        for name in ("a", "b"):
            trainer.create(name, SPEC)
            at_once(trainer.forward_backward(name, _loss(1)))
        busy = [trainer.forward_backward(name, _loss(2, 4)) for name in ("a", "b")]
        while busy:
            for work in list(busy):
                if next(work, None) is None:
                    busy.remove(work)
        return [{k: t.tolist() for k, t in trainer.run(n).held().items()} for n in ("a", "b")]

    size = adapter_bytes(base_model.trained, SPEC)
    assert play(Parking(tmp_path, lambda: STATES * size)) == play(Parking())


@pytest.fixture
def small(model_dir: Path, tmp_path: Path) -> Iterator[LocalService]:
    with LocalService(model_dir, state_dir=tmp_path / "state", threads=1, memory=0.1) as service:
        yield service


def _page_client(monkeypatch: pytest.MonkeyPatch, service: LocalService, rank: int) -> str:
    """The client of the page, with a rank of which the service has room for few runs."""
    # For the life of a process, the SDK's `RestClient()` stays with the first address it found.
    monkeypatch.setattr(sessionless_holder_cache, "_holders", {})
    monkeypatch.setenv("TINKER_BASE_URL", service.base_url)
    monkeypatch.setenv("TINKER_API_KEY", service.api_key)
    (code,) = re.findall(r"```python client\.py\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert "rank=8" in code
    return str(code).replace("rank=8", f"rank={rank}")


@pytest.mark.nightly
def test_the_pages_client_is_never_refused(
    small: LocalService, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = _page_client(monkeypatch, small, 320)
    kept: list[dict[str, Any]] = []  # No client ends its session: all 33 are alive.

    def once(_: int) -> None:
        kept.append(names := {"print": lambda *_: None})
        exec(code, names)

    for number in range(30):
        once(number)
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(once, range(3)))
    # The first one goes on where it was.
    names = kept[0]
    results = [names["training"].forward([names["datum"]], "cross_entropy").result()]
    path = names["training"].save_state("again").result().path
    loaded = tinker.ServiceClient().create_training_client_from_state(path).result()
    results.append(loaded.forward([names["datum"]], "cross_entropy").result())
    assert results[0].metrics == results[1].metrics
    assert results[0].metrics["loss:sum"] < names["result"].metrics["loss:sum"]


@pytest.mark.nightly
def test_sessions_are_listed_and_ended(small: LocalService) -> None:
    at: dict[str, Any] = {"base_url": small.base_url, "api_key": small.api_key}
    rest = tinker.RestClient(**at)
    assert rest.list_sessions().result().sessions == []
    clients = [tinker.ServiceClient(**at) for _ in range(3)]
    runs = [one.create_lora_training_client(small.model_name, rank=1).result() for one in clients]
    ids = [run.model_id.split(":")[0] for run in runs]
    # The newest first.
    assert rest.list_sessions().result().sessions == ids[::-1]
    assert rest.list_sessions(limit=1, offset=1).result().sessions == [ids[1]]
    clients[1].close("success").result()
    assert rest.list_sessions().result().sessions == [ids[2], ids[0]]
    with pytest.raises(tinker.APIStatusError, match="has finished: success"):
        rest.get_session(ids[1]).result()


def _service(model_dir: Path, folder: Path) -> Service:
    """A service with room for sixteen fresh runs of rank 256, or for three that were trained."""
    service = Service(ServiceConfig(models=(model_dir,), state_dir=folder, memory=0.1, threads=1))
    size = adapter_bytes(service.models[0].base_model.trained, LoraSpec(256))
    service.ledger._capacity = 16 * size
    return service


async def _create(service: Service, name: str, rank: int) -> str:
    """Create a session with a training run; returns the run's id."""
    session = service.registry.open_session(None, name)
    run_id = f"{session.id}:train:0"
    spec = LoraSpec(rank, seed=1)
    created = service.create_run(run_id, session.id, service.models[0], spec, None)
    assert (await service.futures.get(created)) == {"model_id": run_id, "type": "create_model"}
    return run_id


@pytest.mark.nightly
def test_a_client_that_slept_finds_its_run_sampler_and_place(
    model_dir: Path, tmp_path: Path
) -> None:
    async def play(others: int, folder: Path) -> list[Any]:
        service = _service(model_dir, folder)
        service.start()
        run_id = await _create(service, "sleeper", 256)

        async def train(number: int, work: Any) -> Any:
            answer = service.train(run_id, number, work)
            return await service.futures.get(answer)

        def losses(seed: int) -> Any:
            return lambda model: model.trainer.forward_backward(run_id, _loss(seed))

        adam = partial(service.models[0].trainer.optim_step, run_id, AdamParams())
        # It has moments, and a gradient that the next request adds to.
        for number, work in ((1, losses(1)), (2, lambda _: adam()), (3, losses(2))):
            await train(number, work)
        saved = service.save_unnamed(run_id, 4, 0)
        sampler = (await service.futures.get(saved))["sampling_session_id"]
        service.registry.sessions[run_id.split(":")[0]].last_seen -= QUIET_S + 1
        for number in range(others):
            await _create(service, str(number), 256)
        await service.end_silent_sessions()
        assert bool(service.parking.written) == bool(others)
        assert service.status()["bytes_of_runs"] <= service.ledger.for_runs
        answers = [(await train(5, losses(4))).logprobs[0].tolist()]
        # A request that comes a second time is not carried out again.
        answers += [await train(6, lambda _: adam()), await train(6, lambda _: adam())]
        answers.append((await train(7, losses(6))).logprobs[0].tolist())
        assert service.registry.sampler(sampler).weights == sampler
        answers.append(await service.call("", partial(_digest, service, sampler)))
        assert not service.registry.is_silent(run_id)
        await asyncio.to_thread(service.stop)
        return answers

    expected = asyncio.run(play(0, tmp_path / "alone"))
    assert asyncio.run(play(14, tmp_path / "beside")) == expected


def _digest(service: Service, key: str) -> str:
    return service.models[0].sampled_weights.lineage(key)


@pytest.mark.nightly
def test_only_silent_or_oversized_clients_are_ended(model_dir: Path, tmp_path: Path) -> None:
    async def play() -> None:
        service = _service(model_dir, tmp_path)
        service.start()
        runs = [await _create(service, str(number), 256) for number in range(20)]
        sessions = [service.registry.sessions[run_id.split(":")[0]] for run_id in runs]
        for number, silence in ((3, SILENCE_S + 1), (5, SILENCE_S - 60), (4, QUIET_S + 9)):
            sessions[number].last_seen -= silence
        await service.end_silent_sessions()
        assert set(runs) - service.registry.runs.keys() == {runs[3]}
        assert service.parking.written > 0
        service._most_spilled = service.parking.written - 1
        await service.end_silent_sessions()
        # The longest silent goes, and nobody else: there is room again.
        assert set(runs) - service.registry.runs.keys() == {runs[3], runs[5]}
        for run_id in runs:
            service.finish_session(run_id.split(":")[0], "success")
        await service.call(runs[-1].split(":")[0], lambda: None)
        async with asyncio.timeout(20):
            while any(service.status()[of] for of in ("bytes_of_runs", "bytes_of_files")):
                await asyncio.sleep(0.01)
        assert list((tmp_path / "parked").iterdir()) == []
        await asyncio.to_thread(service.stop)

    asyncio.run(play())


def test_a_run_too_large_even_alone_is_refused(model_dir: Path, tmp_path: Path) -> None:
    service = _service(model_dir, tmp_path)
    session = service.registry.open_session(None, None)
    service.ledger._capacity = 1000
    with pytest.raises(BadRequestError, match=r"a training run of rank 8 must take .* --memory"):
        service.create_run(
            f"{session.id}:train:0", session.id, service.models[0], LoraSpec(8), None
        )
    assert service.ledger.runs == {}
