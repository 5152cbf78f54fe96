"""The rules: digits are shown, noise follows, and the last turn asks for the digits."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from tokengym.envs import (
    Grammar,
    Optimum,
    OptionError,
    StopReason,
    Task,
    Turn,
    World,
    WorldSpec,
    complaint,
    last_match,
)

_ROLE = "memory"
NEXT = "NEXT"
_GOING_ON = Grammar(NEXT, NEXT)
_RECALLED = Grammar("RECALL", r"RECALL ([0-9](?: [0-9]){0,19})")
_NOISE = {"one": 1, "four": 4}
"""Turns of distraction, by level."""


class Memory(NamedTuple):
    """Data of an episode: the digits to remember, and those of every turn of distraction."""

    digits: tuple[int, ...]
    noise: tuple[tuple[int, ...], ...]


class RecallWorld(World[Memory]):
    """Recall digits after turns of distraction.

    Action:
        `NEXT`, and in the last turn `RECALL 4 7 1`.
    Reward:
        In the last turn alone. `bits="many"`: the share of the digits that are right in their
        places. `bits="one"`: 1 if all are, else 0. 0 for a malformed reply. As the digits are shown
        and repeating them earns 1, the optimum is exact by construction.

    Args:
        spec: the world's declaration.
        level: `one` or `four` turns of distraction.
        bits: how much the reward says of each episode.

    Raises:
        OptionError: if `bits` is neither.
    """

    digits: ClassVar[int] = 3
    expected_form: ClassVar[str] = "RECALL 4 7 1"

    def __init__(
        self,
        spec: WorldSpec,
        level: str | None = None,
        *,
        bits: Literal["one", "many"] = "many",
        prompt: str = "full",
    ) -> None:
        super().__init__(spec, level, prompt=prompt)
        if bits not in ("one", "many"):
            raise OptionError(f"bits must be one or many, got {bits!r}")
        self._bits = bits
        self._passed = 0

    def optimum(self, task: Task) -> Mapping[str, Optimum]:
        """Repeating the digits earns 1."""
        return {_ROLE: Optimum(1.0, exact=True)}

    def _scoring_options(self) -> Mapping[str, Any]:
        return {} if self._bits == "many" else {"bits": self._bits}

    def _draw(self, rng: np.random.Generator) -> Mapping[str, Any]:
        noise = rng.integers(10, size=(_NOISE[self.level], self.digits))
        return {"digits": rng.integers(10, size=self.digits), "noise": noise}

    def _solve(self, instance: Mapping[str, Any], rng: np.random.Generator) -> Mapping[str, Any]:
        return {"digits": instance["digits"]}

    @classmethod
    def _compile(cls, task: Task) -> Memory:
        digits, noise = task.instance["digits"], task.instance["noise"]
        return Memory(tuple(digits), tuple(tuple(turn) for turn in noise))

    def _begin(self, task: Task) -> Turn:
        self._passed = 0
        return Turn(_ROLE, f"Remember {_spelt(self.compiled.digits)}. Reply {NEXT}")

    def _respond(self, text: str, complete: bool) -> Turn:
        grammar = _GOING_ON if self._passed <= len(self.compiled.noise) else _RECALLED
        form = NEXT if grammar is _GOING_ON else self.expected_form
        match = last_match(grammar, text, complete=complete)
        wrong = "" if match else complaint(text, form, grammar, complete=complete)
        if grammar is _RECALLED:
            return self._recall(match[1] if match else "", wrong)
        self._passed += 1
        faults = {"well_formed": float(match is not None)}
        said = f"{wrong} " if wrong else ""
        if self._passed <= len(self.compiled.noise):
            noise = _spelt(self.compiled.noise[self._passed - 1])
            return Turn(_ROLE, f"{said}Forget {noise}. Reply {NEXT}", metrics=faults)
        ask = f"{said}What was to be remembered? Reply like\n{self.expected_form}"
        return Turn(_ROLE, ask, metrics=faults)

    def _recall(self, said: str, wrong: str) -> Turn:
        if wrong:
            ended = {"well_formed": 0.0, "digits": 0.0}
            return self._end(_ROLE, wrong, {_ROLE: {"recall": 0.0}}, StopReason.MALFORMED, ended)
        known = self.compiled.digits
        stated = [int(digit) for digit in said.split()]
        right = sum(map(int.__eq__, stated, known)) / max(len(known), len(stated))
        paid = right if self._bits == "many" else float(right == 1.0)
        ended = {"well_formed": 1.0, "digits": right}
        return self._end(_ROLE, "", {_ROLE: {"recall": paid}}, StopReason.COMPLETED, ended)


def _spelt(digits: tuple[int, ...]) -> str:
    return " ".join(map(str, digits))
