"""What clients hold is counted and bounded, and all of it is given back."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokengym.agents.service.config import ServiceConfig
from tokengym.agents.service.engine.adapters import LoraSpec, adapter_bytes
from tokengym.agents.service.errors import NoRoomError, OverloadedError, ServiceError
from tokengym.agents.service.generation.adapter_cache import BASE
from tokengym.agents.service.generation.jobs import SampleRequest, SampleResult
from tokengym.agents.service.generation.token_sampling import TokenSampling
from tokengym.agents.service.state.ledger import Ledger
from tokengym.agents.service.state.service import STATES, Service

if TYPE_CHECKING:
    from pathlib import Path


@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.integers(0, 120), st.booleans(), st.booleans()),
        max_size=40,
    )
)
def test_no_more_is_held_than_there_is_and_something_is_left_for_others(
    asked: list[tuple[str, int, bool, bool]],
) -> None:
    ledger = Ledger(160)
    held: list[tuple[str, int, bool, Callable[[], None]]] = []
    for client, size, waits, gives_back in asked:
        own = sum(s for name, s, kind, _ in held if (name, kind) == (client, waits))
        free = 160 - sum(s for _, s, _, _ in held)
        if not waits:  # Training runs leave 40 to requests.
            free = min(free, 120 - sum(s for _, s, kind, _ in held if not kind))
        if size == 0 or own + size <= 3 * (free - size):
            give_back = ledger.take(client, size, "it", waits=waits)
            held.append((client, size, waits, give_back))
        else:
            too_large = not waits or size > 120
            with pytest.raises(NoRoomError if too_large else OverloadedError):
                ledger.take(client, size, "it", waits=waits)
        assert ledger.held == sum(s for _, s, _, _ in held) <= 160
        if gives_back and held:
            held.pop(0)[3]()
    for *_, give_back in held:
        give_back()
    assert ledger.held == 0


def test_who_holds_training_runs_can_use_them_whatever_others_hold() -> None:
    ledger = Ledger(1600)
    for client in ("first", "second", "third"):
        with suppress(NoRoomError):
            while True:
                ledger.take(client, 100, "a run", waits=False)
    for client in ("first", "second", "third"):
        ledger.take(client, 100, "a request", waits=True)
        ledger.take(client, 0, "an optimizer step", waits=True)


def _until_refused(ask: Callable[[int], str]) -> list[str]:
    """The ids of the requests that are taken before one is refused, with the refusal."""
    found: list[str] = []
    try:
        while len(found) < 100:
            found.append(ask(len(found)))
    except ServiceError as error:
        found.append(str(error))
    return found


def _count(result: SampleResult) -> bytes:
    return bytes(len(result.sequences))


def test_what_does_not_fit_is_refused_by_name_or_waits(model_dir: Path, tmp_path: Path) -> None:
    config = ServiceConfig(models=(model_dir,), state_dir=tmp_path, memory=0.1, threads=1)

    async def play() -> None:
        service = Service(config)
        service.start()
        (model,), session = service.models, service.registry.open_session(None, None)
        spec = LoraSpec(1024, seed=1)
        each = STATES * adapter_bytes(model.base_model.trained, spec)

        def create(number: int) -> str:
            run_id = f"{session.id}:train:{number}"
            request_id = service.create_run(run_id, session.id, model, spec, None)
            # Sent again, it is not counted again.
            assert request_id == service.create_run(run_id, session.id, model, spec, None)
            return request_id

        *created, said = _until_refused(create)
        assert re.match(r"a training run of rank 1024 needs .* MiB are left .*--memory", said)
        assert len(created) >= 2
        for request_id in created:
            assert (await service.futures.get(request_id))["type"] == "create_model"
        assert service.ledger.held == each * len(created)
        other = service.registry.open_session(None, None)
        run_id = f"{other.id}:train:0"
        await service.futures.get(
            service.create_run(run_id, other.id, model, LoraSpec(8, seed=1), None)
        )
        service.finish_session(other.id, "success")
        service.finish_session(session.id, "success")
        async with asyncio.timeout(20):
            while service.ledger.held:
                await asyncio.sleep(0.01)

        session = service.registry.open_session(None, None)
        record = service.open_sampler(session.id, 0, model.name, None)
        prompt = np.arange(9, dtype=np.int32)
        request = SampleRequest(
            BASE, prompt, 256, TokenSampling(1), 200, frozenset(), topk_sample=300
        )
        with pytest.raises(NoRoomError, match=r"a sample must take at most .* raise --memory"):
            service.sample(record, request, _count)
        few = replace(request, count=16)
        *ids, said = _until_refused(lambda _: service.sample(record, few, _count))
        assert re.match(r"a sample needs .* MiB are left to this client for now", said)
        for request_id in ids:
            service.cancel(request_id)
            await service.futures.get(request_id)
        assert service.ledger.held == 0
        await asyncio.to_thread(service.stop)

    asyncio.run(play())
