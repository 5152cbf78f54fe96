"""A world made to show what drivers lose: both roles are paid at every Turn, the opening too.

Its splits differ in size, its second role speaks first on every other Task, texts name every turn,
and its scripted policies draw at random. What it pays depends on who said what, and when.
"""

from collections.abc import Mapping
from zlib import crc32

import numpy as np

from tokengym.envs import Policy, StopReason, Task, Turn, World, WorldSpec
from tokengym.envs.core.optimum import Optimum
from tokengym.rewards.bounds import GRID, Range

SIZES = {"train": 7, "validation": 3, "test": 2}
ROLES = ("buyer", "seller")
_RANGE = Range(-1.0, 1.0)

SPEC = WorldSpec(
    id="test/Bargain-v0",
    summary="Two roles haggle, and each is paid a little whatever happens.",
    entry_point=f"{__name__}:Bargain",
    baselines=f"{__name__}:BASELINES",
    roles=ROLES,
    turn_limits={"short": 2, "long": 4},
    step_range=dict.fromkeys(ROLES, _RANGE),
    return_range=dict.fromkeys(ROLES, Range(-9.0, 9.0)),
)


class Bargain(World[Task]):
    """See the module; a reply that is empty or cut off is malformed."""

    expected_form = "OFFER 7"

    def optimum(self, task: Task) -> Mapping[str, Optimum]:
        return {role: Optimum(9.0, exact=False) for role in ROLES}

    def _sizes(self) -> Mapping[str, int]:
        return SIZES

    def _task_of_record(self, split: str, index: int) -> Task:
        return self._new_task(split, index, {"split": split, "index": index}, {})

    def _draw(self, rng: np.random.Generator) -> Mapping[str, int]:
        raise NotImplementedError("Tasks are counted")

    def _solve(self, instance: Mapping[str, int], rng: np.random.Generator) -> Mapping[str, int]:
        raise NotImplementedError("Tasks are counted")

    def _begin(self, task: Task) -> Turn:
        self._said: list[str] = []
        self._first = task.index % 2
        rewards, terms = self._pay(self._terms("the opening"), final=False)
        return Turn(ROLES[self._first], self._text(), rewards, terms)

    def _respond(self, text: str, complete: bool) -> Turn:
        good = complete and bool(text.strip())
        self._said.append(text if good else "(nothing)")
        metrics = {"well_formed": float(good), "replies": float(len(self._said))}
        terms = self._terms("\n".join(self._said))
        role = ROLES[(self._first + len(self._said)) % 2]
        if len(self._said) == 2 * self.turn_limit:
            last = ROLES[(self._first + len(self._said) - 1) % 2]
            return self._end(last, "The bargain is over.", terms, StopReason.COMPLETED, metrics)
        rewards, rounded = self._pay(terms, final=False)
        return Turn(role, self._text(), rewards, rounded, metrics=metrics)

    def _text(self) -> str:
        return f"Reply {len(self._said)} of {self.compiled.fingerprint[:6]}: {self._said[-1:]}"

    def _terms(self, said: str) -> Mapping[str, Mapping[str, float]]:
        """Return two parts of a reward for each role, by all that was said so far."""
        key = f"{self.compiled.fingerprint} {len(self._said)} {said}"
        parts = {name: crc32(f"{name} {key}".encode()) for role in ROLES for name in _PARTS[role]}
        return {
            role: {name: (parts[name] % GRID) / GRID / 2 - 0.25 for name in _PARTS[role]}
            for role in ROLES
        }


_PARTS = {role: (f"{role}'s share", f"{role}'s luck") for role in ROLES}


def _offer(world: World, turn: Turn, rng: np.random.Generator) -> str:
    return f"OFFER {int(rng.integers(1_000_000))}"


def _silent(world: World, turn: Turn, rng: np.random.Generator) -> str:
    return ""


BASELINES: Mapping[str, Policy] = {"null": _silent, "random": _offer, "oracle": _offer}
