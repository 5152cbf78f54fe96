"""The configuration of a service: frozen, checked once, shared by all parts."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from tokengym.agents.models.files import ModelError, read_object, refuse_remote_code
from tokengym.agents.service.errors import BadRequestError, ModelDirectoryError
from tokengym.agents.settings import OptionError, Settings, option

CHECKPOINT_SCHEME = "tinker://"
KEY_PREFIX = "tml-"
KEY_VARIABLE = "TOKENGYM_SERVICE_KEY"
MAX_LAYERS = 4096
Precision = Literal["auto", "float32", "bfloat16"]


def make_api_key() -> str:
    """Return a random API key."""
    return f"{KEY_PREFIX}local-{secrets.token_urlsafe(24)}"


@dataclass(frozen=True, kw_only=True)
class ComputeSettings(Settings):
    """Computation of a local service."""

    precision: Precision = option(
        "auto",
        "auto is bfloat16 on a GPU, and for models of more than 33 million parameters on a "
        "processor with instructions for it, else float32",
    )
    memory: float | None = option(
        None,
        "memory in GiB, kept by splitting batches, but at least what the weights need; 4, or nine "
        "tenths of what is free on a GPU, if not given",
        above=0,
    )
    deterministic: bool = option(
        False,
        "results do not depend on what shares a batch, so equal runs are equal to the bit; "
        "sampling takes two to three times as long",
    )


@dataclass(frozen=True, kw_only=True)
class ServiceConfig(ComputeSettings):
    """The local service.

    Attributes:
        api_key: the key every request must carry, starting with `tml-`; random by default.

    Raises:
        OptionError: if an option is out of range.
        BadRequestError: if the SDK would not accept the key.
    """

    models: tuple[Path, ...] = option(
        (), "directory of a causal language model and its tokenizer", flag="--model", read=Path
    )
    names: tuple[str, ...] = option(
        (), "further name of a model on OpenAI's routes, in the order of --model", flag="--name"
    )
    state_dir: Path = option(
        Path("tinker-service"), "where training runs and checkpoints are kept", read=Path
    )
    host: str = option("127.0.0.1", "address to listen on; all but loopback exposes the service")
    port: int = option(0, "TCP port, 0 for a free one", least=0, most=65535)
    device: str = option("auto", "auto, cpu or a torch device such as cuda:0")
    threads: int = option(0, "torch threads, 0 for torch's default", least=0)
    seed: int | None = option(
        None,
        "seed of what no client seeds: new adapters, sampling requests, names of sessions; random "
        "if not given",
    )
    trust_remote_code: bool = option(
        False, "run Python code that comes with a model; none is run otherwise"
    )
    max_body_mb: int = option(64, "largest request accepted, in MiB", least=1)
    api_key: str = field(default_factory=make_api_key, repr=False)

    def __post_init__(self) -> None:
        """Check every option."""
        super().__post_init__()
        if not self.models:
            raise OptionError("--model must name at least one directory, got none")
        if len(set(self.names)) < len(self.names) or len(self.names) > len(self.models):
            raise OptionError(
                f"--name must give each of {len(self.models)} models at most one name, and no two "
                f"the same, got {list(self.names)}"
            )
        if not self.api_key.startswith(KEY_PREFIX) or len(self.api_key) < len(KEY_PREFIX) + 4:
            # The key itself is a secret and stays out of the message.
            raise BadRequestError(
                f"api_key must start with {KEY_PREFIX!r} and go on for at least 4 characters, "
                f"got {len(self.api_key)} characters"
            )


def check_model_directory(directory: Path, *, trust_remote_code: bool = False) -> None:
    """Check that `directory` can hold a model, and no code to run, without loading torch.

    Raises:
        ModelDirectoryError: if it holds no model, or code that is not trusted.
    """
    if not directory.is_dir():
        raise ModelDirectoryError(f"model must be a directory, got {str(directory)!r}")
    path = directory / "config.json"
    try:
        _check_layers(path, read_object(path))
        if not trust_remote_code:
            refuse_remote_code(directory)
    except ModelError as error:
        raise ModelDirectoryError(str(error)) from error


def _check_layers(path: Path, config: Mapping[str, Any]) -> None:
    """Refuse more layers than any model has: a module would be made for each."""
    for name, value in config.items():
        if isinstance(value, dict):
            _check_layers(path, value)
        elif "layer" in name and isinstance(value, int) and value > MAX_LAYERS:
            raise ModelError(f"{name} must be at most {MAX_LAYERS}, got {value} in {str(path)!r}")
