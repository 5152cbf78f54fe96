"""Scripted memories. All but the oracle use only what the Turns show."""

import re
from collections.abc import Mapping

import numpy as np

from tokengym.envs import Policy, Turn, World
from tokengym_recall.world import NEXT, RecallWorld


def null(world: World, turn: Turn, rng: np.random.Generator) -> str:
    """Say nothing."""
    return ""


def random(world: World, turn: Turn, rng: np.random.Generator) -> str:
    """Know the form, and no digit."""
    return _reply(turn, rng.integers(10, size=RecallWorld.digits).tolist())


def oracle(world: World, turn: Turn, rng: np.random.Generator) -> str:
    """Repeat the digits, as the Task's answer has them."""
    return _reply(turn, list(RecallWorld.cast(world).compiled.digits))


def _reply(turn: Turn, digits: list[int]) -> str:
    asked = re.search(r"^RECALL ", turn.text, re.MULTILINE)
    return f"RECALL {' '.join(map(str, digits))}" if asked else NEXT


BASELINES: Mapping[str, Policy] = {"null": null, "random": random, "oracle": oracle}
