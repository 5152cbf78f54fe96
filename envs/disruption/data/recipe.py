"""How a set of papers is made: every choice as frozen data, and the files it is made of."""

import dataclasses
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from tokengym.envs.core.errors import DataError, OptionError
from tokengym.envs.disruption.data.openalex import find_merged_ids, find_pages, find_snapshot_parts
from tokengym.envs.disruption.data.selection import BALANCES, Balance
from tokengym.envs.disruption.data.steps import Progress, sha256
from tokengym.envs.disruption.labels import LABELS, Target
from tokengym.envs.disruption.paper import LABEL_RULES, LabelRule

Kind = Literal["openalex", "openalex-api", "sciscinet", "jsonl"]
KINDS: tuple[Kind, ...] = get_args(Kind)
Role = Literal["works", "merged", "scores", "citations", "papers"]


@dataclass(frozen=True)
class Recipe:
    """How a set of papers is made.

    Attributes:
        kind: what the source is: an `openalex` snapshot, pages of its API (`openalex-api`), tables
            of SciSciNet-v2 (`sciscinet`), or papers that are labelled already (`jsonl`).
        source: its folder, or one file of JSON lines.
        texts: OpenAlex snapshot or pages with titles and abstracts for `sciscinet`, which has none.
        last_year: last year that the source covers completely; all kinds but `jsonl` need it.
        target: what is balanced: `disruption`, `novelty`, or `both` labels together.
        rule: label CD by `threshold` (±0.1) or by `percentile` within field and year.
        share: size of either tail of the percentile rule.
        window: years after publication that citers count.
        test_from: first year of the test split; chosen if `None`.
        balance: where classes are made equally frequent: `field-year`, `split` or `none`.
        shuffles: how many shuffles novelty scores rest on; 0 leaves novelty out.
        seed: of shuffles and choices.
        skip_corrupt: skip what is damaged and name it, instead of refusing it.
        papers_per_file: most papers in one file.

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
    papers_per_file: int = 50_000

    def __post_init__(self) -> None:
        """Refuse what makes no sense, by name and value."""
        for name, known in (
            ("kind", KINDS),
            ("target", (*LABELS, "both")),
            ("rule", LABEL_RULES),
            ("balance", BALANCES),
        ):
            if getattr(self, name) not in known:
                raise OptionError(
                    f"{name} must be one of {list(known)}, got {getattr(self, name)!r}"
                )
        for name, least in (("window", 1), ("seed", 0), ("papers_per_file", 1)):
            if getattr(self, name) < least:
                raise OptionError(f"{name} must be at least {least}, got {getattr(self, name)}")
        if not 0 < self.share <= 0.5:
            raise OptionError(f"share must be in (0, 0.5], got {self.share}")
        if self.shuffles < 0 or self.shuffles == 1:
            raise OptionError(f"shuffles must be 0 or at least 2, got {self.shuffles}")
        if (self.texts is not None) != (self.kind == "sciscinet"):
            raise OptionError(
                f"texts go with kind='sciscinet', which needs them; got {self.kind!r} with "
                f"texts={str(self.texts)!r}"
            )
        if self.kind != "jsonl" and self.last_year is None:
            raise OptionError(f"kind={self.kind!r} needs last_year, the last complete year")
        if self.target != "disruption" and not self.shuffles and self.kind.startswith("openalex"):
            raise OptionError(f"target={self.target!r} needs novelty: shuffles must not be 0")

    @property
    def targets(self) -> tuple[Target, ...]:
        """The targets whose labels a paper must have."""
        return tuple(LABELS) if self.target == "both" else (self.target,)

    def arguments(self) -> dict[str, Any]:
        """All that the set depends on besides the contents of its files, as plain JSON."""
        fields = dataclasses.asdict(self)
        del fields["source"], fields["texts"]
        return fields


class Input(NamedTuple):
    """One file that a set is made of.

    Attributes:
        role: what it holds.
        name: its place in the source.
        path: where it lies.
        root: the folder that `name` starts from.
        sha256: of its contents.
    """

    role: Role
    name: str
    path: Path
    root: Path
    sha256: str


def find_inputs(recipe: Recipe, executor: Executor | None, progress: Progress) -> list[Input]:
    """Find and hash the files of a recipe; works come in the order in which they count.

    Raises:
        DataError: if there are none, or one cannot be read.
    """
    listed = _list_files(recipe)
    stage = "hash files"
    progress(stage, 0, len(listed))
    paths = [path for _, _, path in listed]
    hashes = map(sha256, paths) if executor is None else executor.map(sha256, paths)
    found = []
    for (role, root, path), digest in zip(listed, hashes, strict=True):
        found.append(Input(role, path.relative_to(root).as_posix(), path, root, digest))
        progress(stage, len(found), len(listed))
    return found


def _list_files(recipe: Recipe) -> list[tuple[Role, Path, Path]]:
    """Role, root and path of each file."""
    root = recipe.source
    if not root.exists():
        raise DataError(f"there is no {root}")
    if recipe.kind == "jsonl":
        if root.is_file():
            return [("papers", root.parent, root)]
        return _list_matching(
            "papers", root, "*.jsonl or *.jsonl.gz", "**/*.jsonl", "**/*.jsonl.gz"
        )
    if recipe.kind != "sciscinet":
        return _list_works(root, pages=recipe.kind == "openalex-api")
    assert recipe.texts is not None
    tables: list[tuple[Role, str]] = [
        ("scores", "sciscinet_papers"),
        ("citations", "sciscinet_paperrefs"),
    ]
    listed = _list_works(recipe.texts, pages=any(recipe.texts.glob("page-*.jsonl.gz")))
    for role, name in tables:  # a table is one Parquet file or a folder of them
        listed += _list_matching(
            role, root, f"{name}.parquet", f"{name}.parquet", f"{name}/*.parquet"
        )
    return listed


def _list_works(root: Path, *, pages: bool) -> list[tuple[Role, Path, Path]]:
    if pages:
        return [("works", root, path) for path in find_pages(root)]
    parts, merged = find_snapshot_parts(root), find_merged_ids(root)
    return [*(("works", root, p) for p in parts), *(("merged", root, p) for p in merged)]


def _list_matching(
    role: Role, root: Path, wanted: str, *patterns: str
) -> list[tuple[Role, Path, Path]]:
    files = sorted(path for pattern in patterns for path in root.glob(pattern))
    if not files:
        raise DataError(f"{root} holds no {wanted}")
    return [(role, root, path) for path in files]
