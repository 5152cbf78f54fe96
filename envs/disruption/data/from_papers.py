"""From papers that are labelled already to those of a set."""

import dataclasses
import hashlib
import itertools
from collections.abc import Sequence

import numpy as np

from tokengym.envs.core.seeding import SPLITS
from tokengym.envs.disruption.data.columns import tells_of_later, text_hash
from tokengym.envs.disruption.data.jsonl import read_papers
from tokengym.envs.disruption.data.recipe import Chosen, Input, Recipe
from tokengym.envs.disruption.data.selecting import Candidates, select
from tokengym.envs.disruption.data.steps import Progress
from tokengym.envs.disruption.labels import LABELS, Target, percentile_labels
from tokengym.envs.disruption.paper import Paper


def choose_papers(recipe: Recipe, inputs: Sequence[Input], progress: Progress) -> Chosen:
    """Read, relabel if asked, and choose; of records with one id the first counts.

    Args:
        recipe: of kind `jsonl`.
        inputs: its files.
        progress: told after each file.

    Raises:
        DataError: if a file is damaged and not to be skipped, or too few papers can be chosen.
    """
    skipped: dict[str, list[str]] = {}
    papers: dict[str, Paper] = {}
    read = 0
    for count, one in enumerate(inputs, start=1):
        reasons: list[str] | None = [] if recipe.skip_corrupt else None
        for paper in read_papers(one.path, reasons):
            papers.setdefault(paper.openalex_id, paper)
            read += 1
        if reasons:
            skipped[one.name] = [reason.replace(f"{one.root}/", "") for reason in reasons]
        progress("read papers", count, len(inputs))
    listed = list(papers.values())
    if recipe.rule == "percentile":
        listed = _ranked(listed, recipe.share)
    targets: tuple[Target, ...] = tuple(LABELS)
    if recipe.target != "both":
        targets = (recipe.target,)
    classes = list(itertools.product(*(LABELS[target] for target in targets)))
    code = {labels: k for k, labels in enumerate(classes)}
    fields = {name: k for k, name in enumerate(sorted({p.primary_field for p in listed}))}
    labels = [tuple(str(paper.labels()[target]) for target in targets) for paper in listed]
    selection = select(
        Candidates(
            key=np.array([_key(paper.openalex_id) for paper in listed], dtype=np.uint64),
            year=np.array([paper.publication_year for paper in listed], dtype=np.int64),
            field=np.array([fields[paper.primary_field] for paper in listed], dtype=np.int64),
            label=np.array([code.get(label, -1) for label in labels], dtype=np.int64),
            title=np.array([text_hash(paper.title) for paper in listed], dtype=np.uint64),
            abstract=np.array([text_hash(paper.abstract) for paper in listed], dtype=np.uint64),
            tells=np.array(
                [tells_of_later(p.openalex_id, p.title, p.abstract) for p in listed], dtype=bool
            ),
        ),
        len(classes),
        window=recipe.window,
        test_from=recipe.test_from,
        balance=recipe.balance,
        seed=recipe.seed,
    )
    progress("choose papers", 1, 1)
    chosen: dict[str, list[Paper]] = {split: [] for split in SPLITS}
    for paper, place in zip(listed, selection.split.tolist(), strict=True):
        if place >= 0:
            chosen[SPLITS[place]].append(paper)
    found = {
        "records": read,
        "papers": len(listed),
        "test_from": selection.test_from,
        "left_out": dict(selection.dropped),
    }
    return Chosen(chosen, skipped, found)


def _ranked(papers: Sequence[Paper], share: float) -> list[Paper]:
    """The papers labelled by the rank of their CD index within field and year."""
    score = [np.nan if paper.cd_index is None else paper.cd_index for paper in papers]
    labels = percentile_labels(
        score,
        [paper.primary_field for paper in papers],
        [paper.publication_year for paper in papers],
        share=share,
    )
    return [
        dataclasses.replace(paper, disruption_label=label or None, label_rule="percentile")
        for paper, label in zip(papers, labels.tolist(), strict=True)
    ]


def _key(paper_id: str) -> int:
    """64 bits that name an id of any form."""
    return int.from_bytes(hashlib.blake2b(paper_id.encode(), digest_size=8).digest())
