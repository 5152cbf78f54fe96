"""Best of n between two players with Elo ratings; the odds of a game are 10^(difference / 400)."""

from math import comb

import numpy as np

from tokengym.envs.forecasting.families.base import Family, Knobs, Shown, yes
from tokengym.rewards.scoring import Forecast

_MEAN, _SPREAD = 1600, 300
_LOWEST, _HIGHEST = 800, 2400
_GAMES = {1: (1, 3, 5), 2: (3, 5, 7), 3: (3, 5, 7, 9)}


def _draw(rng: np.random.Generator, knobs: Knobs) -> Shown:
    games = int(rng.choice(_GAMES[knobs.size]))
    a, b = np.clip(rng.normal(_MEAN, _SPREAD, size=2), _LOWEST, _HIGHEST).round().astype(int)
    later = None
    if knobs.staged:
        # At most games // 2 games are played by then, so the series is never over.
        won = int(rng.binomial(games // 2, game_chance(int(a), int(b))))
        later = (won, games // 2 - won)
    score = (0, 0)
    if knobs.size > 1 and not knobs.staged:
        score = tuple(rng.integers(0, games // 2 + 1, size=2).tolist())
    return {
        "ratings": (a, b),
        "games": games,
        "score": score,
        "later": later,
        "stated": knobs.stated,
    }


def _text(shown: Shown) -> str:
    a, b = shown["ratings"]
    scale = "Elo" if shown["stated"] else "Skill"
    won, lost = shown["score"]
    standing = f" A has won {won}, B {lost}." if won + lost else ""
    return (
        f"{scale} ratings: A {a}, B {b}. They play best of {shown['games']}, no draws.{standing} "
        "Will A win?"
    )


def _news(shown: Shown) -> str:
    won, lost = shown["later"]
    return f"By now A has won {won}, B {lost}."


def game_chance(rating: int, other: int) -> float:
    """Return the chance to win one game."""
    return float(1.0 / (1.0 + 10.0 ** ((other - rating) / 400.0)))


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


def _predictive(shown: Shown) -> Forecast:
    won, lost = shown["score"] if shown["later"] is None else shown["later"]
    to_win = shown["games"] // 2 + 1
    return yes(series_chance(game_chance(*shown["ratings"]), to_win - won, to_win - lost))


def _latent(shown: Shown, _rng: np.random.Generator) -> Forecast:
    return _predictive(shown)


FAMILY = Family("contest", _draw, _text, _predictive, _latent, _predictive, news=_news)
