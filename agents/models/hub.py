"""Models on the Hugging Face hub: safetensors, tokenizer and configuration only."""

import re
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from tokengym.agents.model_files import ModelError, refuse_remote_code
from tokengym.agents.models.directory import check_model_directory, missing_part
from tokengym.agents.models.errors import ModelUnavailableError

UNASKED = 10_000_000_000
"""Most bytes that are downloaded for a model that was only named in a training command."""

_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_SETTINGS = ["*.json", "*.jinja", "tokenizer.model", "merges.txt", "vocab.txt"]
_WEIGHTS = ["*.safetensors"]
_SUBFOLDERS = ["*/*"]
PATIENCE = 5.0
"""Seconds for the hub's first answer."""


def is_hub_name(name: str) -> bool:
    """Whether `name` has the form organisation/model."""
    return _NAME.fullmatch(name) is not None


def cached_snapshot(name: str) -> Path | None:
    """Return the directory of a model that was downloaded before, `None` if it is not whole."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        # Users fetch models by other tools too, so `missing_part` decides what is whole.
        snapshot = snapshot_download(name, local_files_only=True, allow_patterns="config.json")
    except LocalEntryNotFoundError:
        return None
    directory = Path(snapshot)
    return directory if missing_part(directory) is None else None


def snapshots() -> list[tuple[str, int, Path]]:
    """Return name, bytes on disk and directory of every complete model in the hub's cache."""
    from huggingface_hub import scan_cache_dir
    from huggingface_hub.errors import CacheNotFound

    try:
        repos = scan_cache_dir().repos
    except CacheNotFound:
        return []
    return sorted(
        (repo.repo_id, revision.size_on_disk, revision.snapshot_path)
        for repo in repos
        if repo.repo_type == "model"
        for revision in repo.revisions
        if missing_part(revision.snapshot_path) is None
    )


def download(
    name: str,
    *,
    most_bytes: int | None,
    trust_remote_code: bool = False,
    progress: Callable[[str], None],
) -> Path:
    """Download a model into the hub's own cache folder; returns its directory.

    The configuration comes first, so that a model that is refused costs nothing.

    Args:
        name: organisation/model.
        most_bytes: refuse larger models; `None` for no limit but the disk's.
        trust_remote_code: download and accept Python files that come with the model.
        progress: called with the current step.

    Raises:
        ModelError: if the model has no safetensors weights, or would run its own code.
        ModelUnavailableError: if the hub cannot be reached or does not have the model, or if the
            model is too large.
    """
    import httpx
    from huggingface_hub import constants, snapshot_download
    from huggingface_hub.errors import GatedRepoError, HFValidationError, RepositoryNotFoundError

    code = ["*.py"] if trust_remote_code else []

    # What it returns depends on `dry_run`: a path, or a list of files.
    fetch: Any = partial(
        snapshot_download, name, ignore_patterns=_SUBFOLDERS, etag_timeout=PATIENCE
    )
    progress(f"asking the Hugging Face hub for {name}")
    try:
        settings = fetch(allow_patterns=[*_SETTINGS, *code])
        if not trust_remote_code:
            refuse_remote_code(Path(settings))
        files = fetch(allow_patterns=_WEIGHTS, dry_run=True)
        if not files:
            raise ModelError(f"{name} has no safetensors weights on the Hugging Face hub")
        size = sum(file.file_size or 0 for file in files if file.will_download)
        _check_size(name, size, most_bytes, Path(constants.HF_HUB_CACHE))
        progress(f"downloading {name} ({size / 1e6:,.0f} MB)")
        directory = Path(fetch(allow_patterns=[*_SETTINGS, *code, *_WEIGHTS]))
    except GatedRepoError as error:
        raise ModelUnavailableError(
            f"the Hugging Face hub: {name} needs its licence accepted there, and HF_TOKEN set"
        ) from error
    except RepositoryNotFoundError as error:
        raise ModelUnavailableError(
            f"the Hugging Face hub: no {name}, or it is private and needs HF_TOKEN"
        ) from error
    except HFValidationError as error:
        raise ModelError(f"{name!r} is not a valid name on the hub: {error}") from error
    except (ModelError, ModelUnavailableError):
        raise
    except (OSError, httpx.HTTPError) as error:
        raise ModelUnavailableError(f"the Hugging Face hub: {_reason(error)}") from error
    check_model_directory(directory, trust_remote_code=trust_remote_code)
    return directory


def _check_size(name: str, size: int, most_bytes: int | None, folder: Path) -> None:
    if most_bytes is not None and size > most_bytes:
        raise ModelUnavailableError(
            f"{name} is a download of {size / 1e9:,.1f} GB; "
            f"fetch it first if you want it: tokengym models fetch {name}"
        )
    folder.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder).free
    if free < size:
        raise ModelUnavailableError(
            f"{name} needs {size / 1e6:,.0f} MB, {str(folder)!r} has {free / 1e6:,.0f} MB free"
        )


def _reason(error: BaseException) -> str:
    """Return the first line of the root error, which states what happened."""
    while error.__cause__ is not None:
        error = error.__cause__
    return (str(error).strip() or type(error).__name__).splitlines()[0]
