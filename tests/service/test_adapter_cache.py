"""Adapters for sampling: as many as needed, no more memory than allowed, none lost in use."""

from __future__ import annotations

import json
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest
import torch
from tinker.types import AdamParams, Datum, ModelInput

from tests.service.toy import make_model
from tokengym.agents.service.engine.adapters import LoraAdapter, LoraSpec, adapter_bytes
from tokengym.agents.service.engine.base_model import BaseModel, load_base_model
from tokengym.agents.service.engine.checkpoints import CheckpointStore
from tokengym.agents.service.errors import UnknownResourceError
from tokengym.agents.service.generation.adapter_cache import BASE, AdapterCache

if TYPE_CHECKING:
    from pathlib import Path

    from tokengym.agents.service import LocalService

TOKENS = list(range(60, 90))


def _status(service: LocalService) -> Any:
    request = urllib.request.Request(
        f"{service.base_url}/api/v1/status", headers={"X-API-Key": service.api_key}
    )
    with urllib.request.urlopen(request, timeout=10) as response:
        return json.loads(response.read())["models"][0]


@pytest.mark.nightly
def test_many_sampling_clients_keep_their_weights(service: LocalService, run: Any) -> None:
    datum = Datum(
        model_input=ModelInput.from_ints(TOKENS[:-1]),
        loss_fn_inputs={"target_tokens": TOKENS[1:], "weights": [1.0] * 29},
    )
    prompt = ModelInput.from_ints(TOKENS)
    samplers, scores = [], []
    for _ in range(20):
        run.forward_backward([datum], "cross_entropy")
        run.optim_step(AdamParams(learning_rate=1e-3))
        sampler = run.save_weights_and_get_sampling_client().result()
        samplers.append(sampler)
        scores.append(sampler.compute_logprobs(prompt).result()[1:])
    assert _status(service)["unnamed_adapters"] >= 20
    # The oldest still samples, with its own weights.
    again = [sampler.compute_logprobs(prompt).result()[1:] for sampler in samplers]
    for before, after in zip(scores, again, strict=True):
        assert after == pytest.approx(before, abs=1e-5)
    assert scores[0] != pytest.approx(scores[-1], abs=1e-2)


@pytest.fixture
def base_model(tmp_path: Path) -> BaseModel:
    return load_base_model(make_model(tmp_path / "model"), "cpu")


def _held(base_model: BaseModel, root: Path, dropped: list[str]) -> AdapterCache:
    """A cache of two adapters of rank 2 in memory, and five in all."""
    two = 2 * adapter_bytes(base_model.trained, LoraSpec(2))
    return AdapterCache(
        base_model.sampled, CheckpointStore(root), root / "unnamed", two, 5, 1 << 40, dropped.append
    )


def test_reloading_holds_no_more_than_allowed(base_model: BaseModel, tmp_path: Path) -> None:
    adapter_cache = _held(base_model, tmp_path, [])
    adapter = LoraAdapter(base_model.trained, LoraSpec(2, seed=1))
    for number in range(5):
        adapter_cache.put(f"s:{number}", adapter.export())
    for _ in range(2):
        for number in range(5):
            adapter_cache.use(f"s:{number}")
            assert adapter_cache.status()["resident_adapters"] <= 2
    adapter_cache.use("s:0")
    adapter_cache.put("s:5", adapter.export())
    with pytest.raises(UnknownResourceError, match=r"s:1.*more than 5 newer"):
        adapter_cache.acquire("s:1")
    for number in (0, 2, 3, 4, 5):
        adapter_cache.acquire(f"s:{number}")


def _put(cache: AdapterCache, adapter: LoraAdapter, *keys: str) -> None:
    for key in keys:
        cache.put(key, adapter.export())


def test_no_session_takes_an_adapter_of_another(base_model: BaseModel, tmp_path: Path) -> None:
    adapter_cache = _held(base_model, tmp_path, [])
    adapter = LoraAdapter(base_model.trained, LoraSpec(2, seed=1))
    _put(adapter_cache, adapter, "quiet:0", "other:0", *(f"busy:{number}" for number in range(20)))
    assert adapter_cache.status()["unnamed_adapters"] == 7
    for key in ("quiet:0", "other:0", "busy:15", "busy:19"):
        adapter_cache.acquire(key)
    with pytest.raises(UnknownResourceError, match=r"busy:14.*more than 5 newer"):
        adapter_cache.acquire("busy:14")


def test_byte_limits_cost_whoever_holds_most(base_model: BaseModel, tmp_path: Path) -> None:
    one = adapter_bytes(base_model.trained, LoraSpec(2))
    dropped: list[str] = []
    adapter_cache = AdapterCache(
        base_model.sampled,
        CheckpointStore(tmp_path),
        tmp_path / "unnamed",
        one,
        100,
        4 * one,
        dropped.append,
    )
    adapter = LoraAdapter(base_model.trained, LoraSpec(2, seed=1))
    _put(adapter_cache, adapter, "a:0", "b:0", "a:1", "a:2")
    assert dropped == []
    # A large one counts as what it is.
    _put(adapter_cache, LoraAdapter(base_model.trained, LoraSpec(4, seed=1)), "b:1")
    assert dropped == ["b:0", "a:0"]
    assert adapter_cache.written <= 4 * one
    _put(adapter_cache, adapter, "c:0")
    assert dropped == ["b:0", "a:0", "a:1"]
    # Everybody has one: all stay, however many bytes that are.
    _put(adapter_cache, adapter, *(f"{session}:0" for session in "defgh"))
    assert dropped == ["b:0", "a:0", "a:1"]
    # An older one that is used outlives those that are not, the newest stays even if it is not.
    adapter_cache.acquire("h:0")
    _put(adapter_cache, adapter, "h:1")
    assert dropped[3:] == []
    adapter_cache.release("h:0")
    assert dropped[3:] == ["h:0"]
    for key in ("a:2", "b:1", *(f"{session}:0" for session in "cdefg"), "h:1"):
        adapter_cache.drop(key)
    assert adapter_cache.written == 0
    assert list((tmp_path / "unnamed").iterdir()) == []


def test_what_is_in_use_is_never_dropped(base_model: BaseModel, tmp_path: Path) -> None:
    dropped: list[str] = []
    adapter_cache = _held(base_model, tmp_path, dropped)
    adapter = LoraAdapter(base_model.trained, LoraSpec(2, seed=1))
    for number in range(10):
        adapter_cache.put(f"s:{number}", adapter.export())
        if number < 4:
            adapter_cache.acquire(f"s:{number}")
    dropped.clear()
    for number in range(4):
        adapter_cache.use(f"s:{number}")
    # Four in use and one more are held, of which two are in memory.
    assert adapter_cache.status()["resident_adapters"] == 2
    assert adapter_cache.status()["unnamed_adapters"] == 5
    assert not {"s:0", "s:1", "s:2", "s:3"} & set(dropped)
    with pytest.raises(UnknownResourceError, match=r"s:5.*no longer held"):
        adapter_cache.acquire("s:5")
    for number in range(4):
        adapter_cache.release(f"s:{number}")
    adapter_cache.acquire("s:3")
    assert 3 <= len(list((tmp_path / "unnamed").iterdir())) <= 5
    for number in range(10):
        adapter_cache.drop(f"s:{number}")
    assert list((tmp_path / "unnamed").iterdir()) == []


def test_the_base_weights_are_what_they_were_after_any_use(
    base_model: BaseModel, tmp_path: Path
) -> None:
    ids = torch.arange(12)[None]
    before = base_model.sampled(input_ids=ids).logits.detach().clone()
    adapter_cache = _held(base_model, tmp_path, [])
    adapter = LoraAdapter(base_model.trained, LoraSpec(2, seed=1))
    for number in range(5):
        for parameter in adapter.parameters.values():
            torch.nn.init.normal_(parameter, std=0.1)
        adapter_cache.put(f"s:{number}", adapter.export())
    seen = []
    for key in ("s:0", "s:4", "s:2", BASE, "s:0"):
        adapter_cache.acquire(key)
        adapter_cache.use(key)
        seen.append(base_model.sampled(input_ids=ids).logits.detach().clone())
        adapter_cache.release(key)
    assert torch.equal(seen[3], before)
    assert torch.equal(seen[0], seen[4])
    assert len({float(logits.sum()) for logits in seen[:4]}) == 4


def test_two_models_of_equal_weights_keep_their_spilled_adapters_apart(
    base_model: BaseModel, tmp_path: Path
) -> None:
    adapter = LoraAdapter(base_model.trained, LoraSpec(2, seed=1))
    caches = [_held(base_model, tmp_path, []) for _ in range(2)]
    expected = []
    for adapter_cache in caches:
        for parameter in adapter.parameters.values():
            torch.nn.init.normal_(parameter, std=0.1)
        for number in range(3):
            adapter_cache.put(f"s:{number}", adapter.export())
        expected.append(adapter.export().digest)
    assert [adapter_cache.lineage("s:0") for adapter_cache in caches] == expected
