"""A user's own papers, read from files and folders and divided into splits."""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any

from tokengym.envs.core.errors import DataError
from tokengym.envs.core.immutable import Immutable
from tokengym.envs.core.seeding import SPLITS, split_of
from tokengym.envs.core.task import canonical_json, fingerprint
from tokengym.envs.disruption.data.jsonl import read_papers
from tokengym.envs.disruption.data.manifest import MANIFEST, check_files
from tokengym.envs.disruption.evidence import evidence_of_paper, instance_of
from tokengym.envs.disruption.labels import Target
from tokengym.envs.disruption.paper import Paper
from tokengym.envs.intake.files import sha256
from tokengym.envs.intake.near import group_by, group_near, normal_form
from tokengym.envs.intake.report import Guard, IntakeReport, note_empty

_LEAST_ABSTRACT = 12
"""Blanks in an abstract that is long enough to tell papers apart."""
LEAST_PEERS = 20
"""Papers of a field and year that a percentile is stated among: each is 5 % or less."""


@dataclass(frozen=True, eq=False)
class PaperSet(Immutable):
    """The papers of files and folders, in splits, shared by every world that plays them.

    A pickled set holds the files' names and is read again where it arrives.

    Attributes:
        origin: names and hashes of the files.
        papers: papers by split, in the order of the files, each text once. A folder's manifest
            gives its papers their splits; other papers' texts decide (`split_of_paper`), of papers
            that share a title or an abstract in near-equal words one for all.
        report: what was read, joined and left out.
    """

    origin: tuple[Any, ...]
    papers: Mapping[str, tuple[Paper, ...]]
    report: IntakeReport

    def __reduce__(self) -> tuple[Callable[..., "PaperSet"], tuple[Any, ...]]:
        """Pickle as a reading of the same files, which must not have changed."""
        return _load, self.origin


def load_papers(paths: str | Path | Sequence[str | Path]) -> PaperSet:
    """Read files of JSON lines as `write_papers` writes them, or folders of `build_papers`.

    Raises:
        DataError: if a file or a record is damaged, a folder has no manifest or other files than
            it lists, or there is no paper.
    """
    files = (paths,) if isinstance(paths, str | Path) else tuple(paths)
    names = tuple(str(Path(file).expanduser().resolve()) for file in files)
    return _load(names, tuple(map(_digest, names)))


@lru_cache(maxsize=8)
def _load(names: tuple[str, ...], digests: tuple[str, ...]) -> PaperSet:
    """Read files that have these contents, once per process."""
    if tuple(map(_digest, names)) != digests:
        raise DataError(f"the files have changed since they were read: {', '.join(names)}")
    rows: Counter[str] = Counter()
    found: dict[str, tuple[Paper, str | None]] = {}
    for split, path in (file for name in names for file in _files(Path(name))):
        for paper in read_papers(path):
            rows[path.name] += 1
            found.setdefault(_text_key(paper), (paper, split))
    if not found:
        raise DataError(f"there is no paper in {list(names)}")
    groups: dict[int, list[str]] = defaultdict(list)
    for text, group in zip(found, _group(paper for paper, _ in found.values()), strict=True):
        groups[group].append(text)
    given = {text: split for text, (_, split) in found.items() if split}
    owner: dict[str, str | None] = {}
    for texts in groups.values():
        held = {given[text] for text in texts if text in given}
        # Held-out papers stay; what is near to them is not trained on.
        last = next((split for split in reversed(SPLITS) if split in held), split_of(min(texts)))
        owner |= {text: last if given.get(text, last) == last else None for text in texts}
    parts = {
        split: tuple(paper for text, (paper, _) in found.items() if owner[text] == split)
        for split in SPLITS
    }
    repeated, apart = sum(rows.values()) - len(found), sum(s is None for s in owner.values())
    near = sum(len(texts) for texts in groups.values() if len(texts) > 1)
    guards = {
        "repeated": Guard(repeated, "papers with the text of an earlier one", "left out"),
        "near": Guard(near, "papers with title or abstract in near-equal words", "in one split"),
        "apart": Guard(apart, "papers near to one that another split holds", "left out"),
    }
    sizes = {split: len(part) for split, part in parts.items()}
    report = IntakeReport(rows, guards=guards, notes=note_empty(sizes))
    return PaperSet((names, digests), parts, report)


def _group(papers: Iterable[Paper]) -> list[int]:
    """Group papers by title and abstract, see `group_near`; a short abstract joins nothing."""
    listed = list(papers)
    titles = group_near([paper.title for paper in listed])
    abstracts = (normal_form(paper.abstract) for paper in listed)
    return group_by(
        [title, *([words] if words.count(" ") >= _LEAST_ABSTRACT else [])]
        for title, words in zip(titles, abstracts, strict=True)
    )


def _files(path: Path) -> list[tuple[str | None, Path]]:
    """List files with the split that a manifest gives each."""
    return [*check_files(path)] if path.is_dir() else [(None, path)]


def cited_above_in(papers: PaperSet, paper: Paper) -> int | None:
    """Return the percentage of a set's papers that a paper's first-year citations exceed.

    Of the papers of its field and year in all splits, labelled or not, whose first year is known:
    those with fewer citations, n_i + n_j, among all of them, rounded down.

    Returns:
        0 to 100; `None` if there are fewer than `LEAST_PEERS`, or its field or first year is
        unknown.
    """
    peers = _first_years(papers).get((paper.primary_field, paper.publication_year), [])
    if paper.first_year is None or not paper.primary_field or len(peers) < LEAST_PEERS:
        return None
    return 100 * bisect_left(peers, paper.first_year.citations) // len(peers)


@lru_cache(maxsize=8)
def _first_years(papers: PaperSet) -> Mapping[tuple[str, int], Sequence[int]]:
    """Return the first-year citations of papers by field and year, ascending."""
    found: dict[tuple[str, int], list[int]] = defaultdict(list)
    for paper in chain.from_iterable(papers.papers.values()):
        if paper.first_year is not None:
            key = paper.primary_field, paper.publication_year
            found[key].append(paper.first_year.citations)
    return {key: sorted(counts) for key, counts in found.items()}


@lru_cache(maxsize=64)
def labelled(papers: PaperSet, split: str, targets: tuple[Target, ...]) -> tuple[Paper, ...]:
    """Return the papers of a split that have a label for every target."""
    return tuple(
        paper
        for paper in papers.papers[split]
        if None not in [paper.labels()[target] for target in targets]
    )


def split_of_paper(paper: Paper) -> str:
    """Return the split of a paper by title, abstract, year and field: the same in all tiers."""
    return split_of(_text_key(paper))


def _text_key(paper: Paper) -> str:
    """Return a hash of what the lowest tier shows, whatever the label rule."""
    shown = evidence_of_paper(paper, "L0")._replace(rule="threshold")
    return fingerprint("paper", canonical_json(instance_of(shown)))


def _digest(name: str) -> str:
    """Hash a file, or a folder's manifest, which holds the hashes of its files."""
    path = Path(name)
    return sha256(path / MANIFEST if path.is_dir() else path)
