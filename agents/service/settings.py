"""What a service is told at its start: frozen, checked once, shared by every part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tokengym.agents.service.errors import BadRequestError, ModelDirectoryError

if TYPE_CHECKING:
    from pathlib import Path

KEY_PREFIX = "tml-"
MEBIBYTE = 1 << 20


@dataclass(frozen=True)
class Settings:
    """Everything that can be chosen about a service.

    Attributes:
        models: directories of Hugging Face causal language models.
        state_dir: where training runs and checkpoints live; survives the service.
        api_key: the key every request must carry; starts with `tml-`.
        host: address to listen on.
        port: TCP port; 0 takes a free one.
        device: `auto`, `cpu` or a torch device such as `cuda:0`.
        dtype: `auto` (float32 on a CPU, bfloat16 on a GPU), `float32` or `bfloat16`.
        threads: torch threads; 0 leaves torch's own choice.
        max_body_bytes: largest request body accepted, in bytes.
        max_queued_samples: sampled sequences waiting or running before requests are put off.
        resident_adapters: sampler snapshots held in memory; older ones go to disk.
        spilled_adapters: unnamed snapshots held on disk; older ones are forgotten.
        prefix_cache_bytes: memory for keys and values of prompts seen before, in bytes.
    """

    models: tuple[Path, ...]
    state_dir: Path
    api_key: str
    host: str = "127.0.0.1"
    port: int = 0
    device: str = "auto"
    dtype: str = "auto"
    threads: int = 0
    max_body_bytes: int = 64 * MEBIBYTE
    max_queued_samples: int = 8192
    resident_adapters: int = 8
    spilled_adapters: int = 256
    prefix_cache_bytes: int = 256 * MEBIBYTE

    def __post_init__(self) -> None:
        """Check every setting."""
        if not self.models:
            raise BadRequestError("models must name at least one directory, got none")
        check_api_key(self.api_key)
        if not 0 <= self.port <= 65535:
            raise BadRequestError(f"port must be between 0 and 65535, got {self.port}")
        if self.dtype not in ("auto", "float32", "bfloat16"):
            raise BadRequestError(f"dtype must be auto, float32 or bfloat16, got {self.dtype!r}")
        for name in ("resident_adapters", "spilled_adapters", "max_body_bytes"):
            if getattr(self, name) < 1:
                raise BadRequestError(f"{name} must be at least 1, got {getattr(self, name)}")
        for name in ("threads", "prefix_cache_bytes", "max_queued_samples"):
            if getattr(self, name) < 0:
                raise BadRequestError(f"{name} must not be negative, got {getattr(self, name)}")


def check_model_directory(directory: Path) -> None:
    """Raise `ModelDirectoryError` for what cannot be a model, before torch is loaded to try."""
    if not directory.is_dir():
        raise ModelDirectoryError(f"model must be a directory, got {str(directory)!r}")
    if not (directory / "config.json").is_file():
        raise ModelDirectoryError(
            f"model directory must hold a config.json, {str(directory)!r} has none"
        )


def check_api_key(key: str) -> str:
    """Return `key` if the SDK would accept it as an API key, else raise `BadRequestError`."""
    if not key.startswith(KEY_PREFIX) or len(key) < len(KEY_PREFIX) + 4:
        # The key itself is a secret and stays out of the message.
        raise BadRequestError(
            f"api_key must start with {KEY_PREFIX!r} and go on for at least 4 characters, "
            f"got {len(key)} characters"
        )
    return key
