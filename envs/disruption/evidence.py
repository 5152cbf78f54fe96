"""Evidence about a paper: the only facts that prompts, claims and the judge can use."""

from collections.abc import Mapping, Sequence
from dataclasses import astuple
from functools import lru_cache
from typing import Any, NamedTuple, Self

from tokengym.envs.core.errors import TaskError
from tokengym.envs.disruption.paper import LABEL_RULES, Paper

PAPER_LEVELS = ("L2", "first_year", "L0", "private")
LEVELS = (*PAPER_LEVELS, "examples")
NOTED_LEVELS = ("L2", "private")
SINGLE_LEVELS = ("first_year",)
"""L0: title, abstract, year, field. L2: and the reference list, the authors, and the first year's
citers, with their percentile within field and year.
private: venues and fields alone of the list. examples: the reference list, but of a literature of
its own, shown by further papers with their labels. At L2 and private the challenger has
notes on the next citers, and what it noted of earlier papers is shown with their labels; L0 and
examples, where it sees no more than the predictor, are warm-ups. first_year: title, abstract and
the first year's citers; nobody challenges the answer."""

KINDS: Mapping[str, int] = {"honest": 1, "adversarial": 1, "careless": 4}
"""The challengers with notes, and how many of six are of each kind; `inference` has what they say.
A careless one has mixed up the columns of its notes."""

REFERENCE_FEATURES = ("references", "age", "venues", "fields")
PUBLICATION_FEATURES = (*REFERENCE_FEATURES, "authors")
CITER_FEATURES = ("n_i", "n_j", "n_k")
NEXT_FEATURES = ("m_i", "m_j", "m_k")
PERIODS: Mapping[tuple[str, ...], str] = {
    CITER_FEATURES: "first year",
    NEXT_FEATURES: "second to fourth year",
}
"""When the citers came that are counted by kind."""
_SAY_LITTLE = ("venues", "fields")
"""Facts about the reference list that say nothing of disruption."""
FEATURES = (*PUBLICATION_FEATURES, *CITER_FEATURES, *NEXT_FEATURES)
"""Features a claim can be about; all are integers."""


class Evidence(NamedTuple):
    """The part of a paper that a level shows.

    Attributes:
        title: title.
        abstract: abstract, possibly empty.
        year: publication year.
        field: field of research.
        facts: value of each feature shown, by name.
        rule: by which rule CD is labelled, `threshold` or `percentile`: part of the question.
        private: value of each feature that the predictor is not shown, by name.
        kind: one of `KINDS` where the challenger has notes on them, else empty.
        notes: what the challenger's notes say of them, by name.
        record: the `notes` that the challenger made of earlier papers, and the `label` of each.
        examples: labelled papers of the same literature: `abstract`, `facts` and `labels` of each;
            if there are none, the literature is the usual one.
        citations: the first year's where they are shown: their `count`, n_i + n_j, and `above`,
            the percentage of the papers of its field and year that have fewer, rounded down, where
            it is known. No feature: nothing can be claimed of it, and no judge or posterior reads
            it, since given n_i and n_j it says nothing more.
    """

    title: str
    abstract: str
    year: int
    field: str
    facts: Mapping[str, int]
    rule: str = "threshold"
    private: Mapping[str, int] = {}
    kind: str = ""
    notes: Mapping[str, int] = {}
    record: Sequence[Mapping[str, Any]] = ()
    examples: Sequence[Mapping[str, Any]] = ()
    citations: Mapping[str, int] = {}

    @property
    def known(self) -> Self:
        """The evidence with all facts, as nobody is shown it who has other notes."""
        return self._with(self.private) if self.private else self

    @property
    def noted(self) -> Self:
        """The evidence as the challenger is shown it."""
        return self._with(self.notes) if self.notes else self

    def _with(self, facts: Mapping[str, int]) -> Self:
        shown = {**self.facts, **facts}
        return self._replace(facts=shown, private={}, kind="", notes={}, record=())

    @property
    def noted_features(self) -> tuple[str, ...]:
        """The features that the challenger's notes are about, in order."""
        return NEXT_FEATURES if NEXT_FEATURES[0] in self.notes else CITER_FEATURES

    @property
    def text(self) -> str:
        """Title and abstract in lower case with single blanks, in which quotes are looked up."""
        return _searchable(self.title, self.abstract)


@lru_cache(maxsize=16384)
def _searchable(title: str, abstract: str) -> str:
    return " ".join(f"{title}\n{abstract}".lower().split())


def instance_of(evidence: Evidence) -> dict[str, Any]:
    """Write evidence as the instance of a Task; default values are left out."""
    usual = Evidence._field_defaults
    fields = evidence._asdict().items()
    return {name: value for name, value in fields if name not in usual or value != usual[name]}


def evidence_of(instance: Mapping[str, Any]) -> Evidence:
    """Read the instance of a Task.

    Raises:
        TaskError: if a value is of the wrong type.
        TypeError, AttributeError: if a field is missing, unknown, or no mapping.
    """
    evidence = Evidence(**instance)
    noted = (evidence.notes, *(paper["notes"] for paper in evidence.record))
    well_typed = (
        all(isinstance(v, str) for v in (evidence.title, evidence.abstract, evidence.field))
        and isinstance(evidence.year, int)
        and evidence.rule in LABEL_RULES
        and all(
            k in FEATURES and isinstance(v, int)
            for facts in (evidence.known.facts, *noted)
            for k, v in facts.items()
        )
        and all(isinstance(v, int) for v in evidence.citations.values())
        and (evidence.kind in KINDS if evidence.notes else not evidence.kind)
    )
    if not well_typed:
        raise TaskError(f"damaged evidence in a Task: {dict(instance)!r}")
    return evidence


def evidence_of_paper(paper: Paper, level: str, above: int | None = None) -> Evidence:
    """Return the evidence that `level` shows of `paper`, without facts that the record lacks.

    Args:
        paper: the record.
        level: one of `PAPER_LEVELS`.
        above: see `Evidence.citations`, if known.
    """
    published: dict[str, int] = {}
    citers: dict[str, int] = {}
    citations: dict[str, int] = {}
    if paper.references is not None:
        published |= zip(REFERENCE_FEATURES, astuple(paper.references), strict=True)
    if paper.authors is not None:
        published["authors"] = paper.authors
    if paper.first_year is not None:
        citers |= zip(CITER_FEATURES, astuple(paper.first_year), strict=True)
        if level == "L2":
            citations = {"count": paper.first_year.citations}
            citations |= {} if above is None else {"above": above}
    seen, private = share_facts(level, published, citers, {})
    about = (paper.title, paper.abstract, paper.publication_year, paper.primary_field)
    return Evidence(*about, seen, paper.label_rule, private, citations=citations)


def share_facts(
    level: str, published: dict[str, int], citers: dict[str, int], later: dict[str, int]
) -> tuple[dict[str, int], dict[str, int]]:
    """Return the facts that a level shows to both roles, and those for the challenger alone."""
    if level == "private":
        return {name: published[name] for name in _SAY_LITTLE if name in published}, citers
    if level == "L2":
        return published | citers, later
    if level == "first_year":
        return citers, {}
    return ({} if level == "L0" else published), {}
