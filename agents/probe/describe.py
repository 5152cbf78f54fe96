"""What can be said of the weights of tokens where no known way of training and no fault fits."""

from collections.abc import Iterator

import numpy as np

from tokengym.agents.probe.batch import ProbeBatch
from tokengym.agents.probe.fit import Fit
from tokengym.agents.probe.verdict import percent
from tokengym.rewards.arrays import Floats


def rollout_factors(batch: ProbeBatch, fit: Fit) -> tuple[Floats, float]:
    """Return one factor for each rollout's tokens, and the share of the update that they leave."""
    ratio_K = np.where(batch.own_K, np.exp(batch.log_ratio_K), 0.0)
    rows_NK = (batch.table.rollout_K == np.arange(len(batch.rollouts))[:, None]) * ratio_K
    gram_NN = rows_NK @ batch.table.gram_KK @ rows_NK.T
    factors_N = np.linalg.pinv(gram_NN, rcond=1e-12) @ (rows_NK @ fit.product_K)
    left = 1.0 - float(factors_N @ rows_NK @ fit.product_K)
    return factors_N, float(np.sqrt(max(left, 0.0)))


def described(batch: ProbeBatch, fit: Fit, allowed: float) -> Iterator[str]:
    """Yield what the weights of tokens look like: by rollout, by place, by layer."""
    unexplained = fit.unexplained
    if unexplained > allowed:
        yield (
            f"{percent(unexplained)} of the update is none of these tokens' gradient: a term that "
            "looks at no single token, or other contexts or probabilities than those given"
        )
        yield from _layers(fit)
        return
    factors_N, left = rollout_factors(batch, fit)
    if left <= allowed:
        first = ", ".join(f"{factor:.2g}" for factor in factors_N[:8] / np.abs(factors_N).max())
        yield f"tokens of a rollout weigh the same, so rewards or baselines differ: {first}, ..."
        return
    yield f"tokens of a rollout weigh differently ({percent(left)} of the update)"
    yield from _places(batch, fit, factors_N)


def _places(batch: ProbeBatch, fit: Fit, factors_N: Floats) -> Iterator[str]:
    weights_K, table = fit.weights_K(), batch.table
    relative_K = weights_K / np.where(factors_N == 0, np.inf, factors_N)[table.rollout_K]
    means = [
        f"{round(float(np.median(relative_K[here])), 3) + 0.0:.2g}"
        for place in range(8)
        if (here := batch.own_K & (table.place_K == place)).any()
    ]
    yield f"weight by place in the completion, relative to its rollout's: {', '.join(means)}"


def _layers(fit: Fit) -> Iterator[str]:
    """Yield the parameters in which the update is least like any weights of tokens."""
    table = fit.table
    rest_P = fit.change_P - table.scores_PK @ fit.weights_K()
    count = len(table.names)
    shares = np.sqrt(np.bincount(table.layer_P, rest_P**2, count))
    worst = np.argsort(-shares)[:3]
    named = ", ".join(f"{table.names[n]} {percent(float(shares[n]))}" for n in worst)
    yield f"most of it in {named}"
