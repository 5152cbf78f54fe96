"""What a model directory must hold, and must not: code and pickled weights."""

from pathlib import Path

from tokengym.agents.model_files import ModelError, read_object, refuse_remote_code

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
