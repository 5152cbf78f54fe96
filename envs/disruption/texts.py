"""The texts that the roles read: functions of the evidence and of the replies, nothing else.

The part that both prompts share is here, the paper in words; `prompt` and `terse` write the rest.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from tokengym.envs.disruption.evidence import (
    CITER_FEATURES,
    PERIODS,
    PUBLICATION_FEATURES,
    REFERENCE_FEATURES,
    Evidence,
)
from tokengym.envs.disruption.grammar import Argument
from tokengym.envs.disruption.labels import Target


class Case(NamedTuple):
    """Inputs of the texts of one Task.

    Attributes:
        evidence: what is shown.
        targets: the targets asked for.
        debated: whether a challenger will reply.
        aim: what the challenger is paid for, `adversary` or `critic`.
        fingerprint: the Task's, from which made-up replies are drawn.
        reward: what the predictor is paid by, a name of `debate.REWARDS`.
        direct: whether the texts ask for the answer alone.
    """

    evidence: Evidence
    targets: tuple[Target, ...]
    debated: bool
    aim: str
    fingerprint: str
    reward: str = "proper"
    direct: bool = False


class Writer(NamedTuple):
    """One style of the texts.

    Attributes:
        opening: writes the predictor's first text.
        challenge: writes the challenger's text, with the predictor's answer as written.
        rejoinder: writes the predictor's second text, with the argument that reaches it.
    """

    opening: Callable[[Case], str]
    challenge: Callable[[Case, str], str]
    rejoinder: Callable[[Case, Argument], str]


def describe(evidence: Evidence, cited: Callable[[int, int | None], str]) -> list[str]:
    """Return the paper as its level shows it, one line per kind of fact.

    Args:
        evidence: what is shown.
        cited: writes the first year's citations and which percentage of papers has fewer, if known.
    """
    lines = [f"Paper ({evidence.field}, {evidence.year}): {evidence.title}"]
    if evidence.abstract:
        lines.append(evidence.abstract)
    kinds = {PUBLICATION_FEATURES: "at publication", **PERIODS}
    for names, when in kinds.items():
        shown = {name: evidence.facts[name] for name in names if name in evidence.facts}
        if shown:
            lines.append(f"{when.capitalize()}: {_listed(shown)}")
        if names == CITER_FEATURES and evidence.citations:
            lines.append(cited(evidence.citations["count"], evidence.citations.get("above")))
    return lines


def examples(case: Case) -> list[str]:
    """Return the labelled papers of the same literature, one a line."""
    lines = []
    for paper in case.evidence.examples:
        facts = _listed({name: paper["facts"][name] for name in REFERENCE_FEATURES})
        labels = ", ".join(paper["labels"][target] for target in case.targets)
        lines.append(f"{paper['abstract']} {facts}: {labels}")
    return lines


def record(evidence: Evidence) -> list[str]:
    """Return what the challenger noted of earlier papers and what became of them, one a line."""
    return [f"{_listed(paper['notes'])}: {paper['label']}" for paper in evidence.record]


def _listed(facts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {value}" for name, value in facts.items())
