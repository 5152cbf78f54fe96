"""What a model directory must hold, and must not: code and pickled weights."""

import json
from pathlib import Path
from typing import Any

from tokengym.agents.models.errors import ModelError

INDEX = "model.safetensors.index.json"
TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json")


def missing_part(directory: Path) -> str | None:
    """Return what `directory` lacks to be a model with safetensors weights, `None` if nothing."""
    if not (directory / "config.json").is_file():
        return "config.json"
    index = directory / INDEX
    if index.is_file():
        shards = set(read_object(index).get("weight_map", {}).values())
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
        refuse_remote_code(directory)


def refuse_remote_code(directory: Path) -> None:
    """Check that no configuration of a model directory names code for transformers to run.

    `auto_map` names Python files next to the configuration; an attention implementation with a
    slash in its name is a kernel that is fetched from the hub.

    Raises:
        ModelError: in one sentence, if a configuration does, or is damaged.
    """
    for path in sorted(directory.glob("*config.json")):
        entry = _code_entry(read_object(path))
        if entry is not None:
            raise ModelError(
                f"{str(directory)!r} asks to run code that comes with the model ({entry} in "
                f"{path.name}); it is not run without --trust-remote-code"
            )


def read_object(path: Path) -> dict[str, Any]:
    """Read a JSON object.

    Raises:
        ModelError: if the file is damaged or holds something else.
    """
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{str(path)!r} is not valid JSON: {error}") from error
    if not isinstance(content, dict):
        raise ModelError(f"{str(path)!r} must hold a JSON object, got {type(content).__name__}")
    return content


def _code_entry(value: Any) -> str | None:
    """Return the first entry that makes transformers run foreign code, at any depth."""
    if isinstance(value, list):
        return next(filter(None, map(_code_entry, value)), None)
    if not isinstance(value, dict):
        return None
    for key, entry in value.items():
        if key == "auto_map" and entry:
            return "auto_map"
        if key.endswith("attn_implementation") and "/" in str(entry):
            return str(key)
        if (nested := _code_entry(entry)) is not None:
            return nested
    return None
