"""Scripted cashiers. All but the oracle use only what the Turn shows."""

import re
from collections.abc import Mapping

import numpy as np

from tokengym.envs import Policy, Turn, World
from tokengym_change.world import ChangeWorld


def null(world: World, turn: Turn, rng: np.random.Generator) -> str:
    """Say nothing."""
    return ""


def random(world: World, turn: Turn, rng: np.random.Generator) -> str:
    """Put down coins at random until the amount is paid."""
    *coins, left = map(int, re.findall(r"\d+", turn.text.partition("End")[0]))
    paid: list[int] = []
    while left:
        paid.append(int(rng.choice([coin for coin in coins if coin <= left])))
        left -= paid[-1]
    return _reply(paid)


def oracle(world: World, turn: Turn, rng: np.random.Generator) -> str:
    """Pay with the fewest coins, as the Task's answer has them."""
    return _reply(list(ChangeWorld.cast(world).compiled.best))


def _reply(coins: list[int]) -> str:
    return f"PAY {' '.join(map(str, coins))}"


BASELINES: Mapping[str, Policy] = {"null": null, "random": random, "oracle": oracle}
