"""What clients hold is counted and bounded, and all of it is given back."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tinker.types import SamplingParams

from tokengym.agents.service.config import ServiceConfig
from tokengym.agents.service.errors import BadRequestError, OverloadedError, ServiceError
from tokengym.agents.service.generation.jobs import SampleRequest, SampleResult
from tokengym.agents.service.generation.sampled_weights import BASE
from tokengym.agents.service.state.ledger import Ledger
from tokengym.agents.service.state.service import Service

if TYPE_CHECKING:
    from pathlib import Path


@given(st.lists(st.tuples(st.integers(0, 130), st.booleans()), max_size=40), st.integers(0, 120))
def test_no_more_is_held_than_there_is(asked: list[tuple[int, bool]], run: int) -> None:
    ledger = Ledger(160)
    ledger.check(run, "it")
    # Requests leave room for the largest run; the others give way to it.
    ledger.runs |= {"small": run // 2, "large": run}
    held: list[tuple[int, Callable[[], None]]] = []
    for size, gives_back in asked:
        if size <= min(120, 160 - run - sum(size for size, _ in held)):
            held.append((size, ledger.take(size, "it")))
        else:
            with pytest.raises(BadRequestError if size > 120 else OverloadedError):
                ledger.take(size, "it")
        assert ledger.requests == sum(size for size, _ in held) <= 160 - run
        assert ledger.for_runs == 160 - ledger.requests >= run
        if gives_back and held:
            held.pop(0)[1]()
    for _, give_back in held:
        give_back()
    assert ledger.requests == 0


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
        (model,) = service.models
        session = service.registry.open_session(None, None)
        record = service.open_sampler(session.id, 0, model.name, None)
        prompt = np.arange(9, dtype=np.int32)
        request = SampleRequest(
            BASE, prompt, 256, SamplingParams(seed=1), 200, frozenset(), topk_sample=300
        )
        with pytest.raises(BadRequestError, match=r"a sample must take at most .* raise --memory"):
            service.sample(record, request, _count)
        few = replace(request, count=16)
        *ids, said = _until_refused(lambda _: service.sample(record, few, _count))
        assert re.match(r"a sample needs .* MiB are left for now", said)
        for request_id in ids:
            service.cancel(request_id)
            await service.futures.get(request_id)
        assert service.ledger.requests == 0
        await asyncio.to_thread(service.stop)

    asyncio.run(play())
