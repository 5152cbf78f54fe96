"""Laws of exported weights: PEFT and transformers compute with them what the service computes."""

import json
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM

from tokengym.agents.service.engine.adapters import LoraSpec, LoraWeights
from tokengym.agents.service.engine.checkpoints import (
    CheckpointInfo,
    CheckpointPath,
    CheckpointStore,
)
from tokengym.agents.toy_model import MODEL_DIR
from tokengym.agents.training.exporting import TrainedAdapter
from tokengym.agents.training.folder.run import RunFolder
from tokengym.agents.training.presets import preset
from tokengym.envs.core.errors import OptionError

PATH = "tinker://r1:train:0/sampler_weights/final"
TOKENS = torch.tensor([[5, 17, 200, 3, 42]])


@pytest.fixture(scope="module")
def toy() -> Any:
    return AutoModelForCausalLM.from_pretrained(MODEL_DIR, dtype=torch.float32)


@pytest.fixture
def run(tmp_path: Path, toy: Any) -> RunFolder:
    """A run that saved an adapter of rank 2 on every linear layer, the head included."""
    generator = torch.Generator().manual_seed(0)
    linear = {name: one for name, one in toy.named_modules() if isinstance(one, torch.nn.Linear)}
    assert "lm_head" in linear
    matrices = {
        f"{name}.{side}": torch.randn(shape, generator=generator) / 16
        for name, one in linear.items()
        for side, shape in (("A", (2, one.in_features)), ("B", (one.out_features, 2)))
    }
    weights = LoraWeights(LoraSpec(2), matrices)
    info = CheckpointInfo("toy", "", asdict(weights.spec), False)
    found = RunFolder(tmp_path / "run")
    found.write_config(preset("forecast"))
    store = CheckpointStore(found.service_folder)
    store.save(CheckpointPath.parse(PATH), weights.to_tensors(), info, overwrite=False)
    store.write_run("r1:train:0", {})
    row = {"name": "final", "batch": 1, "sampler_path": PATH, "state_path": PATH}
    (found.folder / "checkpoints.jsonl").write_text(json.dumps(row) + "\n")
    return found


def by_hand(toy: Any, weights: LoraWeights) -> torch.Tensor:
    """The logits, with every layer's output corrected as the service does."""
    handles = []
    for name, module in toy.named_modules():
        if name in weights.adapters():
            a, b, _ = weights.adapters()[name]

            def add(_: Any, inputs: Any, output: Any, a: Any = a, b: Any = b) -> Any:
                return output + inputs[0] @ a.T @ b.T * weights.spec.scaling

            handles.append(module.register_forward_hook(add))
    with torch.no_grad():
        found: torch.Tensor = toy(TOKENS).logits
    for handle in handles:
        handle.remove()
    return found


@pytest.mark.nightly
def test_adapter_and_merged_model_compute_what_was_trained(
    run: RunFolder, toy: Any, tmp_path: Path
) -> None:
    adapter = TrainedAdapter.of_run(run)
    wanted = by_hand(toy, adapter.weights)
    with torch.no_grad():
        assert not torch.allclose(toy(TOKENS).logits, wanted, atol=0.1)
        adapter.write_merged(tmp_path / "merged")
        merged: Any = AutoModelForCausalLM.from_pretrained(tmp_path / "merged", dtype=torch.float32)
        # The model is kept in half precision, as it came.
        torch.testing.assert_close(merged(TOKENS).logits, wanted, atol=0.02, rtol=0.01)
        adapter.write_peft(tmp_path / "adapter")
        base = AutoModelForCausalLM.from_pretrained(MODEL_DIR, dtype=torch.float32)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # peft warns about tied embeddings
            # Collecting does not import it: that takes seconds, and every worker collects.
            from peft import PeftModel

            loaded = PeftModel.from_pretrained(base, str(tmp_path / "adapter"))
        torch.testing.assert_close(loaded(TOKENS).logits, wanted, atol=1e-4, rtol=1e-4)
    assert (tmp_path / "merged" / "tokenizer_config.json").is_file()


@pytest.mark.nightly
def test_what_cannot_be_exported_is_named(run: RunFolder, tmp_path: Path) -> None:
    (run.folder / "checkpoints.jsonl").write_text("")
    with pytest.raises(OptionError, match="saved no weights"):
        TrainedAdapter.of_run(run)
    gone = json.dumps({"name": "x", "batch": 1, "sampler_path": PATH[:-5] + "other"})
    (run.folder / "checkpoints.jsonl").write_text(gone + "\n")
    with pytest.raises(OptionError, match="lost its weights"):
        TrainedAdapter.of_run(run)
    run.write_config(preset("forecast", base_url="http://127.0.0.1:1", model="x/y"))
    with pytest.raises(OptionError, match="are at the service"):
        TrainedAdapter.of_run(run)
