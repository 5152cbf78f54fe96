"""Installing a package as a user would, but without the network and outside the environment."""

import subprocess
import sys
from pathlib import Path


def pip_install(package: Path, site: Path) -> Path:
    """Build and install a package by pip into a folder to be put on the path; returns the folder.

    Args:
        package: the project's folder; the build leaves files in it.
        site: where to.
    """
    offline = ["--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", "install", "-q", *offline, "--target"]
    done = subprocess.run([*command, str(site), str(package)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return site
