"""The texts that the roles read: functions of the evidence and of the replies, nothing else.

The templates `prompt_full` and `prompt_terse` have the macros `opening(case)`, the predictor's
first text, `challenge(case, answer)` and `rejoinder(case, label, stated)`, its second one: `stated`
joins the challenger's claims. `lines` has what both share: the paper in words.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tokengym.envs.core.seeding import generator
from tokengym.envs.core.templates import templates
from tokengym.envs.disruption import evidence as shown
from tokengym.envs.disruption.claims import MOST_QUOTED_CHARACTERS, MOST_QUOTED_WORDS
from tokengym.envs.disruption.grammar import NO_LABEL, either
from tokengym.envs.disruption.labels import LABELS, Target
from tokengym.rewards import debate
from tokengym.rewards.form import FORM_SHARE


class Case(NamedTuple):
    """Inputs of the texts of one Task.

    Attributes:
        evidence: what is shown.
        targets: the targets asked for.
        debated: whether a challenger will reply.
        aim: what the challenger is paid for, `adversary` or `critic`.
        fingerprint: the Task's, from which made-up replies are drawn.
        reward: what the predictor is paid by, a name of `debate.REWARDS`.
    """

    evidence: shown.Evidence
    targets: tuple[Target, ...]
    debated: bool
    aim: str
    fingerprint: str
    reward: str = "proper"

    @property
    def words(self) -> list[str]:
        """The labels of all targets, in the order of probabilities."""
        return [word for target in self.targets for word in LABELS[target]]

    @property
    def choices(self) -> list[str]:
        """For each target the choice between its labels."""
        return [either(LABELS[target]) for target in self.targets]


_KINDS = {shown.PUBLICATION_FEATURES: "at publication", **shown.PERIODS}


def _shown_facts(facts: Mapping[str, int], names: Sequence[str]) -> dict[str, int]:
    return {name: facts[name] for name in names if name in facts}


def _listed(facts: Mapping[str, int]) -> str:
    """Write names and numbers: a dozen times a Task, for which a macro takes longer."""
    return ", ".join(f"{name} {value}" for name, value in facts.items())


def _fact_lines(facts: Mapping[str, int]) -> list[tuple[str, bool]]:
    """Return a line for each kind of fact, empty if none is shown, and whether it is of citers."""
    lines = []
    for names, when in _KINDS.items():
        known = _shown_facts(facts, names)
        line = f"{when.capitalize()}: {_listed(known)}" if known else ""
        lines.append((line, names == shown.CITER_FEATURES))
    return lines


def _record(evidence: shown.Evidence) -> str:
    """Write the challenger's notes on earlier papers, and what became of them, a line each."""
    return "".join(f"{_listed(other['notes'])}: {other['label']}\n" for other in evidence.record)


def _made_up(case: Case) -> tuple[str, str]:
    """Return an answer and an argument that differ from Task to Task and ignore the paper."""
    rng = generator("disruption example", case.fingerprint)
    words, numbers = [], []
    for target in case.targets:
        place = int(rng.integers(3))
        words.append(LABELS[target][place])
        numbers += _tenths(rng, place)
    label = LABELS[case.targets[0]][int(rng.integers(3))]
    return f"LABEL {' '.join(words)}\nP {' '.join(numbers)}", f"ARGUE {label}"


def _tenths(rng: np.random.Generator, place: int) -> list[str]:
    """Draw three probabilities in tenths, the largest at `place`."""
    most = int(rng.integers(5, 9))
    second = int(rng.integers(1, 10 - most))
    others = [second, 10 - most - second]
    shares = [most if k == place else others.pop() for k in range(3)]
    return [f"0.{share}" for share in shares]


macros = templates(
    Path(__file__).parent,
    debate=debate,
    either=either,
    shown_facts=_shown_facts,
    listed=_listed,
    fact_lines=_fact_lines,
    record=_record,
    made_up=_made_up,
    form_share=FORM_SHARE,
    no_label=NO_LABEL,
    most_quoted=(MOST_QUOTED_WORDS, MOST_QUOTED_CHARACTERS),
    challengers=shown.KINDS,
    periods=shown.PERIODS,
    features=shown.FEATURES,
    reference_features=shown.REFERENCE_FEATURES,
    next_features=shown.NEXT_FEATURES,
)
"""From the name of a template, such as `prompt_full`, to its macros."""
