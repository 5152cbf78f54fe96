"""A world of one reply, small enough to break one contract of it at a time."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from tokengym.envs.core.grammar import Grammar, complaint, last_match
from tokengym.envs.core.optimum import Optimum
from tokengym.envs.core.play import Policy
from tokengym.envs.core.spec import WorldSpec
from tokengym.envs.core.task import Task
from tokengym.envs.core.turn import StopReason, Turn
from tokengym.envs.core.world import World
from tokengym.rewards.bounds import Range

SPEC = WorldSpec(
    id="test/Digits-v0",
    summary="Name the number shown.",
    entry_point="",
    baselines="tests.evaluation.digits:POLICIES",
    roles=("reader",),
    turn_limits={"only": 1},
    step_range={"reader": Range(0.0, 1.0)},
    return_range={"reader": Range(0.0, 1.0)},
)
_REPLY = Grammar(r"\d", r"\d{1,6}")


class Digits(World):
    """Shows a number below 10⁶ and pays 1 less the distance from it."""

    expected_form: ClassVar[str] = "123456"

    def optimum(self, task: Task) -> Mapping[str, Optimum]:
        return {"reader": Optimum(1.0, exact=True)}

    def worth(self, distance: float) -> float:
        return 1.0 - distance

    def malformed(self) -> float:
        return 0.0

    def _draw(self, rng: np.random.Generator) -> Mapping[str, Any]:
        return {"number": int(rng.integers(10**6))}

    def _solve(self, instance: Mapping[str, Any], rng: np.random.Generator) -> Mapping[str, Any]:
        return {}

    def _begin(self, task: Task) -> Turn:
        self.number = int(task.instance["number"])
        return Turn("reader", str(self.number))

    def _respond(self, text: str, complete: bool) -> Turn:
        match = last_match(_REPLY, text) if complete else None
        if match is None:
            said, value = complaint(text, self.expected_form, complete=complete), self.malformed()
        else:
            said, value = "", self.worth(abs(int(match[0]) - self.number) / 10**6)
        terms = {"reader": {"nearness": value}}
        return self._end("reader", said, terms, StopReason.COMPLETED, self.told(match is not None))

    def told(self, well_formed: bool) -> Mapping[str, float]:
        return {"well_formed": float(well_formed)}


def _number(world: World, turn: Turn, rng: np.random.Generator) -> str:
    return str(int(rng.integers(10**6)))


def _noisy(world: World, turn: Turn, rng: np.random.Generator) -> str:
    """Off by one of ten distances, each as likely as the others."""
    shown = int(turn.text)
    away = 10**4 * int(rng.integers(10))
    return str(shown + away if shown < 5 * 10**5 else shown - away)


POLICIES: Mapping[str, Policy] = {
    "null": lambda world, turn, rng: "no number",
    "random": _number,
    "noisy": _noisy,
    "oracle": lambda world, turn, rng: turn.text,
}
