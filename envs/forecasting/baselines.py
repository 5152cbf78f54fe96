"""Scripted forecasters. All but the oracle use only what the Turns show."""

import math
from collections.abc import Callable, Mapping
from functools import cache
from statistics import fmean
from types import MappingProxyType

import numpy as np

from tokengym.envs.core.seeding import generator
from tokengym.envs.core.turn import Turn
from tokengym.envs.core.world import World
from tokengym.envs.forecasting.levels import LEVELS
from tokengym.envs.forecasting.questions import draw, predictive
from tokengym.envs.forecasting.world import ForecastWorld

_RECORD = 2000
_LOGIT_NOISE = 0.7
_SURE = 0.02


def _null(_world: World, _turn: Turn, _rng: np.random.Generator) -> str:
    return ""


def _half(_world: World, _turn: Turn, _rng: np.random.Generator) -> str:
    return state(0.5)


def _base_rate(world: World, _turn: Turn, _rng: np.random.Generator) -> str:
    return state(base_rate(_forecast_world(world)))


def _random(_world: World, _turn: Turn, rng: np.random.Generator) -> str:
    return state(float(rng.random()))


def _empirical(world: World, _turn: Turn, _rng: np.random.Generator) -> str:
    return state(_forecast_world(world).question.empirical[1])


def _noisy(world: World, _turn: Turn, rng: np.random.Generator) -> str:
    sure = min(1.0 - _SURE, max(_SURE, _forecast_world(world).question.empirical[1]))
    logit = math.log(sure / (1.0 - sure)) + _LOGIT_NOISE * float(rng.normal())
    return state(1.0 / (1.0 + math.exp(-logit)))


def _oracle(world: World, _turn: Turn, _rng: np.random.Generator) -> str:
    return state(_forecast_world(world).question.predictive[1], decimals=6)


def state(probability: float, decimals: int = 3) -> str:
    """Write a forecast in the world's form."""
    return f"Probability: {probability:.{decimals}f}"


def base_rate(world: ForecastWorld) -> float:
    """Return how often the questions of a world like `world` come true."""
    return _share_of_yes(world.level, world.families)


@cache
def _share_of_yes(level: str, families: tuple[str, ...]) -> float:
    """Return the mean probability of yes over a long record of questions of their own."""
    rng = generator("forecasting base rate", level, *families)
    asked = (draw(rng, families, LEVELS[level]) for _ in range(_RECORD))
    return fmean(predictive(instance)[1] for instance in asked)


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
        "oracle": _oracle,
    }
)
