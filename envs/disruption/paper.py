"""The record of a paper: its text, what was known at publication, and its scores and labels."""

import math
import re
from dataclasses import dataclass
from typing import Literal, get_args

from tokengym.envs.core.errors import DataError
from tokengym.envs.disruption.labels import (
    DISRUPTION_LABELS,
    NOVELTY_LABELS,
    Target,
    disruption_label_of_score,
    novelty_label,
)
from tokengym.envs.intake.text import clean, clean_line
from tokengym.envs.intake.times import LATEST_YEAR

LabelRule = Literal["threshold", "percentile"]
NoveltyScale = Literal["z", "share"]
LAST_YEAR = LATEST_YEAR
MOST_CITATIONS = 2**31 - 1
_TEXTS = {"title": clean_line, "abstract": clean, "primary_field": clean_line}
"""How each text of a paper is cleaned, whoever made the record."""
_NO_TEXT = re.compile("[\ud800-\udfff]")
LABEL_RULES: tuple[LabelRule, ...] = get_args(LabelRule)
_CHOICES = {
    "label_rule": LABEL_RULES,
    "novelty_scale": (*get_args(NoveltyScale), None),
    "disruption_label": (*DISRUPTION_LABELS, None),
    "novelty_label": (*NOVELTY_LABELS, None),
}


@dataclass(frozen=True, slots=True)
class ReferenceFacts:
    """The reference list at publication.

    Attributes:
        count: references resolved, >= 0.
        age: median age of the references in years, rounded.
        venues: distinct venues among them.
        fields: distinct fields among them.
    """

    count: int
    age: int
    venues: int
    fields: int


@dataclass(frozen=True, slots=True)
class FirstYear:
    """Citers of the first year after publication by kind; see `citations`."""

    n_i: int
    n_j: int
    n_k: int

    @property
    def citations(self) -> int:
        """Papers that cite the paper itself."""
        return self.n_i + self.n_j


@dataclass(frozen=True, slots=True)
class Paper:
    """One paper with its scores and labels.

    `cited_by_count`, the scores and the labels lie in the paper's future: they are on the record
    and never in a prompt.

    Attributes:
        openalex_id: such as `W2741809807`.
        title: title.
        abstract: abstract, possibly empty.
        publication_year: year.
        cited_by_count: citations to date.
        cd_index: CD₅ in [-1, 1], `None` if undefined.
        novelty_score: 10th percentile of the venue pairs' z-scores, or a share in [0, 1] that is
            larger for more novel papers; `None` if undefined.
        conventionality_score: the median of the z-scores, or such a share; `None` if undefined.
        disruption_label: `disruptive`, `consolidating` or `neutral`; `None` where CD is.
        novelty_label: `novel`, `conventional` or `balanced`; `None` where the scores are.
        primary_field: field of research.
        references: the reference list at publication, if known.
        first_year: citers of the first year, if known.
        field_median: usual conventionality of the field and year: novel up to it, balanced above.
        cd_by_window: pairs of a citation window in years and the CD index within it, ascending,
            where such a window was complete; CD₅ among them or not.
        novelty_scale: `z` or `share`; if `None`, whichever of them the scores and label agree on.
            By shares a novel paper is at least as novel as conventional, a conventional one at
            least as conventional as novel, and a balanced one either.
        label_rule: `threshold` (±0.1 on CD) or `percentile` (rank within field and year).
        authors: how many wrote it, >= 1, if known.

    Raises:
        DataError: if a value is out of range, a text too long, or a label disagrees with its score.
    """

    openalex_id: str
    title: str
    abstract: str
    publication_year: int
    cited_by_count: int
    cd_index: float | None
    novelty_score: float | None
    conventionality_score: float | None
    disruption_label: str | None
    novelty_label: str | None
    primary_field: str
    references: ReferenceFacts | None = None
    first_year: FirstYear | None = None
    field_median: float | None = None
    label_rule: LabelRule = "threshold"
    cd_by_window: tuple[tuple[int, float], ...] = ()
    novelty_scale: NoveltyScale | None = None
    authors: int | None = None

    def __post_init__(self) -> None:
        """Clean the texts; refuse values out of range and labels that disagree with the scores."""
        self._check_types()
        for name, cleaned in _TEXTS.items():
            object.__setattr__(self, name, cleaned(getattr(self, name)))
        for name, known in _CHOICES.items():
            if getattr(self, name) not in known:
                raise self._error(f"{name} must be one of {known}, got {getattr(self, name)!r}")
        self._check_windows()
        self._check_disruption()
        self._check_novelty()

    def labels(self) -> dict[Target, str | None]:
        """The label of each target."""
        return {"disruption": self.disruption_label, "novelty": self.novelty_label}

    def labels_by_window(self) -> dict[str, str]:
        """The disruption label by citation window; empty where labels are ranks."""
        if self.label_rule != "threshold":
            return {}
        return {str(years): disruption_label_of_score(cd) for years, cd in self.cd_by_window}

    def _check_types(self) -> None:
        for name in ("openalex_id", *_TEXTS):
            value = getattr(self, name)
            if not isinstance(value, str) or _NO_TEXT.search(value):
                raise self._error(f"{name} must be text in UTF-8, got {value!r:.60}")
        self._check_count("publication_year", self.publication_year, LAST_YEAR)
        for facts in (self.references, self.first_year):
            for name in facts.__slots__ if facts is not None else ():
                self._check_count(name, getattr(facts, name), MOST_CITATIONS)
        self._check_count("cited_by_count", self.cited_by_count, MOST_CITATIONS)
        if self.authors is not None:
            self._check_count("authors", self.authors, MOST_CITATIONS, 1)
        for name in ("cd_index", "novelty_score", "conventionality_score", "field_median"):
            value = getattr(self, name)
            if value is not None and not _is_number(value):
                raise self._error(f"{name} must be a number or null, got {value!r:.60}")

    def _check_windows(self) -> None:
        years = [window for window, _ in self.cd_by_window]
        for window, cd in self.cd_by_window:
            self._check_count("a window of cd_by_window", window, LAST_YEAR)
            if not _is_number(cd) or not -1.0 <= cd <= 1.0:
                raise self._error(f"cd_by_window must lie in [-1, 1], got {cd!r:.60}")
        if years != sorted(set(years)):
            raise self._error(f"windows of cd_by_window must ascend, got {years}")

    def _check_count(self, name: str, value: object, most: int, least: int = 0) -> None:
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise self._error(
                f"{name} must be a whole number from {least} to {most}, got {value!r:.60}"
            )

    def _check_disruption(self) -> None:
        score, label = self.cd_index, self.disruption_label
        if score is None:
            if label is not None:
                raise self._error(f"cd_index is None, so disruption_label cannot be {label!r}")
            return
        if not -1.0 <= score <= 1.0:
            raise self._error(f"cd_index must lie in [-1, 1], got {score!r}")
        if self.label_rule == "threshold" and label != disruption_label_of_score(score):
            raise self._error(
                f"cd_index={score!r} means disruption_label="
                f"{disruption_label_of_score(score)!r}, got {label!r}"
            )

    def _check_novelty(self) -> None:
        tenth, median, label = self.novelty_score, self.conventionality_score, self.novelty_label
        if tenth is None or median is None:
            if label is not None:
                raise self._error(f"a score is None, so novelty_label cannot be {label!r}")
            return
        if not (math.isfinite(tenth) and math.isfinite(median)):
            raise self._error(f"novelty scores must be finite, got {tenth!r} and {median!r}")
        shares = min(tenth, median) >= 0.0 and max(tenth, median) <= 1.0
        if self.novelty_scale == "share" and not shares:
            raise self._error(f"shares must lie in [0, 1], got {tenth!r} and {median!r}")
        possible: set[str] = set()
        if shares and self.novelty_scale != "z":
            possible = {"balanced"} | ({"novel"} if tenth >= median else set())
            possible |= {"conventional"} if tenth <= median else set()
        if tenth <= median and self.novelty_scale != "share":
            unsure = tenth < 0 and self.field_median is None
            by_z = novelty_label(tenth, median, self.field_median or 0.0)
            possible |= {"novel", "balanced"} if unsure else {by_z}
        if not possible:
            raise self._error(
                f"novelty_score={tenth!r} is a 10th percentile and cannot exceed the median, "
                f"conventionality_score={median!r}, unless both are shares in [0, 1]"
            )
        if label not in possible:
            raise self._error(
                f"novelty_score={tenth!r} and conventionality_score={median!r} mean novelty_label="
                f"{' or '.join(name for name in NOVELTY_LABELS if name in possible)}, got {label!r}"
            )

    def _error(self, what: str) -> DataError:
        return DataError(f"paper {self.openalex_id!s:.60}: {what}")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
