"""Where a run is trained: what another run needs alike to repeat it to the last digit."""

import contextlib
import os
import platform
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

from tokengym.agents.training.connection import Connection
from tokengym.installed import installed_versions


def describe_environment(connection: Connection) -> dict[str, Any]:
    """Return versions, processor, threads, precision and git state as JSON values.

    Args:
        connection: to the service that the run trains on.
    """
    service = connection.service
    return {
        "versions": installed_versions(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads": None if service is None else service.threads,
        "precision": None if service is None else service.precision,
        "git": checkout_state(),
    }


def _processor() -> str:
    """Return the processor's name, as Linux reports it."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def checkout_state() -> dict[str, Any] | None:
    """Return commit and state of the checkout that Tokengym runs from; `None` if installed."""
    root = Path(__file__).resolve().parents[3]
    # Only its own repository: an environment may lie within another one.
    if not (root / ".git").exists():
        return None
    git = partial(subprocess.check_output, cwd=root, stderr=subprocess.DEVNULL, text=True)
    try:
        changes = git(["git", "status", "--porcelain", "--untracked-files=no"])
        return {"commit": git(["git", "rev-parse", "HEAD"]).strip(), "modified": bool(changes)}
    except (OSError, subprocess.CalledProcessError):
        return None
