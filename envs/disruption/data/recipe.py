"""The recipe of a set of papers: every choice as frozen data, and the input files."""

import dataclasses
from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from tokengym.envs.core.errors import DataError, OptionError, require_one_of
from tokengym.envs.disruption.data.openalex import find_merged_ids
from tokengym.envs.disruption.data.selection import BALANCES, Balance
from tokengym.envs.disruption.data.sources import CITATIONS, KINDS, SCORES, Kind, find_files
from tokengym.envs.disruption.data.steps import Progress
from tokengym.envs.disruption.labels import LABELS, Target
from tokengym.envs.disruption.paper import LABEL_RULES, LabelRule
from tokengym.envs.intake.files import sha256

Role = Literal["works", "merged", "scores", "citations", "papers"]


@dataclass(frozen=True)
class Recipe:
    """How a set of papers is made.

    Attributes:
        kind: what the source is: works of `openalex`, tables of SciSciNet-v2 (`sciscinet`), or
            papers that are labelled already (`jsonl`); see `detect_kind`.
        source: its folder, or one file.
        texts: OpenAlex source with the titles and abstracts that `sciscinet` lacks; to label works
            they must be given.
        last_year: last year that the source covers completely; to label works it must be given.
        target: what is balanced: `disruption`, `novelty`, or `both` labels together.
        rule: label CD by `threshold` (±0.1) or by `percentile` within field and year.
        share: size of either tail of the percentile rule.
        window: years after publication that citers count.
        test_from: first year of the test split; chosen if `None`.
        balance: where classes are made equally frequent: `field-year`, `split` or `none`.
        shuffles: how many shuffles novelty scores rest on; 0 leaves novelty out.
        seed: of shuffles and choices.
        skip_corrupt: skip what is damaged and name it, instead of refusing it.
        keep_withheld: judge retracted works and paratext too, which otherwise only cite.

    Raises:
        OptionError: if a value is out of range or one that is needed is missing.
    """

    kind: Kind
    source: Path
    texts: Path | None = None
    last_year: int | None = None
    target: Literal["disruption", "novelty", "both"] = "disruption"
    rule: LabelRule = "threshold"
    share: float = 0.25
    window: int = 5
    test_from: int | None = None
    balance: Balance = "field-year"
    shuffles: int = 20
    seed: int = 0
    skip_corrupt: bool = False
    keep_withheld: bool = False

    def __post_init__(self) -> None:
        """Refuse invalid values, naming them."""
        for name, known in (
            ("kind", KINDS),
            ("target", (*LABELS, "both")),
            ("rule", LABEL_RULES),
            ("balance", BALANCES),
        ):
            require_one_of(name, getattr(self, name), list(known))
        for name, least in (("window", 1), ("seed", 0)):
            if getattr(self, name) < least:
                raise OptionError(f"{name} must be at least {least}, got {getattr(self, name)}")
        if not 0 < self.share <= 0.5:
            raise OptionError(f"share must be in (0, 0.5], got {self.share}")
        if self.shuffles < 0 or self.shuffles == 1:
            raise OptionError(f"shuffles must be 0 or at least 2, got {self.shuffles}")
        if self.texts is not None and self.kind != "sciscinet":
            raise OptionError(f"texts go with kind='sciscinet', got {self.kind!r}")
        if self.target != "disruption" and not self.shuffles and self.kind == "openalex":
            raise OptionError(f"target={self.target!r} needs novelty: shuffles must not be 0")

    @property
    def targets(self) -> tuple[Target, ...]:
        """The targets whose labels a paper must have."""
        return tuple(LABELS) if self.target == "both" else (self.target,)

    @property
    def identity(self) -> dict[str, Any]:
        """Everything the set depends on besides the contents of its files, as plain JSON."""
        fields = dataclasses.asdict(self)
        del fields["source"], fields["texts"]
        return fields


class Input(NamedTuple):
    """One input file of a set.

    Attributes:
        role: what it holds.
        root: the folder of its source.
        path: where it lies.
        sha256: of its contents.
    """

    role: Role
    root: Path
    path: Path
    sha256: str

    @property
    def name(self) -> str:
        """Its place in the source."""
        return self.path.relative_to(self.root).as_posix()

    @property
    def identity(self) -> list[str]:
        """What is read of it depends on, see `Step`: reasons for what is skipped name it."""
        return [self.name, self.sha256]


def find_inputs(
    recipe: Recipe, executor: Executor | None, progress: Progress
) -> tuple[list[Input], Mapping[str, str]]:
    """Find and hash the files of a recipe.

    Returns:
        the files, works in the order in which they count; what else lies in the source's folder, by
        name, and what it holds.

    Raises:
        DataError: if there are none, or one cannot be read.
    """
    listed, ignored = _list_files(recipe)
    stage = "hash files"
    progress(stage, 0, len(listed))
    paths = [path for _, _, path in listed]
    hashes = map(sha256, paths) if executor is None else executor.map(sha256, paths)
    found = []
    for place, digest in zip(listed, hashes, strict=True):
        found.append(Input(*place, digest))
        progress(stage, len(found), len(listed))
    return found, ignored


def _list_files(recipe: Recipe) -> tuple[list[tuple[Role, Path, Path]], Mapping[str, str]]:
    """Return role, root and path of each file, and what is ignored."""
    source, tables = recipe.source, recipe.kind == "sciscinet"
    listed: list[tuple[Role, Path, Path]] = []
    ignored: Mapping[str, str] = {}
    if records := recipe.texts if tables else source:
        content: Literal["papers", "works"] = "papers" if recipe.kind == "jsonl" else "works"
        files, ignored = find_files(records, content)
        root = records.parent if records.is_file() else records
        merged = find_merged_ids(root) if content == "works" and records.is_dir() else []
        listed.extend((content, root, path) for path in files)
        listed.extend(("merged", root, path) for path in merged)
    roles: Mapping[Role, str] = {"scores": SCORES, "citations": CITATIONS} if tables else {}
    for role, name in roles.items():  # a table is one Parquet file or a folder of them
        found = [*source.glob(f"{name}.parquet"), *source.glob(f"{name}/*.parquet")]
        if not found:
            missing = f"{source} holds no {name}.parquet"
            raise DataError(missing if source.exists() else f"there is no {source}")
        listed.extend((role, source, path) for path in sorted(found))
    return listed, ignored
