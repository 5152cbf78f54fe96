"""What a model directory must hold, and must not: code and pickled weights."""

import json
from pathlib import Path
from typing import Any

from tokengym.agents.models.errors import ModelError
from tokengym.agents.remote_code import REFUSAL, find_remote_code

INDEX = "model.safetensors.index.json"
TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json")


def missing_part(directory: Path) -> str | None:
    """Return what `directory` lacks to be a model with safetensors weights, `None` if nothing."""
    if not (directory / "config.json").is_file():
        return "config.json"
    index = directory / INDEX
    if index.is_file():
        shards = set(_read(index).get("weight_map", {}).values())
        absent = sorted(str(shard) for shard in shards if not (directory / str(shard)).is_file())
        if absent:
            return absent[0]
    elif not any(directory.glob("*.safetensors")):
        return "safetensors weights"
    if not any((directory / name).is_file() for name in TOKENIZERS):
        return "tokenizer"
    return None


def check_model_directory(directory: Path, *, trust_remote_code: bool = False) -> None:
    """Check that `directory` holds a complete model and that loading it runs none of its code.

    Raises:
        ModelError: if a part is missing, or if a configuration names code to run and
            `trust_remote_code` is not given.
    """
    missing = missing_part(directory)
    if missing is not None:
        raise ModelError(f"model directory {str(directory)!r} has no {missing}")
    if (directory / "adapter_config.json").exists():
        raise ModelError(f"{str(directory)!r} holds an adapter; give the directory of a full model")
    if not trust_remote_code:
        check_no_code(directory)


def check_no_code(directory: Path) -> None:
    """Check that no configuration in `directory` names code for transformers to run.

    Raises:
        ModelError: if one does, or is damaged.
    """
    for path in sorted(directory.glob("*config.json")):
        _read(path)
    found = find_remote_code(directory)
    if found is not None:
        raise ModelError(
            f"{str(directory)!r} asks to run code that comes with the model ({found}); {REFUSAL}"
        )


def _read(path: Path) -> dict[str, Any]:
    """Read a JSON object.

    Raises:
        ModelError: if the file is damaged or holds something else.
    """
    try:
        read = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{str(path)!r} is not valid JSON: {error}") from error
    if not isinstance(read, dict):
        raise ModelError(f"{str(path)!r} must hold a JSON object, got {type(read).__name__}")
    return read
