"""Best of n between two players with Elo ratings that were measured with error.

The odds of a game are 10^(d / 400), d the true difference, which is normal about the measured one.
The chance of the series is its mean over d given the games already played, by Gauss-Hermite
quadrature.
"""

from math import comb

import numpy as np

from tokengym.envs.forecasting.families.base import Family, Shown, bernoulli
from tokengym.envs.forecasting.levels import Knobs
from tokengym.rewards.scoring import Forecast

_MEAN, _SPREAD = 1600, 200
_LOWEST, _HIGHEST = 800, 2400
_ERRORS = (50, 200)
"""Smallest and largest standard error of a rating, in steps of 10."""
_GAMES = {1: (1, 3, 5), 2: (3, 5, 7), 3: (3, 5, 7, 9)}
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(24)


def _draw(rng: np.random.Generator, knobs: Knobs) -> Shown:
    games = int(rng.choice(_GAMES[knobs.size]))
    a, b = np.clip(rng.normal(_MEAN, _SPREAD, size=2), _LOWEST, _HIGHEST).round().astype(int)
    errors = 10 * rng.integers(_ERRORS[0] // 10, _ERRORS[1] // 10 + 1, size=2)
    true = float(a - b) + float(np.hypot(*errors)) * float(rng.normal())
    # At most games // 2 games are played, so the series is never over.
    played = games // 2 if knobs.staged else 0
    if knobs.size > 1 and not knobs.staged:
        played = int(rng.integers(0, games // 2 + 1))
    won = int(rng.binomial(played, game_chance(true)))
    score = (won, played - won)
    return {
        "ratings": (a, b),
        "errors": errors,
        "games": games,
        "score": (0, 0) if knobs.staged else score,
        "later": score if knobs.staged else None,
        "stated": knobs.stated,
    }


def game_chance(difference: float) -> float:
    """Return the chance to win one game, from the difference of the true ratings."""
    return float(1.0 / (1.0 + 10.0 ** (-difference / 400.0)))


def series_chance(game: float, need: int, other_needs: int) -> float:
    """Return the chance to win `need` games before the other wins `other_needs`.

    Args:
        game: chance to win one game.
        need: games still to win, at least 1.
        other_needs: games the other still has to win, at least 1.
    """
    return float(
        game**need
        * sum(comb(need - 1 + lost, lost) * (1.0 - game) ** lost for lost in range(other_needs))
    )


def _seen(shown: Shown) -> tuple[int, int]:
    won, lost = shown["score"] if shown["later"] is None else shown["later"]
    return won, lost


def _difference(shown: Shown) -> float:
    return float(shown["ratings"][0] - shown["ratings"][1])


def _posterior(
    difference: float, error: float, won: int, lost: int
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return chances to win a game at the nodes of the quadrature, and the nodes' probabilities."""
    chances = 1.0 / (1.0 + 10.0 ** (-(difference + error * _NODES) / 400.0))
    weights = _WEIGHTS * chances**won * (1.0 - chances) ** lost
    return tuple(chances.tolist()), tuple((weights / weights.sum()).tolist())


def _nodes(shown: Shown) -> tuple[tuple[float, ...], tuple[float, ...]]:
    return _posterior(_difference(shown), float(np.hypot(*shown["errors"])), *_seen(shown))


def _series(shown: Shown, game: float) -> float:
    won, lost = _seen(shown)
    to_win = shown["games"] // 2 + 1
    return series_chance(game, to_win - won, to_win - lost)


def _predictive(shown: Shown) -> Forecast:
    chances, weights = _nodes(shown)
    return bernoulli(
        sum(w * _series(shown, game) for game, w in zip(chances, weights, strict=True))
    )


def _latent(shown: Shown, rng: np.random.Generator) -> Forecast:
    chances, weights = _nodes(shown)
    return bernoulli(_series(shown, chances[int(rng.choice(len(chances), p=weights))]))


def _empirical(shown: Shown) -> Forecast:
    """Return the odds as if the ratings were exact."""
    return bernoulli(_series(shown, game_chance(_difference(shown))))


def _steps(shown: Shown) -> str:
    """Subtract the ratings in hundreds: SmolLM2 can copy two digits, but not subtract four."""
    (a, b), (won, lost) = (rating // 100 for rating in shown["ratings"]), _seen(shown)
    standing = f", {won} to {lost}" if won + lost else ""
    return f"A {a}, B {b}: {a - b:+d}, best of {shown['games']}{standing}"


FAMILY = Family(
    "contest",
    "A's true rating lead is normal about the measured one; each game is won by Elo's odds of it.",
    _draw,
    _predictive,
    _latent,
    _empirical,
    steps=_steps,
)
