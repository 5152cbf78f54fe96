"""Proper scores of a forecast over the outcomes of one question, each in [0, 1], higher is better.

A `Score` also says in words what it is, for the prompts. Those in `SCORES` and `ORDERED_SCORES` can
be asked for by name.

A score takes the forecast and the weights of the outcomes: all weight on what happened for an
observed outcome, shares for an average over replays, probabilities for the expected score. Scores
are linear in the weights, so the expected score needs no separate formula.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from operator import mul

from tokengym.rewards.bounds import UNIT, Range

Forecast = tuple[float, ...]
"""One probability an outcome, summing to 1; of a yes/no question (no, yes)."""

Formula = Callable[[Forecast, Forecast], float]
"""From a forecast and the weights of the outcomes (both sum to 1) to a score."""

LOG_FLOOR = 0.01
"""Smallest probability that the log score distinguishes."""

_LOG_SPAN = -math.log(LOG_FLOOR)


@dataclass(frozen=True)
class Score:
    """A proper score of forecasts; calling it evaluates its formula.

    Attributes:
        name: how it is asked for.
        formula: from a forecast and weights to a value in `range`.
        sentence: what the prompt tells a forecaster of several outcomes, without the full stop.
        of_yes_no: the same of a yes/no question, if it differs.
        hint: all that a forecaster must know of it in a terse prompt; may be empty.
        range: the values that it can have.
    """

    name: str
    formula: Formula
    sentence: str
    of_yes_no: str = ""
    hint: str = ""
    range: Range = UNIT

    def __call__(self, forecast: Forecast, weights: Forecast) -> float:
        """Return the score of a forecast under weights of the outcomes."""
        return self.formula(forecast, weights)

    def says(self, *, yes_no: bool) -> str:
        """Return the sentence for a yes/no question, or for one with several outcomes."""
        return self.of_yes_no if yes_no and self.of_yes_no else self.sentence


def _brier(forecast: Forecast, weights: Forecast) -> float:
    """Return 1 minus the half-Brier score, 1 - ½ Σ_i (p_i - y_i)², averaged over the weights.

    Of a yes/no question this is 1 - (p - y)². Strictly proper (Brier 1950).
    """
    if len(forecast) == 2:  # the same sums, faster
        (p, q), (v, w) = forecast, weights
        return 0.5 + (p * v + q * w) - 0.5 * (p * p + q * q)
    return 0.5 + _dot(forecast, weights) - 0.5 * _dot(forecast, forecast)


def _log(forecast: Forecast, weights: Forecast) -> float:
    """Return 1 + Σ_i w_i ln q_i / |ln ε|, with q the forecast clipped to at least ε = `LOG_FLOOR`.

    Strictly proper (Good 1952) among forecasts of at least ε. Every forecast is scored as
    `clip_forecast(forecast, ε)`, so an honest report is never beaten below ε either.
    """
    clipped = clip_forecast(forecast, LOG_FLOOR)
    return 1.0 + _dot(weights, tuple(map(math.log, clipped))) / _LOG_SPAN


def _spherical(forecast: Forecast, weights: Forecast) -> float:
    """Return Σ_i w_i p_i / √(Σ_i p_i²). Strictly proper (Roby 1965)."""
    return _dot(forecast, weights) / math.sqrt(_dot(forecast, forecast))


def _ranked(forecast: Forecast, weights: Forecast) -> float:
    """Return 1 minus the ranked probability score over k outcomes in order.

    The ranked probability score is Σ_j (F_j - O_j)² / (k - 1) over the k - 1 thresholds between
    outcomes, with F_j the probability of the first j outcomes and O_j whether it was one of them:
    the mean Brier score of the yes/no questions at the thresholds. Strictly proper (Epstein 1969,
    Murphy 1971).
    """
    return _by_threshold(forecast, weights, (1.0,) * (len(forecast) - 1))


def _ranked_upper(forecast: Forecast, weights: Forecast) -> float:
    """Return `ranked` with weight j on the j-th threshold: errors about high outcomes cost most.

    A threshold-weighted score of Gneiting and Ranjan (2011); strictly proper, as no weight is 0.
    """
    return _by_threshold(forecast, weights, tuple(map(float, range(1, len(forecast)))))


def _by_threshold(forecast: Forecast, weights: Forecast, thresholds: tuple[float, ...]) -> float:
    loss = below = happened = 0.0
    for p, w, weight in zip(forecast, weights, thresholds, strict=False):
        below, happened = below + p, happened + w
        # The mean over outcomes of (F - O)², where O is 1 with weight `happened`.
        loss += weight * (below * below - 2.0 * below * happened + happened)
    return 1.0 - loss / sum(thresholds)


def clip_forecast(forecast: Forecast, floor: float) -> Forecast:
    """Raise probabilities below `floor` to it, and scale the others so that the sum stays 1.

    The result maximises Σ_i p_i ln q_i over all q with q_i ≥ floor and Σ_i q_i = 1 (the
    Karush-Kuhn-Tucker conditions give q_i = max(floor, c·p_i)).

    Args:
        forecast: probabilities of at most 1 / floor outcomes.
        floor: smallest probability of the result.
    """
    raised = {i for i, p in enumerate(forecast) if p < floor}
    if not raised:
        return forecast
    while True:
        mass = sum(p for i, p in enumerate(forecast) if i not in raised)
        scale = (1.0 - floor * len(raised)) / mass
        sunk = {i for i, p in enumerate(forecast) if i not in raised and p * scale < floor}
        if not sunk:
            return tuple(floor if i in raised else p * scale for i, p in enumerate(forecast))
        raised |= sunk


def _dot(a: Forecast, b: Forecast) -> float:
    total: float = sum(map(mul, a, b))
    return total


brier = Score(
    "brier",
    _brier,
    "Your score is 1 minus half the summed squared errors of your probabilities",
    of_yes_no="Your score is 1 minus the squared error of your probability",
)
log = Score(
    "log",
    _log,
    "Your score grows with the logarithm of what you gave to the true answer "
    f"(less than {LOG_FLOOR:g} counts as {LOG_FLOOR:g})",
    hint=f"Less than {LOG_FLOOR:g} counts as {LOG_FLOOR:g}.",
)
spherical = Score(
    "spherical",
    _spherical,
    "Your score is what you gave to the true answer, divided by the root of the summed squares of "
    "all your probabilities",
)
_NEAR_MISSES = "They are in order: near misses cost less."
ranked = Score(
    "ranked",
    _ranked,
    "The outcomes are in order. Your score is 1 minus the mean squared error of your cumulative "
    "probabilities: of A, of A or B, and so on",
    hint=_NEAR_MISSES,
)
ranked_upper = Score(
    "ranked_upper",
    _ranked_upper,
    "The outcomes are in order. Your score is 1 minus the weighted mean squared error of your "
    "cumulative probabilities: that of A weighs 1, of A or B 2, and so on",
    hint=_NEAR_MISSES,
)

SCORES: dict[str, Score] = {score.name: score for score in (brier, log, spherical)}
"""The scores of outcomes in no order, by name."""

ORDERED_SCORES: dict[str, Score] = {score.name: score for score in (ranked, ranked_upper)}
"""The scores of outcomes in order, by name. Of two outcomes both are the Brier score."""


def score_of(name: str, *, ordered: bool) -> Score:
    """Return a score by name; those of outcomes in order are the Brier score of others.

    Args:
        name: of `SCORES` or `ORDERED_SCORES`.
        ordered: whether the outcomes are in order.

    Raises:
        KeyError: naming the scores there are.
    """
    if name in ORDERED_SCORES:
        return ORDERED_SCORES[name] if ordered else brier
    if name not in SCORES:
        known = ", ".join((*SCORES, *ORDERED_SCORES))
        raise KeyError(f"score must be one of {known}, got {name!r}")
    return SCORES[name]
