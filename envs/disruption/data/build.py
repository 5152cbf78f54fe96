"""A source of any size becomes a folder of papers: balanced, split, audited, with a manifest.

The work is done in steps that are kept (`steps`): interrupted, the same call goes on where it
stopped and leaves the same bytes. Memory holds some forty bytes a work of the source, about two
hundred an eligible paper, and the set itself; citations and texts stay on disk.
"""

import shutil
from concurrent.futures import Executor
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tokengym.envs.core.errors import DataError
from tokengym.envs.core.seeding import SPLITS
from tokengym.envs.disruption.data.audit import audit
from tokengym.envs.disruption.data.from_papers import choose_papers
from tokengym.envs.disruption.data.from_works import choose_works
from tokengym.envs.disruption.data.jsonl import write_papers
from tokengym.envs.disruption.data.manifest import (
    FOLDER_FORMAT,
    MANIFEST,
    checked_files,
    read_manifest,
    write_manifest,
)
from tokengym.envs.disruption.data.recipe import Input, Recipe, inputs_of
from tokengym.envs.disruption.data.steps import Progress, no_progress, sha256
from tokengym.envs.disruption.paper import Paper

STEPS = ".steps"


def build_papers(
    recipe: Recipe,
    out: Path,
    *,
    executor: Executor | None = None,
    progress: Progress = no_progress,
) -> dict[str, Any]:
    """Make the set of a recipe in a folder, or go on making it, and return its manifest.

    A set that is there already and intact is left as it is. What is made on the way lies in
    `.steps` of the folder and goes once the set is complete.

    Args:
        recipe: how.
        out: the folder, which `make_world("disruption", data=out)` plays.
        executor: where to read parts and score years; here, one after another, if `None`. The
            bytes are the same.
        progress: told after each step.

    Raises:
        DataError: if a file of the source is damaged and not to be skipped, too few papers can be
            chosen, the set does not stand the audit, or `out` holds something else.
        ImportError: if the source is Parquet and pyarrow is not installed.
    """
    inputs = inputs_of(recipe, executor, progress)
    head = {
        "format": FOLDER_FORMAT,
        "versions": {name: version(name) for name in ("tokengym", "numpy", "scipy")},
        "arguments": recipe.arguments(),
        "inputs": {role: _hashes(inputs, role) for role in sorted({one.role for one in inputs})},
    }
    there = _finished(out, head)
    if there is not None:
        return there
    steps = out / STEPS
    steps.mkdir(parents=True, exist_ok=True)
    if recipe.kind == "jsonl":
        chosen = choose_papers(recipe, inputs, progress)
    else:
        chosen = choose_works(recipe, inputs, steps, executor, progress)
    papers = {split: sorted(chosen.papers[split], key=_order) for split in SPLITS}
    if not any(papers.values()):
        raise DataError(f"no paper is left of {recipe.source}: {chosen.found}")
    progress("audit", 0, 1)
    findings = audit(papers, recipe.window)
    progress("audit", 1, 1)
    files = {}
    for split, listed in papers.items():
        for first in range(0, len(listed), recipe.papers_per_file):
            some = listed[first : first + recipe.papers_per_file]
            path = out / f"{split}-{first // recipe.papers_per_file:04d}.jsonl"
            write_papers(path, some)
            files[path.name] = {"split": split, "papers": len(some), "sha256": sha256(path)}
    manifest = {
        **head,
        "source": chosen.found,
        "skipped": chosen.skipped,
        "audit": findings,
        "files": files,
    }
    write_manifest(out, manifest)
    shutil.rmtree(steps)
    return manifest


def _hashes(inputs: list[Input], role: str) -> dict[str, str]:
    return {one.name: one.sha256 for one in inputs if one.role == role}


def _finished(out: Path, head: dict[str, Any]) -> dict[str, Any] | None:
    """The manifest of the set in a folder, `None` if there is none or it was damaged.

    Raises:
        DataError: if the folder holds another set, or files and no set.
    """
    if not (out / MANIFEST).exists():
        if out.exists() and any(out.iterdir()) and not (out / STEPS).exists():
            raise DataError(f"{out} holds files that are no set of papers; take another folder")
        return None
    manifest = read_manifest(out)
    differing = [name for name in head if manifest.get(name) != head[name]]
    if differing:
        raise DataError(
            f"{out} holds a set made with other {' and '.join(differing)}; take another folder"
        )
    try:
        checked_files(out)
    except DataError:
        return None
    return manifest


def _order(paper: Paper) -> tuple[int, int, str]:
    return paper.publication_year, len(paper.openalex_id), paper.openalex_id
