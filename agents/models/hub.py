"""Models on the Hugging Face hub: safetensors, tokenizer and configuration only."""

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from tokengym.agents.models.files import (
    ModelError,
    ModelUnavailableError,
    missing_part,
    refuse_remote_code,
)

UNASKED = 10_000_000_000
"""Most bytes that are downloaded for a model that was only named in a training command."""
PATIENCE = 5.0
"""Seconds for the hub's first answer."""

_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_SETTINGS = ("*.json", "*.jinja", "tokenizer.model", "merges.txt", "vocab.txt")
_WEIGHTS = ("*.safetensors",)
_SUBFOLDERS = "*/*"


def is_hub_name(name: str) -> bool:
    """Whether `name` has the form organisation/model."""
    return _NAME.fullmatch(name) is not None


def snapshot(
    name: str,
    *,
    most_bytes: int | None,
    trust_remote_code: bool = False,
    progress: Callable[[str], None],
) -> Path:
    """Return a model's directory in the hub's own cache, downloaded unless it is there and whole.

    The configuration comes first, so that a model that is refused costs nothing.

    Args:
        name: organisation/model.
        most_bytes: refuse larger downloads; `None` for no limit.
        trust_remote_code: download and accept Python files that come with the model.
        progress: called with the current step.

    Raises:
        ModelError: if the model has no safetensors weights, or would run its own code.
        ModelUnavailableError: if the hub cannot be reached or does not have the model, or if the
            model is too large.
    """
    import httpx
    from huggingface_hub import errors, snapshot_download

    # Its return type depends on `dry_run`: a path, or a list of files.
    fetch: Any = partial(
        snapshot_download, name, ignore_patterns=_SUBFOLDERS, etag_timeout=PATIENCE
    )
    settings = [*_SETTINGS, *(["*.py"] if trust_remote_code else [])]
    try:
        # Users fetch models by other tools too, so `missing_part` decides what is whole.
        known = Path(fetch(local_files_only=True, allow_patterns="config.json"))
        if missing_part(known) is None:
            return known
    except errors.LocalEntryNotFoundError:
        progress(f"asking the Hugging Face hub for {name}")
    try:
        directory = fetch(allow_patterns=settings)
        if not trust_remote_code:
            refuse_remote_code(Path(directory))
        files = fetch(allow_patterns=_WEIGHTS, dry_run=True)
        if not files:
            raise ModelError(f"{name} has no safetensors weights on the Hugging Face hub")
        size = sum(file.file_size or 0 for file in files if file.will_download)
        if most_bytes is not None and size > most_bytes:
            raise ModelUnavailableError(
                f"{name} is a download of {size / 1e9:,.1f} GB; "
                f"fetch it first if you want it: tokengym models fetch {name}"
            )
        progress(f"downloading {name} ({size / 1e6:,.0f} MB)")
        return Path(fetch(allow_patterns=[*settings, *_WEIGHTS]))
    except errors.HFValidationError as error:
        raise ModelError(f"{name!r} is not a valid name on the hub: {error}") from error
    except (ModelError, ModelUnavailableError):
        raise
    except (OSError, httpx.HTTPError) as error:
        raise ModelUnavailableError(f"the Hugging Face hub: {_reason(name, error)}") from error


def _reason(name: str, error: BaseException) -> str:
    """Return in a line why a model could not be fetched."""
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError

    if isinstance(error, GatedRepoError):
        return f"{name} needs its licence accepted there, and HF_TOKEN set"
    if isinstance(error, RepositoryNotFoundError):
        return f"no {name}, or it is private and needs HF_TOKEN"
    while error.__cause__ is not None:
        error = error.__cause__
    return (str(error).strip() or type(error).__name__).splitlines()[0]
