"""The recipe of a set of papers: every choice as frozen data, and the input files."""

import dataclasses
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from tokengym.envs.core.errors import DataError, OptionError, require_one_of
from tokengym.envs.disruption.data.openalex import find_works
from tokengym.envs.disruption.data.selection import BALANCES, Balance
from tokengym.envs.disruption.data.steps import Progress
from tokengym.envs.disruption.labels import LABELS, Target
from tokengym.envs.disruption.paper import LABEL_RULES, LabelRule
from tokengym.envs.intake.files import sha256

Role = Literal["works", "scores", "citations"]
SCORES, CITATIONS = "sciscinet_papers", "sciscinet_paperrefs"


@dataclass(frozen=True)
class Recipe:
    """How a set of papers, or a table of scores, is made.

    Attributes:
        source: works of OpenAlex, a folder or a file, or a folder with the tables of SciSciNet-v2.
        texts: OpenAlex source with the titles and abstracts that SciSciNet lacks.
        last_year: last year that the source covers completely; to label works it must be given.
        target: what is balanced: `disruption`, `novelty`, or `both` labels together.
        rule: label CD by `threshold` (±0.1) or by `percentile` within field and year.
        share: size of either tail of the percentile rule.
        window: years after publication that citers count.
        test_from: first year of the test split; chosen if `None`.
        balance: where classes are made equally frequent: `field-year`, `split` or `none`.
        shuffles: how many shuffles novelty scores rest on; 0 leaves novelty out. The z-scores of
            SciSciNet are used as they are.
        seed: of shuffles and choices.
        skip_corrupt: skip what is damaged and name it, instead of refusing it.

    Raises:
        OptionError: if a value is out of range.
    """

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

    def __post_init__(self) -> None:
        """Refuse invalid values, naming them."""
        for name, known in (
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


class Inputs(NamedTuple):
    """The input files of a recipe.

    Attributes:
        files: by role, works in the order in which they count; `scores` and `citations` of
            SciSciNet alone.
        names: by role, the place of each file in its source.
        hashes: by role, the SHA-256 of each file by name.
        ignored: files of an OpenAlex folder that hold no JSON.
    """

    files: dict[Role, list[Path]]
    names: dict[Role, list[str]]
    hashes: dict[Role, dict[str, str]]
    ignored: list[str]


def find_inputs(recipe: Recipe, executor: Executor | None, progress: Progress) -> Inputs:
    """Find and hash the files of a recipe.

    Raises:
        OptionError: if `texts` are given for works of OpenAlex, which have them.
        DataError: if there are no files, or one cannot be read.
    """
    source, works = recipe.source, recipe.source
    files: dict[Role, list[Path]] = {}
    if tables := is_sciscinet(source):
        files = {"scores": _find_table(source, SCORES), "citations": _find_table(source, CITATIONS)}
    elif recipe.texts is not None:
        raise OptionError(f"texts go with the tables of SciSciNet; {source} holds none")
    ignored: list[str] = []
    if not tables or recipe.texts is not None:
        works = recipe.texts or source
        files["works"], ignored = find_works(works)
    roots = {"scores": source, "citations": source, "works": works}
    names: dict[Role, list[str]] = {}
    hashes: dict[Role, dict[str, str]] = {}
    done = 0
    total = sum(map(len, files.values()))
    for role, paths in files.items():
        root = roots[role].parent if roots[role].is_file() else roots[role]
        names[role] = [path.relative_to(root).as_posix() for path in paths]
        hashes[role] = {}
        run = map if executor is None else executor.map
        for name, digest in zip(names[role], run(sha256, paths), strict=True):
            hashes[role][name] = digest
            done += 1
            progress("hash files", done, total)
    return Inputs(files, names, hashes, ignored)


def is_sciscinet(source: Path) -> bool:
    """Return whether a folder holds tables of SciSciNet-v2."""
    return any(source.glob(f"{SCORES}*"))


def _find_table(source: Path, name: str) -> list[Path]:
    """Return the files of a table, one Parquet file or a folder of them."""
    found = sorted([*source.glob(f"{name}.parquet"), *source.glob(f"{name}/*.parquet")])
    if not found:
        raise DataError(f"{source} holds no {name}.parquet")
    return found
