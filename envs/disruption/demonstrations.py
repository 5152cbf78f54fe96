"""Demonstrations for supervised learning: the gold label, defended with true claims."""

import numpy as np

from tokengym.envs.core.turn import Turn
from tokengym.envs.core.world import World
from tokengym.envs.disruption import challengers
from tokengym.envs.disruption.grammar import PredictorAnswer
from tokengym.envs.disruption.oracle import best_claims
from tokengym.envs.disruption.world import CHALLENGER, DisruptionWorld

SMOOTHING = 0.1
"""Probability on each label that did not come true: a learner of hard labels would claim certainty,
which no proper score forgives where the outcome is noisy."""


def labelled(world: World, turn: Turn, rng: np.random.Generator) -> str:
    """Answer with the gold label, its smoothed indicator as report, and true claims.

    The claims are those of the evidence shown that bring the frozen judge nearest to the report;
    none of them is false. The label is the outcome of the paper and not its posterior, so
    the demonstrations are as noisy as a labelled data set. As challenger, argue as `scripted` does.
    """
    world = DisruptionWorld.cast(world)
    if turn.role == CHALLENGER:
        return challengers.scripted(world, turn, rng)
    compiled = world.compiled
    reports = []
    for place in compiled.gold:
        a, b, c = (1.0 - 2.0 * SMOOTHING if k == place else SMOOTHING for k in range(3))
        reports.append((a, b, c))
    claims = best_claims(compiled.evidence, world.targets, reports).claims
    return PredictorAnswer(compiled.gold, tuple(reports), tuple(claims)).write(world.targets)
