"""Calibration and discrimination of yes/no forecasts: diagram, decompositions, ECE, AUC.

Forecasts are probabilities of yes and outcomes are 0 or 1, arrays of shape (N,). The loss that is
decomposed is the mean of (p - y)², which is 1 minus the Brier score of `scoring`. Diagram and
decompositions take exact probabilities instead of outcomes too, and are then free of the noise of
outcomes; the uncertainty is the variance of what is given.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tokengym.rewards.arrays import Floats, Ints

_NULL_SAMPLES = 1000
_BAND_SAMPLES = 400
_SIMULATED_AT_ONCE = 100_000


@dataclass(frozen=True)
class Reliability:
    """A reliability diagram: one point per non-empty bin.

    Attributes:
        counts_B: forecasts in each bin.
        forecasts_B: mean forecast of each bin.
        frequencies_B: share of yes in each bin.
    """

    counts_B: Ints
    forecasts_B: Floats
    frequencies_B: Floats


@dataclass(frozen=True)
class MurphyDecomposition:
    """The decomposition of Murphy (1973): loss = reliability - resolution + uncertainty + residual.

    Attributes:
        reliability: mean squared distance of a bin's mean forecast from its share of yes.
        resolution: mean squared distance of a bin's share of yes from the base rate.
        uncertainty: the loss of always forecasting the base rate.
        residual: due to differing forecasts within a bin; exactly 0 if those of each bin are equal.
    """

    reliability: float
    resolution: float
    uncertainty: float
    residual: float


@dataclass(frozen=True)
class CorpDecomposition:
    """The CORP decomposition of Dimitriadis, Gneiting and Jordan (2021), by isotonic regression.

    loss = miscalibration - discrimination + uncertainty, exactly; the first two are at least 0.

    Attributes:
        miscalibration: how much recalibrating the forecasts would lower the loss.
        discrimination: how much lower the recalibrated forecasts' loss is than the base rate's.
        uncertainty: the loss of always forecasting the base rate.
        values_V: the distinct forecasts, ascending.
        recalibrated_V: their recalibrated values, the CORP reliability diagram.
    """

    miscalibration: float
    discrimination: float
    uncertainty: float
    values_V: Floats
    recalibrated_V: Floats


@dataclass(frozen=True)
class Band:
    """The consistency band of a CORP diagram: where it lies if every forecast is the true chance.

    Attributes:
        values_V: the distinct forecasts, ascending.
        low_V: lower quantile of their recalibrated values.
        high_V: upper quantile of them.
    """

    values_V: Floats
    low_V: Floats
    high_V: Floats


@dataclass(frozen=True)
class ExpectedError:
    """The expected calibration error (ECE), with its null distribution.

    Attributes:
        error: mean distance of a bin's mean forecast from its share of yes, weighted by counts.
        null_mean: the mean error of perfectly calibrated forecasts with the same values.
        null_quantile: a quantile of their error; larger errors are evidence of miscalibration.
    """

    error: float
    null_mean: float
    null_quantile: float


def reliability(forecasts: npt.ArrayLike, outcomes: npt.ArrayLike, bins: int = 10) -> Reliability:
    """Return the reliability diagram over `bins` equal bins of [0, 1].

    Raises:
        ValueError: if the arrays are empty, of different shapes, or out of range.
    """
    forecasts_N, outcomes_N = _check_arrays(forecasts, outcomes)
    return _diagram(_bin_of(forecasts_N, bins), forecasts_N, outcomes_N)


def murphy(
    forecasts: npt.ArrayLike, outcomes: npt.ArrayLike, bins: int | None = None
) -> MurphyDecomposition:
    """Return Murphy's decomposition over equal bins, or over the distinct forecasts if `None`.

    Raises:
        ValueError: if the arrays are empty, of different shapes, or out of range.
    """
    forecasts_N, outcomes_N = _check_arrays(forecasts, outcomes)
    bin_N = np.unique(forecasts_N, return_inverse=True)[1]
    diagram = _diagram(
        bin_N if bins is None else _bin_of(forecasts_N, bins), forecasts_N, outcomes_N
    )
    weights_B = diagram.counts_B / len(forecasts_N)
    base = float(outcomes_N.mean())
    reliable = float(weights_B @ (diagram.forecasts_B - diagram.frequencies_B) ** 2)
    resolved = float(weights_B @ (diagram.frequencies_B - base) ** 2)
    uncertain = float(np.mean((outcomes_N - base) ** 2))
    loss = float(np.mean((forecasts_N - outcomes_N) ** 2))
    return MurphyDecomposition(
        reliable, resolved, uncertain, loss - (reliable - resolved + uncertain)
    )


def corp(forecasts: npt.ArrayLike, outcomes: npt.ArrayLike) -> CorpDecomposition:
    """Return the CORP decomposition, by pooling adjacent violators; it needs no bins.

    Raises:
        ValueError: if the arrays are empty, of different shapes, or out of range.
    """
    forecasts_N, outcomes_N = _check_arrays(forecasts, outcomes)
    values_V, where_N, counts_V = np.unique(forecasts_N, return_inverse=True, return_counts=True)
    recalibrated_V = _recalibrated(where_N, outcomes_N, counts_V)
    base = float(outcomes_N.mean())
    loss = float(np.mean((forecasts_N - outcomes_N) ** 2))
    recalibrated_loss = float(np.mean((recalibrated_V[where_N] - outcomes_N) ** 2))
    uncertain = float(np.mean((outcomes_N - base) ** 2))
    return CorpDecomposition(
        loss - recalibrated_loss, uncertain - recalibrated_loss, uncertain, values_V, recalibrated_V
    )


def consistency_band(
    forecasts: npt.ArrayLike, rng: np.random.Generator, *, level: float = 0.9
) -> Band:
    """Return the pointwise consistency band of the CORP diagram of Dimitriadis et al. (2021).

    Outcomes are simulated under the hypothesis that every forecast is the true chance; a diagram
    that leaves the band is evidence of miscalibration there.

    Args:
        forecasts: probabilities of yes, shape (N,).
        rng: simulates the outcomes.
        level: pointwise coverage, in (0, 1).

    Raises:
        ValueError: if the array is empty or out of range.
    """
    forecasts_N, _ = _check_arrays(forecasts, forecasts)
    values_V, where_N, counts_V = np.unique(forecasts_N, return_inverse=True, return_counts=True)
    simulated_RV = [
        _recalibrated(where_N, rng.random(len(forecasts_N)) < forecasts_N, counts_V)
        for _ in range(_BAND_SAMPLES)
    ]
    tail = (1.0 - level) / 2.0
    low_V, high_V = np.quantile(simulated_RV, (tail, 1.0 - tail), axis=0)
    return Band(values_V, low_V, high_V)


def expected_error(
    forecasts: npt.ArrayLike,
    outcomes: npt.ArrayLike,
    rng: np.random.Generator,
    *,
    bins: int = 10,
    level: float = 0.95,
) -> ExpectedError:
    """Return the expected calibration error with its null distribution.

    With few forecasts even a perfect forecaster has a large error, so the error alone is no
    evidence: only an error above `null_quantile` is.

    Args:
        forecasts: probabilities of yes, shape (N,).
        outcomes: 0 or 1, shape (N,).
        rng: simulates outcomes under the null hypothesis that every forecast is the true chance.
        bins: equal bins of [0, 1].
        level: level of the null quantile, in (0, 1).

    Raises:
        ValueError: if the arrays are empty, of different shapes, or out of range.
    """
    forecasts_N, outcomes_N = _check_arrays(forecasts, outcomes, exact=False)
    bin_N = _bin_of(forecasts_N, bins)
    # Σ_b |Σ_{i in b} (p_i - y_i)| / N is the same number as Σ_b n_b |mean p - mean y| / N.
    rows = max(1, _SIMULATED_AT_ONCE // len(forecasts_N))
    drawn = []
    for first in range(0, _NULL_SAMPLES, rows):
        size = (min(rows, _NULL_SAMPLES - first), len(forecasts_N))
        drawn.append(_errors(bin_N, forecasts_N - (rng.random(size) < forecasts_N)))
    nulls_R = np.concatenate(drawn)
    (error,) = _errors(bin_N, (forecasts_N - outcomes_N)[None])
    return ExpectedError(float(error), float(nulls_R.mean()), float(np.quantile(nulls_R, level)))


def auc(forecasts: npt.ArrayLike, outcomes: npt.ArrayLike) -> float | None:
    """Return the area under the ROC curve: the chance that a yes was forecast above a no.

    Ties count half, as in the Mann-Whitney statistic.

    Returns:
        a number in [0, 1], ½ without discrimination; `None` if all outcomes are the same.

    Raises:
        ValueError: if the arrays are empty, of different shapes, or out of range.
    """
    forecasts_N, outcomes_N = _check_arrays(forecasts, outcomes, exact=False)
    yes, no = forecasts_N[outcomes_N == 1.0], np.sort(forecasts_N[outcomes_N == 0.0])
    if not len(yes) or not len(no):
        return None
    below, not_above = (np.searchsorted(no, yes, side) for side in ("left", "right"))
    return float((below + not_above).sum() / (2.0 * len(yes) * len(no)))


def _check_arrays(
    forecasts: npt.ArrayLike, outcomes: npt.ArrayLike, *, exact: bool = True
) -> tuple[Floats, Floats]:
    """Return both as arrays; outcomes may be exact probabilities unless `exact` is false."""
    forecasts_N = np.asarray(forecasts, dtype=np.float64)
    outcomes_N = np.asarray(outcomes, dtype=np.float64)
    if forecasts_N.ndim != 1 or forecasts_N.shape != outcomes_N.shape or not len(forecasts_N):
        raise ValueError(
            "forecasts and outcomes need one shape (N,) with N >= 1, got "
            f"{forecasts_N.shape} and {outcomes_N.shape}"
        )
    if not np.all((forecasts_N >= 0.0) & (forecasts_N <= 1.0)):
        raise ValueError("forecasts must be probabilities in [0, 1]")
    if not np.all((outcomes_N >= 0.0) & (outcomes_N <= 1.0)):
        raise ValueError("outcomes must be 0 or 1, or exact probabilities")
    if not exact and not np.all((outcomes_N == 0.0) | (outcomes_N == 1.0)):
        raise ValueError("outcomes must be 0 or 1")
    return forecasts_N, outcomes_N


def _recalibrated(
    where_N: npt.NDArray[np.intp], outcomes_N: npt.ArrayLike, counts_V: npt.NDArray[np.intp]
) -> Floats:
    """Return the isotonic regression of outcomes on the distinct forecasts."""
    from scipy.optimize import isotonic_regression

    shares_V = np.bincount(where_N, np.asarray(outcomes_N, np.float64)) / counts_V
    recalibrated_V: Floats = isotonic_regression(shares_V, weights=counts_V).x
    return recalibrated_V


def _bin_of(forecasts_N: Floats, bins: int) -> Ints:
    if bins < 1:
        raise ValueError(f"bins must be at least 1, got {bins}")
    return np.minimum((forecasts_N * bins).astype(np.int64), bins - 1)


def _diagram(bin_N: Ints, forecasts_N: Floats, outcomes_N: Floats) -> Reliability:
    counts = np.bincount(bin_N)
    used = counts > 0
    counts_B = counts[used]
    return Reliability(
        counts_B,
        np.bincount(bin_N, forecasts_N)[used] / counts_B,
        np.bincount(bin_N, outcomes_N)[used] / counts_B,
    )


def _errors(bin_N: Ints, miss_RN: Floats) -> Floats:
    rows, bins = len(miss_RN), int(bin_N.max()) + 1
    at_RN = bin_N + bins * np.arange(rows)[:, None]
    miss_RB = np.bincount(at_RN.ravel(), miss_RN.ravel(), rows * bins).reshape(rows, bins)
    errors_R: Floats = np.abs(miss_RB).sum(axis=1) / len(bin_N)
    return errors_R
