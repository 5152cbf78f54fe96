"""A Markov chain: will it be in a state after n steps, or visit it within n steps?

A past path is shown, and each row of the matrix has a Dirichlet prior: the predictive chance of a
future path is a product of Pólya urn draws, summed over all paths. Of a known matrix it is a matrix
power (of the chain with the state made absorbing, for a visit).
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from tokengym.envs.forecasting.families.base import Family, Shown, bernoulli
from tokengym.envs.forecasting.levels import Knobs
from tokengym.rewards.scoring import Forecast

_NAMES = "ABC"
_PRIOR = 0.5
_LONGEST_URN = 4

Rows = Sequence[Sequence[float]]


def _draw(rng: np.random.Generator, _knobs: Knobs) -> Shown:
    states = len(_NAMES)
    chain = rng.dirichlet([_PRIOR] * states, size=states)
    path = [int(rng.integers(states))]
    for _ in range(int(rng.integers(12, 30))):
        path.append(int(rng.choice(states, p=chain[path[-1]])))
    now = path[-1]
    steps = int(rng.integers(1, _LONGEST_URN + 1))
    ever = bool(rng.random() < 0.5)
    others = [state for state in range(states) if state != now]
    target = int(rng.choice(others)) if ever else int(rng.integers(states))
    return {
        "rows": None,  # a matrix that no level states
        "seen": "".join(_NAMES[state] for state in path),
        "prior": _PRIOR,
        "states": states,
        "now": now,
        "target": target,
        "steps": steps,
        "ever": ever,
    }


def chain_chance(rows: Rows, start: int, target: int, steps: int, *, ever: bool) -> float:
    """Return the chance to be in `target` after `steps` steps, or to visit it within them.

    Args:
        rows: transition probabilities, one row a state.
        start: the state now; it is not `target` if `ever`.
        target: the state asked about.
        steps: number of steps, at least 1.
        ever: whether a visit counts, instead of the state at the end.
    """
    states = range(len(rows))
    law = [float(state == start) for state in states]
    for _ in range(steps):
        law = [
            sum(
                law[old] * (float(new == target) if ever and old == target else rows[old][new])
                for old in states
            )
            for new in states
        ]
    return law[target]


def urn_chance(
    counts: list[list[float]], start: int, target: int, steps: int, *, ever: bool
) -> float:
    """Return the same chance where row i of the matrix is Dirichlet(counts[i]) and unknown.

    Args:
        counts: Dirichlet parameters of the rows; changed while summing, restored at the end.
        start: the state now.
        target: the state asked about.
        steps: number of steps; the sum has one term for each of the states^steps paths.
        ever: whether a visit counts, instead of the state at the end.
    """
    if steps == 0:
        return float(start == target)
    row = counts[start]
    total = sum(row)
    chance = 0.0
    for new in range(len(row)):
        if ever and new == target:
            chance += row[new] / total
            continue
        share = row[new] / total
        row[new] += 1.0
        chance += share * urn_chance(counts, new, target, steps - 1, ever=ever)
        row[new] -= 1.0
    return chance


def _counts(shown: Shown) -> list[list[float]]:
    """Return how often each state followed each state."""
    counts = [[0.0] * shown["states"] for _ in range(shown["states"])]
    path = [_NAMES.index(name) for name in shown["seen"]]
    for old, new in pairwise(path):
        counts[old][new] += 1.0
    return counts


def _with_matrix(shown: Shown, rows: Rows) -> Forecast:
    return bernoulli(
        chain_chance(rows, shown["now"], shown["target"], shown["steps"], ever=shown["ever"])
    )


def _posterior(shown: Shown) -> list[list[float]]:
    return [[count + shown["prior"] for count in row] for row in _counts(shown)]


def _predictive(shown: Shown) -> Forecast:
    question = (shown["now"], shown["target"], shown["steps"])
    return bernoulli(urn_chance(_posterior(shown), *question, ever=shown["ever"]))


def _latent(shown: Shown, rng: np.random.Generator) -> Forecast:
    return _with_matrix(shown, [rng.dirichlet(row).tolist() for row in _posterior(shown)])


def _empirical(shown: Shown) -> Forecast:
    # One more of each than was seen: Laplace's rule, for rows never left.
    rows = [[count + 1.0 for count in row] for row in _counts(shown)]
    return _with_matrix(shown, [[count / sum(row) for count in row] for row in rows])


FAMILY = Family(
    "markov",
    "The next state is drawn from the current one's row, which is Dirichlet-distributed.",
    _draw,
    _predictive,
    _latent,
    _empirical,
)
