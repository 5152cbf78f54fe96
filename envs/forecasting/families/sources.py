"""People who report and predict: how often each is right is the same in every question.

No question states it. It can be learned only from many of them.
"""

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

RELIABILITY: Mapping[str, float] = MappingProxyType(
    {
        "Ada": 0.95,
        "Ben": 0.12,
        "Cleo": 0.8,
        "Dan": 0.7,
        "Eva": 0.9,
        "Finn": 0.15,
        "Gus": 0.65,
        "Hana": 0.9,
        "Ida": 0.85,
        "Jon": 0.3,
        "Kay": 0.75,
        "Leo": 0.6,
    }
)
"""The chance that what each says is true."""

_NAMES = tuple(RELIABILITY)


def draw_sources(rng: np.random.Generator, count: int) -> list[str]:
    """Draw the names of `count` different people."""
    return [_NAMES[i] for i in rng.choice(len(_NAMES), size=count, replace=False)]
