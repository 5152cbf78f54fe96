"""Where a run is trained, and what another run may not repeat."""

import os
import platform
import subprocess
from pathlib import Path
from typing import Any

from tokengym.agents.service import LocalService
from tokengym.agents.training.connection import Connection
from tokengym.installed import installed_version

_LIBRARIES = (
    *("tokengym", "gymnasium", "numpy", "scipy", "tinker", "tinker-cookbook"),
    *("tokenizers", "torch", "transformers"),
)


def describe_environment(connection: Connection) -> dict[str, Any]:
    """Return versions, processor, threads, precision and git state as JSON values.

    Args:
        connection: to the service that the run trains on.
    """
    service = connection.service
    return {
        "versions": {name: installed_version(name) for name in _LIBRARIES},
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads": None if service is None else service.threads,
        "precision": None if service is None else service.precision,
        "git": _git(Path(__file__).resolve().parents[2]),
        "not_promised": _not_promised(service),
    }


def _not_promised(service: LocalService | None) -> list[str]:
    """Return, in sentences, what may make the same command give other figures."""
    sentences = [
        "Other versions of these libraries, another processor or another number of threads round "
        "sums otherwise; then replies may differ, and all that follows."
    ]
    if service is None:
        sentences.append(
            "The service is not the run's own: it decides whether equal requests get equal answers."
        )
    elif not service.deterministic:
        sentences.append(
            "Without --deterministic the last digits of a log-probability may depend on what else "
            "the service computes at the time, and weights with them; in float32 they do."
        )
    return sentences


def _processor() -> str:
    """Return the processor's name, as Linux reports it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())


def _git(root: Path) -> dict[str, Any] | None:
    """Return commit and state of the checkout that Tokengym runs from; `None` if installed."""
    # Only its own repository: an environment may lie within another one.
    if not (root / ".git").exists():
        return None

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(root), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    changes = ("status", "--porcelain", "--untracked-files=no")
    try:
        return {"commit": git("rev-parse", "HEAD"), "modified": bool(git(*changes))}
    except (OSError, subprocess.CalledProcessError):
        return None
