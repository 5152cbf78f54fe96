"""The texts that the roles read: functions of the evidence and of the replies, nothing else.

What both prompts share is here, the paper in words; `prompt` and `terse` write the rest.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tokengym.envs.disruption.evidence import CITER_FEATURES, REFERENCE_FEATURES, Evidence
from tokengym.envs.disruption.grammar import Argument
from tokengym.envs.disruption.labels import Target


class Case(NamedTuple):
    """What the texts of one Task depend on.

    Attributes:
        evidence: what is shown.
        targets: the targets asked for.
        debated: whether a challenger will reply.
        aim: what the challenger is paid for, `adversary` or `critic`.
        fingerprint: the Task's, from which made-up replies are drawn.
        reward: what the predictor is paid by, a name of `debate.REWARDS`.
    """

    evidence: Evidence
    targets: tuple[Target, ...]
    debated: bool
    aim: str
    fingerprint: str
    reward: str = "proper"


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


def describe(evidence: Evidence) -> list[str]:
    """Return the paper as its level shows it, one line per kind of fact."""
    lines = [f"Paper ({evidence.field}, {evidence.year}): {evidence.title}"]
    if evidence.abstract:
        lines.append(evidence.abstract)
    if has_references(evidence):
        lines.append(f"At publication: {_listed(evidence, REFERENCE_FEATURES)}")
    if has_citers(evidence):
        lines.append(f"First year: {_listed(evidence, CITER_FEATURES)}")
    return lines


def examples(case: Case) -> list[str]:
    """Return the labelled papers of the same literature, one a line."""
    lines = []
    for paper in case.evidence.examples:
        facts = ", ".join(f"{name} {paper['facts'][name]}" for name in REFERENCE_FEATURES)
        labels = ", ".join(paper["labels"][target] for target in case.targets)
        lines.append(f"{paper['abstract']} {facts}: {labels}")
    return lines


def has_references(evidence: Evidence) -> bool:
    """Return whether the reference list is shown."""
    return all(name in evidence.facts for name in REFERENCE_FEATURES)


def has_citers(evidence: Evidence) -> bool:
    """Return whether the first year's citers are shown."""
    return all(name in evidence.facts for name in CITER_FEATURES)


def _listed(evidence: Evidence, names: Sequence[str]) -> str:
    return ", ".join(f"{name} {evidence.facts[name]}" for name in names)
