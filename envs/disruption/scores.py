"""Scores of a debate: both answers against the truth, and what the argument between them costs."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tokengym.envs.disruption.claims import Fact
from tokengym.envs.disruption.evidence import Evidence
from tokengym.envs.disruption.grammar import Argument, PredictorAnswer
from tokengym.envs.disruption.literature import Probabilities
from tokengym.rewards import debate


class AnswerScores(NamedTuple):
    """Scores of a predictor's two answers, averaged over targets.

    Attributes:
        before: half-Brier of the first reports.
        after: half-Brier of the final reports.
        terms: the predictor's terms, `form` aside.
    """

    before: float
    after: float
    terms: Mapping[str, float]


def costs_of(argument: Argument, evidence: Evidence) -> dict[str, float]:
    """Return what an argument costs the challenger: claims against what it was shown, silence.

    Who was shown the notes of another paper does not lie by repeating them.
    """
    noted = evidence.noted
    lies = sum(not claim.holds(noted) for claim in argument.claims)
    costs = {"false_claims": debate.challenger_false_claims(lies)}
    if evidence.notes:
        facts = [claim for claim in argument.claims if isinstance(claim, Fact)]
        disclosed = any(fact.op == "=" and fact.feature in evidence.notes for fact in facts)
        costs["silence"] = debate.silence(disclosed)
    return costs


def scores_of(
    first: PredictorAnswer | None,
    final: PredictorAnswer | None,
    verdicts: Sequence[Probabilities],
    truths: Sequence[Probabilities],
    true: int,
    false: int,
    reward: str,
) -> AnswerScores:
    """Score both answers and the judge's verdict.

    Args:
        first: the answer before the challenge; `None` if it was malformed, which counts as a false
            report with certainty and a label that contradicts it.
        final: the answer after it; a malformed one earns the least of every further term, and of
            `ORIGINAL` the least of all.
        verdicts: the judge's probabilities for each target.
        truths: what the reports on each target are scored against.
        true: how many of the final claims the judge heard.
        false: how many of the final claims do not hold.
        reward: a name of `debate.REWARDS`.
    """
    share = 1.0 / len(truths)
    before = after = judged = right = begun = ended = 0.0
    for k, truth in enumerate(truths):
        lost, contradicted = _loss_of(first, k, truth)
        before, begun = before + lost * share, begun + contradicted * share
        lost, contradicted = _loss_of(final, k, truth)
        after, ended = after + lost * share, ended + contradicted * share
        if final is not None:
            judged += debate.half_brier(verdicts[k], truth) * share
            right += debate.correctness(final.labels[k], truth) * share
    if final is None:
        least = {name: term.low for name, term in debate.REWARDS[reward].items() if name != "form"}
        if reward == "proper":
            least["calibration"] = debate.calibration(before, after)
            least["consistency"] = debate.consistency(begun, ended)
        return AnswerScores(before, after, least)
    if reward == "original":
        joint = math.prod(truth[k] for truth, k in zip(truths, final.labels, strict=True))
        validity = true / (true + false) if true else 0.0
        terms = debate.original(joint, validity, judged, before, after)
        return AnswerScores(before, after, terms)
    terms = {
        "correctness": right,
        "calibration": debate.calibration(before, after),
        "consistency": debate.consistency(begun, ended),
        "reasoning": debate.reasoning(judged),
        "false_claims": debate.false_claims(false),
    }
    return AnswerScores(before, after, terms)


def _loss_of(answer: PredictorAnswer | None, k: int, truth: Probabilities) -> tuple[float, float]:
    """Return the half-Brier of an answer on a target, and how far its label contradicts it."""
    if answer is None:
        return 1.0, 1.0
    report = answer.reports[k]
    return debate.half_brier(report, truth), debate.contradiction(answer.labels[k], report)
