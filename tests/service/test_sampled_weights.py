"""Adapters for sampling: as many as needed, no more memory than allowed, none lost in use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import torch
from tinker.types import AdamParams, ModelInput

from tests.service.asking import TALK, datum
from tests.service.toy import make_model
from tokengym.agents.service.engine.adapters import LoraAdapter, LoraSpec, adapter_bytes
from tokengym.agents.service.engine.base_model import BaseModel
from tokengym.agents.service.engine.checkpoints import CheckpointStore
from tokengym.agents.service.errors import UnknownResourceError
from tokengym.agents.service.generation.sampled_weights import BASE, SampledWeights

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path


@pytest.mark.nightly
def test_many_sampling_clients_keep_their_weights(run: Any) -> None:
    prompt = ModelInput.from_ints(TALK)
    samplers, scores = [], []
    for _ in range(20):
        run.forward_backward([datum(TALK)], "cross_entropy")
        run.optim_step(AdamParams(learning_rate=1e-3))
        sampler = run.save_weights_and_get_sampling_client().result()
        samplers.append(sampler)
        scores.append(sampler.compute_logprobs(prompt).result()[1:])
    # The oldest still samples, with its own weights.
    again = [sampler.compute_logprobs(prompt).result()[1:] for sampler in samplers]
    for before, after in zip(scores, again, strict=True):
        assert after == pytest.approx(before, abs=1e-5)
    assert scores[0] != pytest.approx(scores[-1], abs=1e-2)


@pytest.fixture
def base_model(tmp_path: Path) -> BaseModel:
    return BaseModel(make_model(tmp_path / "model"), "cpu")


def _held(base_model: BaseModel, root: Path, used: Collection[str] = ()) -> SampledWeights:
    """A cache of two adapters of rank 2 in memory, and five in all besides those in use."""
    two, folder = 2 * adapter_bytes(base_model.trained, LoraSpec(2)), root / "unnamed"
    places = base_model.sampled, CheckpointStore(root), folder
    return SampledWeights(*places, two, 5, lambda key: key in used, lambda _key: None)


def _put(cache: SampledWeights, adapter: LoraAdapter, *keys: str) -> None:
    for key in keys:
        cache.put(key, adapter.export())


def test_no_session_takes_an_adapter_of_another(base_model: BaseModel, tmp_path: Path) -> None:
    weights = _held(base_model, tmp_path)
    adapter = LoraAdapter(base_model.trained, LoraSpec(2, seed=1))
    _put(weights, adapter, "quiet:0", "other:0", *(f"busy:{number}" for number in range(20)))
    assert len(list((tmp_path / "unnamed").iterdir())) == 7
    for key in ("quiet:0", "other:0", "busy:15", "busy:19"):
        weights.lineage(key)
    with pytest.raises(UnknownResourceError, match=r"busy:14.*more than 5 newer"):
        weights.lineage("busy:14")


def test_what_is_in_use_is_never_dropped(base_model: BaseModel, tmp_path: Path) -> None:
    used: set[str] = set()
    weights = _held(base_model, tmp_path, used)
    adapter = LoraAdapter(base_model.trained, LoraSpec(2, seed=1))
    for number in range(10):
        weights.put(f"s:{number}", adapter.export())
        if number < 4:
            used.add(f"s:{number}")
    for number in range(4):
        weights.use(f"s:{number}")
    # Four in use and five more are held, of which two are in memory.
    assert len(weights._adapters) == 2
    assert len(list((tmp_path / "unnamed").iterdir())) == 9
    with pytest.raises(UnknownResourceError, match=r"s:4.*no longer held"):
        weights.lineage("s:4")
    used.clear()
    weights.put("s:10", adapter.export())
    assert len(list((tmp_path / "unnamed").iterdir())) == 5
    for number in range(11):
        weights.drop(f"s:{number}")
    assert weights.written == 0
    assert list((tmp_path / "unnamed").iterdir()) == []


def test_the_base_weights_are_what_they_were_after_any_use(
    base_model: BaseModel, tmp_path: Path
) -> None:
    ids = torch.arange(12)[None]
    before = base_model.sampled(input_ids=ids).logits.detach().clone()
    weights = _held(base_model, tmp_path)
    adapter = LoraAdapter(base_model.trained, LoraSpec(2, seed=1))
    for number in range(5):
        for parameter in adapter.parameters.values():
            torch.nn.init.normal_(parameter, std=0.1)
        weights.put(f"s:{number}", adapter.export())
    seen = []
    for key in ("s:0", "s:4", "s:2", BASE, "s:0"):
        weights.use(key)
        seen.append(base_model.sampled(input_ids=ids).logits.detach().clone())
    assert torch.equal(seen[3], before)
    assert torch.equal(seen[0], seen[4])
    assert len({float(logits.sum()) for logits in seen[:4]}) == 4


def test_two_models_of_equal_weights_keep_their_adapters_apart(
    base_model: BaseModel, tmp_path: Path
) -> None:
    adapter = LoraAdapter(base_model.trained, LoraSpec(2, seed=1))
    caches = [_held(base_model, tmp_path) for _ in range(2)]
    expected = []
    for weights in caches:
        for parameter in adapter.parameters.values():
            torch.nn.init.normal_(parameter, std=0.1)
        for number in range(3):
            weights.put(f"s:{number}", adapter.export())
        expected.append(adapter.export().digest)
    assert [weights.lineage("s:0") for weights in caches] == expected
