"""The texts of the games: in each folder the macros of `prompt_full` and `prompt_terse`.

A prompt has the macros `opening(session, examples)`, the first Turn of an episode, and `state(...)`
of what later Turns decide on. `lines.jinja` holds lines that both prompts share.
"""

from collections.abc import Container
from pathlib import Path

import numpy as np

from tokengym.envs.core.seeding import generator
from tokengym.envs.core.templates import templates

macros = templates(Path(__file__).parent)
"""From the name of a template, such as `stock/prompt_full`, to its macros."""


class ExampleReplies:
    """Made-up replies, different for every Task, with names that the Task does not have.

    Args:
        seed: the Task's fingerprint.
    """

    def __init__(self, seed: str) -> None:
        self._rng = generator("tokengym/Warehouse", "examples", seed)

    def trip(self, slots: Container[str]) -> str:
        """Return a trip of orders that do not exist, along slots that are none of `slots`."""
        count = int(self._rng.integers(1, 4))
        orders = [f"O{n}" for n in self._rng.choice(np.arange(40, 100), count, replace=False)]
        route: list[str] = []
        while len(route) < len(orders):
            slot = f"A{self._rng.integers(4, 100)}-{self._rng.integers(0, 100)}"
            if slot not in slots:
                route.append(slot)
        return f"TRIP {','.join(orders)}: {', '.join(route)}"

    def wait(self) -> str:
        """Return a wait."""
        return f"WAIT {self._rng.integers(1, 30)}"

    def quote(self) -> str:
        """Return a price that no customer pays."""
        return f"QUOTE {self._rng.integers(500, 1000)}"

    def reorder(self) -> str:
        """Return a reorder of an item that does not exist."""
        return f"REORDER S{self._rng.integers(20, 100)} {self._rng.integers(1, 30)}"
