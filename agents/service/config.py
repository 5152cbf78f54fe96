"""The configuration of a service: frozen, checked once, shared by all parts."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, get_args

from tokengym.agents.remote_code import read_object, refuse_remote_code
from tokengym.agents.service.errors import BadRequestError, ModelDirectoryError

if TYPE_CHECKING:
    from pathlib import Path

CHECKPOINT_SCHEME = "tinker://"
KEY_PREFIX = "tml-"
KEY_VARIABLE = "TOKENGYM_SERVICE_KEY"
Precision = Literal["auto", "float32", "bfloat16"]
MEBIBYTE, GIBIBYTE = 1 << 20, 1 << 30


def make_api_key() -> str:
    """Return a random API key."""
    return f"{KEY_PREFIX}local-{secrets.token_urlsafe(24)}"


@dataclass(frozen=True)
class ServiceConfig:
    """All options of a service.

    Attributes:
        models: directories of Hugging Face causal language models with their tokenizers.
        state_dir: where training runs and checkpoints live; survives the service.
        api_key: the key every request must carry, starting with `tml-`; random by default.
        host: address to listen on; anything but a loopback address exposes the service.
        port: TCP port; 0 takes a free one.
        device: `auto`, `cpu` or a torch device such as `cuda:0`.
        precision: `float32`, `bfloat16` or `auto`: bfloat16 on a GPU, and for models of more than
            33 million parameters on a processor with instructions for it, else float32.
        memory_bytes: what the process shall hold at most, of a GPU's memory where it computes on
            one; kept by splitting batches, so less than the weights and a little more cannot be
            kept. `None` for 4 GiB, or nine tenths of what is free on the GPU.
        threads: torch threads; 0 keeps torch's default.
        deterministic: whether samples and scores are exactly the same whatever else is computed at
            the time, which takes two to three times as long in float32.
        trust_remote_code: run Python code that comes with a model; none is run otherwise.
        seed: of what no client seeds: new adapters, sampling requests, names of sessions; random if
            `None`.
        max_body_bytes: largest request body accepted, in bytes.
        max_queued_samples: sequences queued or running before further requests get a 429.
        resident_adapters: adapters for sampling held in memory; older ones are spilled to disk.
        spilled_adapters: unnamed adapters held on disk; older ones are forgotten.

    Raises:
        BadRequestError: if an option is out of range.
    """

    models: tuple[Path, ...]
    state_dir: Path
    api_key: str = field(default_factory=make_api_key, repr=False)
    host: str = "127.0.0.1"
    port: int = 0
    device: str = "auto"
    precision: Precision = "auto"
    memory_bytes: int | None = None
    threads: int = 0
    deterministic: bool = False
    seed: int | None = None
    trust_remote_code: bool = False
    max_body_bytes: int = 64 * MEBIBYTE
    max_queued_samples: int = 8192
    resident_adapters: int = 8
    spilled_adapters: int = 24

    def __post_init__(self) -> None:
        """Check every option."""
        if not self.models:
            raise BadRequestError("models must name at least one directory, got none")
        check_api_key(self.api_key)
        if not 0 <= self.port <= 65535:
            raise BadRequestError(f"port must be between 0 and 65535, got {self.port}")
        if self.precision not in get_args(Precision):
            raise BadRequestError(
                f"precision must be one of {', '.join(get_args(Precision))}, got {self.precision!r}"
            )
        for name in ("memory_bytes", "resident_adapters", "spilled_adapters", "max_body_bytes"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise BadRequestError(f"{name} must be at least 1, got {value}")
        for name in ("threads", "max_queued_samples"):
            if getattr(self, name) < 0:
                raise BadRequestError(f"{name} must not be negative, got {getattr(self, name)}")


def check_model_directory(directory: Path, *, trust_remote_code: bool = False) -> None:
    """Check that `directory` can hold a model, and no code to run, without loading torch.

    Raises:
        ModelDirectoryError: if it holds no model, or code that is not trusted.
    """
    if not directory.is_dir():
        raise ModelDirectoryError(f"model must be a directory, got {str(directory)!r}")
    path = directory / "config.json"
    if not path.is_file():
        raise ModelDirectoryError(
            f"model directory must hold a config.json, {str(directory)!r} has none"
        )
    try:
        kind = read_object(path).get("model_type")
        if not trust_remote_code:
            refuse_remote_code(directory)
    except ValueError as error:
        raise ModelDirectoryError(str(error)) from error
    if kind is None:
        raise ModelDirectoryError(
            "model directory must hold a causal language model and its tokenizer, the config.json "
            f"of {str(directory)!r} names no model_type"
        )


def check_api_key(key: str) -> None:
    """Raise `BadRequestError` if the SDK would not accept `key` as an API key."""
    if not key.startswith(KEY_PREFIX) or len(key) < len(KEY_PREFIX) + 4:
        # The key itself is a secret and stays out of the message.
        raise BadRequestError(
            f"api_key must start with {KEY_PREFIX!r} and go on for at least 4 characters, "
            f"got {len(key)} characters"
        )
