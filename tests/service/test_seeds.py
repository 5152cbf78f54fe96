"""A service with a seed seeds alike what no client seeds; without one, at random."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from tinker.types import SamplingParams

from tokengym.agents.service.engine.adapters import LoraSpec, LoraWeights
from tokengym.agents.service.errors import StartupError
from tokengym.agents.service.generation.jobs import SampleRequest
from tokengym.agents.service.state.seeds import SeedSource

if TYPE_CHECKING:
    from pathlib import Path

REQUEST = SampleRequest(
    "key", np.arange(5, dtype=np.int32), 2, SamplingParams(seed=None), 8, frozenset([3, 1])
)


def _all(source: SeedSource) -> list[object]:
    requests = [source.request("w", REQUEST) for _ in range(3)]
    return [source.session_id(), source.session_id(), source.adapter(), source.adapter(), *requests]


def test_equal_seeds_give_equal_and_distinct_seeds() -> None:
    first = _all(SeedSource(5))
    assert first == _all(SeedSource(5))
    assert (
        len({*first, *_all(SeedSource(6)), *_all(SeedSource(None)), *_all(SeedSource(None))}) == 28
    )


@pytest.mark.parametrize(
    "other",
    [
        replace(REQUEST, prompt=np.arange(6, dtype=np.int32)),
        replace(REQUEST, count=3),
        replace(REQUEST, max_tokens=9),
        replace(REQUEST, stop_tokens=frozenset([3])),
        replace(REQUEST, stop_strings=("x",)),
        replace(REQUEST, sampling=SamplingParams(seed=None, temperature=0.5)),
    ],
)
def test_a_requests_seed_depends_on_all_of_it(other: SampleRequest) -> None:
    source = SeedSource(5)
    assert len({source.request("w", REQUEST), source.request("w", other)}) == 2


def test_a_requests_seed_ignores_its_weights_name() -> None:
    by_name = replace(REQUEST, weights="another name")
    assert SeedSource(5).request("w", REQUEST) == SeedSource(5).request("w", by_name)
    assert SeedSource(5).request("w", REQUEST) != SeedSource(5).request("v", REQUEST)
    spec, a, b = LoraSpec(2), torch.ones(2, 3), torch.zeros(3, 2)
    weights = LoraWeights(spec, {"m.A": a, "m.B": b})
    assert weights.digest == LoraWeights(spec, {"m.A": a.clone(), "m.B": b.clone()}).digest
    assert weights.digest != LoraWeights(spec, {"m.A": a, "m.B": b + 1}).digest


def test_sessions_of_a_later_start_have_other_ids(tmp_path: Path) -> None:
    ids = [SeedSource.open(5, tmp_path).session_id() for _ in range(3)]
    assert len(set(ids)) == 3
    assert ids[0] == SeedSource(5).session_id()


def test_a_fifo_that_counts_starts_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "starts")
    with pytest.raises(StartupError, match="starts is a fifo"):
        SeedSource.open(5, tmp_path)
