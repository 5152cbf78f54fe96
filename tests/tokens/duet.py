"""A world of two who speak in turn and outdo each other, for tests of episodes and of members."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from tokengym.envs.core.optimum import Optimum
from tokengym.envs.core.spec import WorldSpec
from tokengym.envs.core.task import Task
from tokengym.envs.core.turn import StopReason, Turn
from tokengym.envs.core.world import World
from tokengym.rewards.bounds import Range

ROLES = ("first", "second")
DUET = WorldSpec(
    id="test/Duet-v0",
    summary="Two speak in turn and hear each other; a reply longer than the one before it earns.",
    entry_point="",
    baselines="",
    roles=ROLES,
    turn_limits={"long": 6, "short": 3},
    step_range=dict.fromkeys(ROLES, Range(0.0, 1.0)),
    return_range=dict.fromkeys(ROLES, Range(0.0, 6.0)),
)


class Duet(World):
    """Two speak in turn, as often as the level's turn limit says; each reply is paid at once."""

    expected_form = "abc"

    def optimum(self, task: Task) -> Mapping[str, Optimum]:
        return dict.fromkeys(ROLES, Optimum(float(self.turn_limit), exact=True))

    def _draw(self, rng: np.random.Generator) -> Mapping[str, Any]:
        return {"greeting": f"Hello {rng.integers(1000)}."}

    def _solve(self, instance: Mapping[str, Any], rng: np.random.Generator) -> Mapping[str, Any]:
        return {}

    def _begin(self, task: Task) -> Turn:
        self._said = 0
        self._last = ""
        return Turn(ROLES[0], task.instance["greeting"])

    def _respond(self, text: str, complete: bool) -> Turn:
        speaker = ROLES[self._said % 2]
        terms = {speaker: {"longer": float(complete and len(text) > len(self._last))}}
        metrics = {"well_formed": 1.0, "length": float(len(text))}
        self._said += 1
        self._last = text
        if self._said == 2 * self.turn_limit:
            return self._end(speaker, "Over.", terms, StopReason.COMPLETED, metrics)
        rewards, rounded = self._pay(terms, final=False)
        told = f"It said: {text}"
        return Turn(ROLES[self._said % 2], told, rewards, rounded, metrics=metrics)
