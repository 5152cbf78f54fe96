"""A source of any size becomes a folder of papers: balanced, split, audited, with a manifest.

Memory holds some forty bytes a work of the source, about two hundred an eligible paper, and the set
itself; citations and texts stay on disk.
"""

import shutil
from concurrent.futures import Executor
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tokengym.envs.core.errors import DataError, OptionError
from tokengym.envs.core.seeding import SPLITS
from tokengym.envs.disruption.data.audit import audit
from tokengym.envs.disruption.data.jsonl import write_papers
from tokengym.envs.disruption.data.manifest import (
    FOLDER_FORMAT,
    MANIFEST,
    check_files,
    read_manifest,
    write_manifest,
)
from tokengym.envs.disruption.data.reading import Stages
from tokengym.envs.disruption.data.recipe import Recipe, find_inputs
from tokengym.envs.disruption.data.stages import collect, label, select
from tokengym.envs.disruption.data.steps import Progress, ignore_progress
from tokengym.envs.disruption.paper import Paper
from tokengym.envs.intake.files import sha256

STEPS = ".steps"
PAPERS_PER_FILE = 50_000


def build_papers(
    recipe: Recipe,
    out: Path,
    *,
    executor: Executor | None = None,
    progress: Progress = ignore_progress,
) -> dict[str, Any]:
    """Make the set of a recipe in a folder, or continue making it, and return its manifest.

    A set that is there already and intact is left as it is. Intermediate results lie in `.steps` of
    the folder until the set is complete: interrupted, the same call continues where it stopped and
    leaves the same bytes.

    Args:
        recipe: how.
        out: the folder, which `make_world("disruption", data=out)` plays.
        executor: where to read parts, score years and join texts; here, one after another, if
            `None`. The bytes are the same.
        progress: called after each step.

    Raises:
        OptionError: if the recipe lacks `last_year` or `texts`.
        DataError: if a file of the source is damaged and not to be skipped, too few papers can be
            selected, the set fails the audit, or `out` holds something else.
        ImportError: if the source is Parquet and pyarrow is not installed.
    """
    _check(recipe)
    inputs, ignored = find_inputs(recipe, executor, progress)
    head = {
        "format": FOLDER_FORMAT,
        "versions": {name: version(name) for name in ("tokengym", "numpy", "scipy")},
        "arguments": recipe.identity,
        "inputs": {
            role: {one.name: one.sha256 for one in inputs if one.role == role}
            for role in sorted({one.role for one in inputs})
        },
    }
    finished = _read_finished(out, head)
    if finished is not None:
        return finished
    stages = Stages(recipe, inputs, out / STEPS, executor, progress)
    labelled = label(stages)
    selected = select(stages, labelled)
    collected = collect(stages, labelled, selected)
    papers = {split: sorted(listed, key=_order) for split, listed in collected.items()}
    found = {
        **labelled.found,
        **selected.notes,
        "refused": stages.refused,
        "withheld": dict(stages.withheld),
        "ignored_files": dict(ignored),
    }
    progress("audit", 0, 1)
    findings = audit(papers, recipe.window)
    progress("audit", 1, 1)
    files = {}
    for split in SPLITS:
        for first in range(0, len(papers[split]), PAPERS_PER_FILE):
            some = papers[split][first : first + PAPERS_PER_FILE]
            path = out / f"{split}-{first // PAPERS_PER_FILE:04d}.jsonl"
            write_papers(path, some)
            files[path.name] = {"split": split, "papers": len(some), "sha256": sha256(path)}
    made = {"source": found, "skipped": stages.skipped, "audit": findings, "files": files}
    manifest = {**head, **made}
    write_manifest(out, manifest)
    shutil.rmtree(out / STEPS)
    return manifest


def _check(recipe: Recipe) -> None:
    """Refuse a recipe without the inputs that labels and prompts need."""
    if recipe.kind == "sciscinet" and recipe.texts is None:
        raise OptionError("kind='sciscinet' needs texts: its tables have no titles and abstracts")
    if recipe.kind != "jsonl" and recipe.last_year is None:
        raise OptionError(f"kind={recipe.kind!r} needs last_year, the last complete year")


def _read_finished(out: Path, head: dict[str, Any]) -> dict[str, Any] | None:
    """The manifest of the set in a folder, `None` if there is none or it was damaged.

    Raises:
        DataError: if the folder holds another set, or files and no set.
    """
    if not (out / MANIFEST).exists():
        if out.exists() and any(out.iterdir()) and not (out / STEPS).exists():
            raise DataError(f"{out} holds files that are not a set of papers; take another folder")
        return None
    manifest = read_manifest(out)
    differing = [name for name in head if manifest.get(name) != head[name]]
    if differing:
        raise DataError(
            f"{out} holds a set made with other {' and '.join(differing)}; take another folder"
        )
    try:
        check_files(out)
    except DataError:
        return None
    return manifest


def _order(paper: Paper) -> tuple[int, int, str]:
    return paper.publication_year, len(paper.openalex_id), paper.openalex_id
