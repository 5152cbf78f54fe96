"""The manifest of a folder of papers: what went in, what came out, and the hash of every file."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tokengym.atomic_write import write_whole
from tokengym.envs.core.errors import DataError
from tokengym.envs.core.seeding import SPLITS
from tokengym.envs.intake.files import sha256

MANIFEST = "manifest.json"
FOLDER_FORMAT = 1


def write_manifest(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Write a manifest atomically: an interruption leaves the old one, none, or the new one."""
    text = json.dumps(manifest, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False)
    write_whole(folder / MANIFEST, f"{text}\n".encode())


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read the manifest of a folder of papers.

    Raises:
        DataError: if there is none, or it is not a manifest of this format.
    """
    path = folder / MANIFEST
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        known = manifest["format"] == FOLDER_FORMAT
        files = [(entry["split"], entry["sha256"]) for entry in manifest["files"].values()]
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise DataError(f"{folder} is not a folder of papers: {path}: {error!r}") from error
    if not known or any(split not in SPLITS for split, _ in files):
        raise DataError(f"{path} is of another format than {FOLDER_FORMAT}")
    return dict(manifest)


def check_files(folder: Path) -> list[tuple[str, Path]]:
    """Return split and path of each file of a folder of papers, in order, if they are intact.

    Raises:
        DataError: if a file differs from the one that the manifest lists; it names the file.
    """
    files = []
    for name, entry in sorted(read_manifest(folder)["files"].items()):
        if sha256(folder / name) != entry["sha256"]:
            raise DataError(f"{folder / name} is not the file that {MANIFEST} lists")
        files.append((entry["split"], folder / name))
    return files
