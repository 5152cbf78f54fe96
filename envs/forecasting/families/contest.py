"""Best of n between two players with Elo ratings; the odds of a game are 10^(difference / 400)."""

from math import comb

import numpy as np

from tokengym.envs.forecasting.families.base import Family, Knobs, Shown, yes
from tokengym.rewards.scoring import Forecast

_MEAN, _SPREAD = 1600, 300
_SERIES = {1: (1, 3, 5), 2: (1, 3, 5, 7), 3: (3, 5, 7, 9)}


def _draw(rng: np.random.Generator, knobs: Knobs) -> Shown:
    games = int(rng.choice(_SERIES[knobs.size]))
    ratings = np.clip(np.rint(rng.normal(_MEAN, _SPREAD, size=2)), 800, 2400).astype(int)
    to_win = games // 2 + 1
    score = rng.integers(0, to_win, size=2) if knobs.size > 1 else np.zeros(2, dtype=int)
    return {
        "ratings": ratings.tolist(),
        "games": games,
        "score": score.tolist(),
        "stated": knobs.stated,
    }


def _text(shown: Shown) -> str:
    a, b = shown["ratings"]
    rule = "Elo" if shown["stated"] else "Skill"
    won, lost = shown["score"]
    standing = f" A leads {won}-{lost}." if won > lost else f" The score is {won}-{lost}."
    so_far = standing if won + lost else ""
    return (
        f"{rule} ratings: A {a}, B {b}. They play best of {shown['games']}, no draws.{so_far} "
        "Will A win?"
    )


def series_win(game: float, need: int, other_needs: int) -> float:
    """Return the chance to win `need` games before the other wins `other_needs`.

    Args:
        game: chance to win one game.
        need: games still to win, at least 1.
        other_needs: games the other still has to win, at least 1.
    """
    return game**need * sum(
        comb(need - 1 + lost, lost) * (1.0 - game) ** lost for lost in range(other_needs)
    )


def _predictive(shown: Shown) -> Forecast:
    a, b = shown["ratings"]
    won, lost = shown["score"]
    to_win = shown["games"] // 2 + 1
    return yes(series_win(1.0 / (1.0 + 10.0 ** ((b - a) / 400.0)), to_win - won, to_win - lost))


def _latent(shown: Shown, _rng: np.random.Generator) -> Forecast:
    return _predictive(shown)


FAMILY = Family("contest", _draw, _text, _predictive, _latent, _predictive)
