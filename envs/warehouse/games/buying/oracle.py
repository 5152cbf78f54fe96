"""What a plan made in hindsight earns: a bound of what any policy earns."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from tokengym.envs.warehouse.games.buying.generator import draw_course
from tokengym.envs.warehouse.games.buying.rules import Scenario, Terms


def solve(
    instance: Mapping[str, Any], rng: np.random.Generator, outcomes: Any
) -> dict[str, Any] | None:
    """Return what hindsight earns and buying nothing.

    Args:
        instance: the article.
        rng: randomness of demand and lead times.
        outcomes: `demand` and `leads` by period; `None` to draw them.

    Returns:
        the answer of a Task; `None` if there is nothing to earn.
    """
    course = draw_course(instance, rng) if outcomes is None else outcomes
    best = Scenario.of(Terms.of(instance), course).best
    return {**course, "optimum": best, "reference": 0.0} if best > 0.0 else None
