"""Demonstrations for supervised learning: the gold label, defended with true claims."""

import numpy as np

from tokengym.envs.disruption.challengers import scripted, with_challenger
from tokengym.envs.disruption.grammar import PredictorAnswer
from tokengym.envs.disruption.literature import peaked
from tokengym.envs.disruption.oracle import best_claims
from tokengym.envs.disruption.world import DisruptionWorld

SMOOTHING = 0.1
"""Probability on each label that did not come true: a learner of hard labels would claim certainty,
which no proper score forgives where the outcome is noisy."""


@with_challenger(scripted)
def labelled(world: DisruptionWorld, rng: np.random.Generator) -> str:
    """Answer with the gold label, its smoothed indicator as report, and true claims.

    The claims are those of the evidence shown that bring the judge nearest to the report;
    none of them is false. The label is the outcome of the paper and not its posterior, so
    the demonstrations are as noisy as a labelled data set. As challenger, argue as `scripted` does.
    """
    compiled = world.compiled
    reports = [peaked(place, 1.0 - 2.0 * SMOOTHING) for place in compiled.gold]
    claims = best_claims(compiled.evidence, world.targets, reports, compiled.judge).claims
    return PredictorAnswer(compiled.gold, tuple(reports), tuple(claims)).write(world.targets)
