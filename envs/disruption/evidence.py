"""What a tier shows of a paper: the only facts that prompts, claims and the judge can use."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from tokengym.envs.core.errors import TaskError
from tokengym.envs.disruption.paper import LABEL_RULES, Paper

TIERS = ("L0", "L1", "L2")
"""L0: title, abstract, year, field. L1: and the reference list. L2: and the first year's citers."""

REFERENCE_FEATURES = ("references", "age", "venues", "fields")
CITER_FEATURES = ("n_i", "n_j", "n_k")
FEATURES = (*REFERENCE_FEATURES, *CITER_FEATURES)
"""Features a claim can be about; all are integers."""


class Evidence(NamedTuple):
    """The part of a paper that a tier shows.

    Attributes:
        title: title.
        abstract: abstract, possibly empty.
        year: publication year.
        field: field of research.
        facts: value of each feature shown, by name.
        rule: by which rule CD is labelled, `threshold` or `percentile`: part of the question.
    """

    title: str
    abstract: str
    year: int
    field: str
    facts: Mapping[str, int]
    rule: str = "threshold"

    @property
    def text(self) -> str:
        """Title and abstract in lower case with single blanks, in which quotes are looked up."""
        return _searchable(self.title, self.abstract)


@lru_cache(maxsize=16384)
def _searchable(title: str, abstract: str) -> str:
    return " ".join(f"{title}\n{abstract}".lower().split())


def instance_of(evidence: Evidence) -> dict[str, Any]:
    """Write evidence as the instance of a Task; the usual rule is left out."""
    written = {**evidence._asdict(), "facts": dict(evidence.facts)}
    if evidence.rule == "threshold":
        del written["rule"]
    return written


def evidence_of(instance: Mapping[str, Any]) -> Evidence:
    """Read the instance of a Task.

    Raises:
        TaskError: if a value is of the wrong type.
        TypeError, AttributeError: if a field is missing, unknown, or no mapping.
    """
    evidence = Evidence(**instance)
    well_typed = (
        all(isinstance(v, str) for v in (evidence.title, evidence.abstract, evidence.field))
        and isinstance(evidence.year, int)
        and evidence.rule in LABEL_RULES
        and all(k in FEATURES and isinstance(v, int) for k, v in evidence.facts.items())
    )
    if not well_typed:
        raise TaskError(f"damaged evidence in a Task: {dict(instance)!r}")
    return evidence


def evidence_of_paper(paper: Paper, tier: str) -> Evidence:
    """Return what `tier` shows of `paper`; facts the record lacks are left out."""
    facts: dict[str, int] = {}
    if tier != "L0" and paper.references is not None:
        listed = paper.references
        facts |= zip(
            REFERENCE_FEATURES,
            (listed.count, listed.age, listed.venues, listed.fields),
            strict=True,
        )
    if tier == "L2" and paper.first_year is not None:
        year = paper.first_year
        facts |= zip(CITER_FEATURES, (year.n_i, year.n_j, year.n_k), strict=True)
    return Evidence(
        paper.title,
        paper.abstract,
        paper.publication_year,
        paper.primary_field,
        facts,
        paper.label_rule,
    )
