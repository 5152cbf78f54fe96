"""The rules: what is asked, how a reply is read, what it earns."""

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tokengym.envs import Grammar, Optimum, StopReason, Task, Turn, World, complaint, last_match

_ROLE = "cashier"
_PAYMENT = Grammar("PAY", r"PAY((?: [0-9]{1,3}){1,400})")


class Till(NamedTuple):
    """Data of an episode: the coins there are, the amount, and the fewest coins for it."""

    coins: tuple[int, ...]
    amount: int
    best: tuple[int, ...]


class ChangeWorld(World[Till]):
    """Pay an amount with as few coins as possible.

    Action:
        The last line that reads `PAY 41 23 7`.
    Reward:
        Half for the amount, less the share by which it is missed; half for thrift where it is met,
        the fewest coins over those paid. 0 for coins that do not exist and for malformed replies.

    Args:
        spec: the world's declaration.
        level: `small`.
    """

    expected_form: ClassVar[str] = "PAY 41 23 7"

    def optimum(self, task: Task) -> Mapping[str, Optimum]:
        """The fewest coins earn 1."""
        return {_ROLE: Optimum(1.0, exact=True)}

    def _draw(self, rng: np.random.Generator) -> Mapping[str, Any]:
        bounds = ((1, 2), (3, 10), (11, 31), (31, 61))
        coins = [rng.integers(low, high) for low, high in bounds]
        return {"coins": coins, "amount": rng.integers(50, 200)}

    def _solve(self, instance: Mapping[str, Any], rng: np.random.Generator) -> Mapping[str, Any]:
        best: list[list[int]] = [[]]
        for amount in range(1, instance["amount"] + 1):
            before = [[coin, *best[amount - coin]] for coin in instance["coins"] if coin <= amount]
            best.append(min(before, key=len))
        return {"best": best[-1]}

    @classmethod
    def _compile(cls, task: Task) -> Till:
        coins, amount = task.instance["coins"], task.instance["amount"]
        return Till(tuple(coins), int(amount), tuple(task.answer["best"]))

    def _begin(self, task: Task) -> Turn:
        coins = ", ".join(map(str, self.compiled.coins))
        return Turn(
            _ROLE,
            f"There are coins of {coins}. Pay {self.compiled.amount} with as few as you can. "
            f"End with a line like\n{self.expected_form}",
        )

    def _respond(self, text: str, complete: bool) -> Turn:
        match = last_match(_PAYMENT, text, complete=complete)
        if match is None:
            wrong = complaint(text, self.expected_form, _PAYMENT, complete=complete)
            nothing = {_ROLE: {"amount": 0.0, "thrift": 0.0}}
            return self._end(_ROLE, wrong, nothing, StopReason.MALFORMED, {"well_formed": 0.0})
        coins, amount, best = self.compiled
        paid = [int(coin) for coin in match[1].split()]
        known = set(paid) <= set(coins)
        missed = abs(sum(paid) - amount) / amount
        terms = {
            "amount": 0.5 * max(0.0, 1.0 - missed) if known else 0.0,
            "thrift": 0.5 * len(best) / len(paid) if known and not missed else 0.0,
        }
        return self._end(_ROLE, "", {_ROLE: terms}, StopReason.COMPLETED, {"well_formed": 1.0})
