"""Compiled Tasks: what is shown of a paper, in words, and what reports on it are scored against."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from tokengym.envs.core.errors import TaskError
from tokengym.envs.core.label_noise import outcomes_of_label
from tokengym.envs.core.seeding import generator
from tokengym.envs.core.task import Task
from tokengym.envs.disruption.evidence import Evidence, evidence_of
from tokengym.envs.disruption.judge import Judge, LiteratureJudge
from tokengym.envs.disruption.labels import LABELS, Target
from tokengym.envs.disruption.literature import Probabilities, normalised, peaked, posterior
from tokengym.envs.disruption.texts import Case, macros

_MARK = "\0"
"""Stands for an answer."""


class CompiledDebate(NamedTuple):
    """A Task under the options of a DisruptionWorld.

    Attributes:
        evidence: what is shown to the predictor, and what the challenger notes.
        case: what the texts depend on.
        opening: the predictor's first text.
        challenge: the challenger's text before and after the predictor's answer.
        gold: position of the true label of each target.
        windows: position of the disruption label by other citation windows, in years, where known.
        truths: what reports are scored against, for each target.
        known: whether the posteriors are known, as in the synthetic literature.
        posteriors: probabilities of the labels given all that either role is shown; the gold label
            alone where no posterior is known.
        own: likewise given what the predictor is shown.
        judge: who reads the predictor's claims.
    """

    evidence: Evidence
    case: Case
    opening: str
    challenge: tuple[str, str]
    gold: tuple[int, ...]
    windows: Mapping[str, int]
    truths: tuple[Probabilities, ...]
    known: bool
    posteriors: tuple[Probabilities, ...]
    own: tuple[Probabilities, ...]
    judge: Judge


def compile_task(
    task: Task,
    targets: tuple[Target, ...],
    label: str,
    debated: bool,
    aim: str,
    reward: str,
    prompt: str,
    judge: Judge,
) -> CompiledDebate:
    """Compile a Task.

    Args:
        task: a Task of the debate.
        targets: the targets asked for.
        label: `outcome`, `replay:K` or `expected`.
        debated: whether a challenger will reply.
        aim: what a challenger of no kind is paid for, `adversary` or `critic`.
        reward: what the predictor is paid by, a name of `debate.REWARDS`.
        prompt: one of `PROMPTS`.
        judge: who reads claims about a paper that is shown without examples.

    Raises:
        TaskError, LookupError, TypeError, ValueError: if the Task is damaged.
        TaskError: if there is no posterior for labels but `outcome`.
    """
    evidence = evidence_of(task.instance)
    hidden = bool(evidence.private)
    if not debated or "disruption" not in targets:  # nobody speaks of what the notes are about
        evidence = evidence._replace(private={}, kind="", notes={}, record=())
    if evidence.kind:
        aim = "adversary" if evidence.kind == "adversarial" else "critic"
    gold, posteriors = [], []
    known = "posteriors" in task.answer
    if label != "outcome" and not known:
        raise TaskError(f"label={label!r} needs a posterior, which a real paper does not have")
    for target in targets:
        place = LABELS[target].index(task.answer["labels"][target])
        gold.append(place)
        a, b, c = task.answer["posteriors"][target] if known else peaked(place, 1.0)
        posteriors.append((float(a), float(b), float(c)))
    own = posteriors
    if known and hidden:
        own = [posterior(evidence, target) for target in targets]
    if not evidence.private:
        posteriors = own
    rng = generator("disruption replay", task.fingerprint)
    truths = posteriors
    if label != "expected":
        further = outcomes_of_label(label) - 1
        pairs = zip(gold, posteriors, strict=True)
        truths = [_drawn(place, odds, further, rng) for place, odds in pairs]
    windows = task.answer.get("windows", {})
    case = Case(evidence, targets, debated, aim, task.fingerprint, reward)
    texts = macros(f"prompt_{prompt}")
    before, _, after = texts.challenge(case, _MARK).rpartition(_MARK)
    return CompiledDebate(
        evidence,
        case,
        texts.opening(case),
        (before, after),
        tuple(gold),
        {years: LABELS["disruption"].index(name) for years, name in windows.items()},
        tuple(truths),
        known,
        tuple(posteriors),
        tuple(own),
        LiteratureJudge(evidence.examples) if evidence.examples else judge.apart_from(evidence),
    )


def _drawn(
    place: int, odds: Probabilities, further: int, rng: np.random.Generator
) -> Probabilities:
    """Return the shares of the labels among the true one and further draws of the posterior."""
    counts = rng.multinomial(further, np.array(odds) / sum(odds)) if further else np.zeros(3)
    counts[place] += 1
    return normalised(counts)
