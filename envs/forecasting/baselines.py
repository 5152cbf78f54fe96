"""Scripted forecasters. All but the oracle use only what the Turns show."""

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from tokengym.envs.core.turn import Turn
from tokengym.envs.core.world import World
from tokengym.envs.forecasting.families.base import yes
from tokengym.envs.forecasting.prompt import LETTERS
from tokengym.envs.forecasting.questions import Question
from tokengym.envs.forecasting.world import ForecastWorld
from tokengym.rewards.scoring import Forecast

_LOGIT_NOISE = 0.7
_SURE = 0.02
_EXACT = 6


def _null(_world: World, _turn: Turn, _rng: np.random.Generator) -> str:
    return ""


def _half(world: World, _turn: Turn, _rng: np.random.Generator) -> str:
    question = _question(world)
    return state(_uniform(question), question)


def _base_rate(world: World, _turn: Turn, _rng: np.random.Generator) -> str:
    return state(base_rate(_forecast_world(world)), _question(world))


def _random(world: World, _turn: Turn, rng: np.random.Generator) -> str:
    question = _question(world)
    return state(tuple(rng.dirichlet([1.0] * (question.options or 2)).tolist()), question)


def _empirical(world: World, _turn: Turn, _rng: np.random.Generator) -> str:
    question = _question(world)
    return state(_informed(world), question)


def _market(world: World, _turn: Turn, _rng: np.random.Generator) -> str:
    """State the market's price; where none is shown, say so and state the base rate."""
    question = _question(world)
    if question.price is None:
        rate = state(base_rate(_forecast_world(world)), question)
        return f"No price is shown (it needs data and show_prices), so the base rate.\n{rate}"
    return state(question.price, question)


def _noisy(world: World, _turn: Turn, rng: np.random.Generator) -> str:
    """State the empirical forecast with normal noise on its log-odds."""
    question = _question(world)
    shares = [
        max(_SURE, p) * math.exp(_LOGIT_NOISE * float(rng.normal()) / math.sqrt(2.0))
        for p in _informed(world)
    ]
    total = sum(shares)
    return state(tuple(share / total for share in shares), question)


def _oracle(world: World, _turn: Turn, _rng: np.random.Generator) -> str:
    question = _question(world)
    return state(_forecast_world(world).best_forecast, question, decimals=_EXACT)


def state(forecast: Forecast, question: Question, *, decimals: int = 3) -> str:
    """Write a forecast in the form that `question` asks for."""
    if not question.options:
        return f"Probability: {forecast[1]:.{decimals}f}"
    cells = zip(LETTERS, forecast, strict=False)
    return "Probabilities: " + ", ".join(f"{name} {p:.{decimals}f}" for name, p in cells)


def constants(world: World) -> Mapping[str, Callable[[World, Turn, np.random.Generator], str]]:
    """Return the policies that state k/40 for k = 1 to 39, whatever is asked, by what they say."""
    replies = [f"Probability: {share / 40:.3f}" for share in range(1, 40)]
    return {reply: _saying(reply) for reply in replies}


def base_rate(world: ForecastWorld) -> Forecast:
    """Return how often each outcome of the world's yes/no questions comes; uniform over several."""
    if world.question.options:
        return _uniform(world.question)
    return yes(world.base_rate)


def _saying(reply: str) -> Callable[[World, Turn, np.random.Generator], str]:
    return lambda world, turn, rng: reply


def _informed(world: World) -> Forecast:
    """Return what the shown numbers say, or the base rate where none are shown."""
    return _question(world).empirical or base_rate(_forecast_world(world))


def _uniform(question: Question) -> Forecast:
    count = question.options or 2
    return (1.0 / count,) * count


def _question(world: World) -> Question:
    return _forecast_world(world).question


def _forecast_world(world: World) -> ForecastWorld:
    if isinstance(world, ForecastWorld):
        return world
    raise TypeError(f"these policies play ForecastWorld, got {type(world).__name__}")


BASELINES: Mapping[str, Callable[[World, Turn, np.random.Generator], str]] = MappingProxyType(
    {
        "null": _null,
        "half": _half,
        "base_rate": _base_rate,
        "random": _random,
        "empirical": _empirical,
        "noisy": _noisy,
        "market": _market,
        "oracle": _oracle,
    }
)
