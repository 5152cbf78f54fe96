"""A model directory never runs code, and holds all it must."""

import json
from pathlib import Path
from typing import Any

import pytest

from tokengym.agents.models import ModelError, resolve_model
from tokengym.agents.models.files import check_model_directory


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """What passes for a model as long as nobody loads it."""
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        (tmp_path / name).write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(b"")
    return tmp_path


def test_a_whole_directory_passes(directory: Path) -> None:
    check_model_directory(directory)
    assert resolve_model(str(directory)) == directory.resolve()


@pytest.mark.parametrize(
    ("name", "entry"),
    [
        ("tokenizer_config.json", {"auto_map": {"AutoTokenizer": ["evil.Tokenizer", None]}}),
        ("config.json", {"auto_map": {"AutoModelForCausalLM": "evil.Model"}}),
        ("config.json", {"text_config": [{"auto_map": {"AutoConfig": "evil.Config"}}]}),
        ("config.json", {"attn_implementation": "evil/kernel"}),
        ("processor_config.json", {"auto_map": {"AutoProcessor": "evil.Processor"}}),
    ],
)
def test_code_of_a_model_is_refused_unless_it_is_trusted(
    directory: Path, name: str, entry: dict[str, Any]
) -> None:
    (directory / "evil.py").write_text("raise SystemExit('ran')")
    (directory / name).write_text(json.dumps(entry))
    with pytest.raises(ModelError, match="asks to run code that comes with the model"):
        resolve_model(str(directory))
    assert resolve_model(str(directory), trust_remote_code=True) == directory.resolve()


def test_pickled_weights_are_no_weights(directory: Path) -> None:
    (directory / "model.safetensors").rename(directory / "pytorch_model.bin")
    with pytest.raises(ModelError, match="has no safetensors weights"):
        check_model_directory(directory)


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json"])
def test_a_missing_part_is_named(directory: Path, name: str) -> None:
    (directory / name).unlink()
    with pytest.raises(ModelError, match=f"has no {name.split('.')[0]}"):
        check_model_directory(directory)


def test_a_missing_shard_is_named(directory: Path) -> None:
    index = {"weight_map": {"a": "model.safetensors", "b": "model-2.safetensors"}}
    (directory / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(ModelError, match=r"has no model-2\.safetensors"):
        check_model_directory(directory)


def test_an_adapter_is_no_model(directory: Path) -> None:
    (directory / "adapter_config.json").write_text("{}")
    with pytest.raises(ModelError, match="holds an adapter"):
        check_model_directory(directory)


@pytest.mark.parametrize("text", ["{", "[1]", "[" * 100_000, "\xff"])
def test_a_damaged_configuration_is_named(directory: Path, text: str) -> None:
    (directory / "config.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(ModelError, match=r"config\.json"):
        check_model_directory(directory)
