"""The texts that the roles read: functions of the evidence and of the replies, nothing else.

What both prompts share is here: the paper in words, and examples that differ for each
Task, so that copying one says nothing about the paper. `prompt` and `terse` have the words.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from tokengym.envs.core.seeding import generator
from tokengym.envs.disruption.evidence import CITER_FEATURES, REFERENCE_FEATURES, Evidence
from tokengym.envs.disruption.grammar import Answer, Argument
from tokengym.envs.disruption.labels import LABELS, Target


class Case(NamedTuple):
    """What the texts of one Task depend on.

    Attributes:
        evidence: what is shown.
        targets: the targets asked for.
        debated: whether a challenger will reply.
        aim: what the challenger is paid for, `adversary` or `critic`.
        answer: a made-up answer, two lines.
        argument: a made-up argument, one line.
    """

    evidence: Evidence
    targets: tuple[Target, ...]
    debated: bool
    aim: str
    answer: str
    argument: str


class Writer(NamedTuple):
    """One style of the texts.

    Attributes:
        opening: writes the predictor's first text.
        challenge: writes the challenger's text, with the predictor's answer.
        rejoinder: writes the predictor's second text, with the argument that reaches it.
    """

    opening: Callable[[Case], str]
    challenge: Callable[[Case, Answer], str]
    rejoinder: Callable[[Case, Argument], str]


def made_up(targets: Sequence[Target], fingerprint: str) -> tuple[str, str]:
    """Return an answer and an argument, drawn without looking at the paper."""
    rng = generator("disruption example", fingerprint)
    words, numbers = [], []
    for target in targets:
        place = int(rng.integers(3))
        words.append(LABELS[target][place])
        numbers += _tenths(rng, place)
    label = LABELS[targets[0]][int(rng.integers(3))]
    return f"LABEL {' '.join(words)}\nP {' '.join(numbers)}", f"ARGUE {label}"


def _tenths(rng: np.random.Generator, place: int) -> list[str]:
    """Draw three probabilities in tenths, the largest at `place`."""
    most = int(rng.integers(5, 9))
    second = int(rng.integers(1, 10 - most))
    others = [second, 10 - most - second]
    shares = [most if k == place else others.pop() for k in range(3)]
    return [f"0.{share}" for share in shares]


def describe(evidence: Evidence) -> list[str]:
    """The paper as its level shows it, one line per kind of fact."""
    lines = [f"Paper ({evidence.field}, {evidence.year}): {evidence.title}"]
    if evidence.abstract:
        lines.append(evidence.abstract)
    if has_references(evidence):
        lines.append(f"At publication: {_listed(evidence, REFERENCE_FEATURES)}")
    if has_citers(evidence):
        lines.append(f"First year: {_listed(evidence, CITER_FEATURES)}")
    return lines


def has_references(evidence: Evidence) -> bool:
    """Whether the reference list is shown."""
    return all(name in evidence.facts for name in REFERENCE_FEATURES)


def has_citers(evidence: Evidence) -> bool:
    """Whether the first year's citers are shown."""
    return all(name in evidence.facts for name in CITER_FEATURES)


def _listed(evidence: Evidence, names: Sequence[str]) -> str:
    return ", ".join(f"{name} {evidence.facts[name]}" for name in names)
