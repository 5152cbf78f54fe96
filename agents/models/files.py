"""The files of a model directory: all it must hold, and no code and no pickled weights."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tokengym.envs.core.errors import TokengymError

_INDEX = "model.safetensors.index.json"
_TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json")


class ModelError(TokengymError, ValueError):
    """A model that cannot be used; the message names it and the reason."""


class ModelUnavailableError(TokengymError, OSError):
    """A model that could not be fetched or stored; the message names what was tried."""


def missing_part(directory: Path) -> str | None:
    """Return what `directory` lacks to be a model with safetensors weights, `None` if nothing."""
    if not (directory / "config.json").is_file():
        return "config.json"
    index = directory / _INDEX
    if index.is_file():
        shards = set(read_object(index).get("weight_map", {}).values())
        absent = sorted(str(shard) for shard in shards if not (directory / str(shard)).is_file())
        if absent:
            return absent[0]
    elif not any(directory.glob("*.safetensors")):
        return "safetensors weights"
    if not any((directory / name).is_file() for name in _TOKENIZERS):
        return "tokenizer"
    return None


def check_model_directory(directory: Path, *, trust_remote_code: bool = False) -> None:
    """Check that `directory` holds a complete model and that loading it runs none of its code.

    Raises:
        ModelError: if a part is missing, if a configuration names code to run and
            `trust_remote_code` is not given, or if its tokenizer was converted wrongly.
    """
    missing = missing_part(directory)
    if missing is not None:
        raise ModelError(f"model directory {str(directory)!r} has no {missing}")
    if (directory / "adapter_config.json").exists():
        raise ModelError(f"{str(directory)!r} holds an adapter; give the directory of a full model")
    if not trust_remote_code:
        refuse_remote_code(directory)
    _refuse_ranks(directory / "tokenizer.json")


def _refuse_ranks(tokenizer: Path) -> None:
    """Refuse a Unigram model whose scores are ranks: `from_pretrained(gguf_file=…)` makes them.

    A Unigram model adds up the log-probabilities of its tokens; with the ranks of merges in their
    place it splits text into other tokens than the model has learned from, and more of them.

    Raises:
        ModelError: if it is one.
    """
    if not tokenizer.is_file() or b'"Unigram"' not in tokenizer.read_bytes():
        return
    model = read_object(tokenizer).get("model", {})
    scores = [score for _, score in model.get("vocab", ())] if model["type"] == "Unigram" else []
    if len(scores) > 1 and all(float(score).is_integer() for score in scores):
        raise ModelError(
            f"{tokenizer} is a Unigram model with ranks for scores, which transformers makes of a "
            "GGUF file's merges: it splits text wrongly; take the model's own tokenizer.json"
        )


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


def read_object(path: Path, refusal: Callable[[str], TokengymError] = ModelError) -> dict[str, Any]:
    """Read a JSON object.

    Args:
        path: the file.
        refusal: makes the error of what is wrong with it.

    Raises:
        TokengymError: that error, if the file cannot be read or holds something else.
    """
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        reason = "it is nested too deep" if isinstance(error, RecursionError) else error
        raise refusal(f"{path} cannot be read: {reason}") from error
    if not isinstance(content, dict):
        raise refusal(f"{path} must hold a JSON object, got {type(content).__name__}")
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
