"""A small sound world: two guesses at a temperature each. Broken ones are made of it."""

import re
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tokengym.envs.core.grammar import Grammar, complaint, last_match
from tokengym.envs.core.optimum import Optimum
from tokengym.envs.core.play import Policy
from tokengym.envs.core.spec import WorldSpec
from tokengym.envs.core.task import Task
from tokengym.envs.core.turn import StopReason, Turn
from tokengym.envs.core.world import World
from tokengym.rewards.bounds import Range

ROLE = "reader"
SPEC = WorldSpec(
    id="test/Thermometer-v0",
    summary="Guess two temperatures from what they are on average.",
    entry_point="tests.testing.thermometer:Thermometer",
    baselines="tests.testing.thermometer:POLICIES",
    roles=(ROLE,),
    turn_limits={"days": 2},
    step_range={ROLE: Range(0.0, 0.5)},
    return_range={ROLE: Range(0.0, 1.0)},
)
_GUESS = Grammar("GUESS", r"GUESS (-?\d{1,3})")


class Days(NamedTuple):
    averages: tuple[int, int]
    measured: tuple[int, int]


class Thermometer(World[Days]):
    """Shows an average, takes a guess, and pays half of how near it is to what was measured."""

    expected_form: ClassVar[str] = "GUESS 12"

    def optimum(self, task: Task) -> Mapping[str, Optimum]:
        return {ROLE: Optimum(1.0, exact=False)}

    @property
    def measured(self) -> int:
        """What was measured, for the oracle only."""
        return self._measured[self._day]

    @classmethod
    def _compile(cls, task: Task) -> Days:
        (first, second), (warm, cold) = task.instance["averages"], task.answer["measured"]
        return Days((int(first), int(second)), (int(warm), int(cold)))

    def _draw(self, rng: np.random.Generator) -> Mapping[str, Any]:
        return {"averages": rng.integers(-500, 500, 2)}

    def _solve(self, instance: Mapping[str, Any], rng: np.random.Generator) -> Mapping[str, Any]:
        return {"measured": [average + rng.integers(-90, 91) for average in instance["averages"]]}

    def _begin(self, task: Task) -> Turn:
        self._day = 0
        self._averages, self._measured = map(list, self.compiled)
        return Turn(ROLE, self._question())

    def _question(self) -> str:
        return f"On average {self._averages[self._day]}. Measured? Like {self.expected_form}"

    def _respond(self, text: str, complete: bool) -> Turn:
        match = last_match(_GUESS, text, complete=complete)
        terms = {ROLE: {"nearness": self._nearness(text, match)}}
        said = "" if match else complaint(text, self.expected_form, _GUESS, complete=complete)
        self._day += 1
        if self._day == len(self._averages):
            end = StopReason.COMPLETED
            return self._end(ROLE, said, terms, end, {"well_formed": float(match is not None)})
        rewards, rounded = self._pay(terms, final=False)
        metrics = {"well_formed": float(match is not None)}
        return Turn(ROLE, f"{said}\n{self._question()}", rewards, rounded, metrics=metrics)

    def _nearness(self, text: str, match: re.Match[str] | None) -> float:
        if match is None:
            return 0.0
        return 0.5 / (1.0 + abs(int(match[1]) - self.measured) / 100.0)


def _random(world: World, turn: Turn, rng: np.random.Generator) -> str:
    return f"GUESS {rng.integers(-500, 500)}"


def _oracle(world: World, turn: Turn, rng: np.random.Generator) -> str:
    assert isinstance(world, Thermometer)
    return f"GUESS {world.measured}"


POLICIES: Mapping[str, Policy] = {
    "null": lambda world, turn, rng: "",
    "random": _random,
    "oracle": _oracle,
}
