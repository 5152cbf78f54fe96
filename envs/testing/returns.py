"""Laws of returns: what the optimum means, and that nothing beats it or the oracle."""

import math
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from tokengym.envs.core.task import Task
from tokengym.envs.testing.law import Violation, law, require
from tokengym.envs.testing.play import play
from tokengym.envs.testing.subject import Subject
from tokengym.rewards.bounds import GRID
from tokengym.rewards.chance import chance_of_mean

Floats = npt.NDArray[np.float64]

_DEVIATIONS = 2.5
"""Standard errors by which a policy may lead."""
_AGAIN = 5
"""How many times as many Tasks decide."""
_CHANCE = 1e-4
"""What is less likely than this is not chance."""


@law()
def optima_lie_in_the_range(subject: Subject) -> None:
    """The optimum of every role lies in the declared range of its return."""
    for task in subject.tasks("validation", 2):
        optimum = subject.make().optimum(task)
        require(set(optimum) <= set(subject.spec.roles), f"it has the roles {[*optimum]}", task)
        for role, (value, _) in optimum.items():
            declared = subject.spec.return_range[role]
            slack = _rounding(subject)
            inside = declared.low - slack <= value <= declared.high + slack
            require(inside, f"{role!r}: {value!r} is not in {declared}", task)
        require(subject.make().optimum(task) == optimum, "it changes when computed again", task)


@law()
def no_policy_beats_the_oracle_or_the_optimum(subject: Subject) -> None:
    """No scripted policy earns more than the oracle or the optimum, beyond chance.

    A policy that seems to is compared again on more Tasks first.
    """
    try:
        _compare(subject, subject.tasks_of_means)
    except Violation:
        _compare(subject, _AGAIN * subject.tasks_of_means)


def _compare(subject: Subject, count: int) -> None:
    """Compare what every policy, the oracle and the optimum earn on `count` Tasks."""
    role, tasks = subject.spec.roles[0], subject.tasks("validation", count)
    if len(tasks) < 2:
        return
    earned = {
        name: np.array(
            [
                play(subject.make(), task, policy, subject.rng(number)).returns[role]
                for number, task in enumerate(tasks)
            ]
        )
        for name, policy in subject.policies.items()
    }
    for name, earned_T in earned.items() if "oracle" in earned else ():
        lead_T = earned["oracle"] - earned_T
        reach = lead_T.mean() + _DEVIATIONS * lead_T.std(ddof=1) / math.sqrt(len(tasks))
        require(reach >= 0, f"{name!r} earned {-lead_T.mean():.6f} more than the oracle on average")
    limits = [subject.make().optimum(task).get(role) for task in tasks]
    limit_T = np.array([limit.value for limit in limits if limit is not None])
    if len(limit_T) == len(tasks):
        _compare_with_optimum(subject, tasks, earned, limit_T)


def _compare_with_optimum(
    subject: Subject, tasks: list[Task], earned: Mapping[str, Floats], limit_T: Floats
) -> None:
    """Compare Task by Task where the oracle leaves nothing to chance, else means."""
    rounding = _rounding(subject)
    oracle_T = earned.get("oracle", np.full_like(limit_T, -np.inf))
    certain = bool((np.abs(oracle_T - limit_T) <= rounding).all())
    declared = subject.spec.return_range[subject.spec.roles[0]]
    for name, earned_T in earned.items():
        excess_T = earned_T - limit_T
        worst = int(excess_T.argmax())
        detail = f"{name!r} earned {excess_T[worst]:.6f} more than the optimum"
        require(not certain or excess_T[worst] <= rounding, detail, tasks[worst])
        if excess_T.mean() > rounding:
            means = float(earned_T.mean()), float(limit_T.mean())
            chance = chance_of_mean(*means, declared, len(tasks))
            detail = f"{name!r} earned {excess_T.mean():.6f} more than the optimum on average"
            require(chance >= _CHANCE, detail)


def _rounding(subject: Subject) -> float:
    """Most that rounding to the grid may add to a return."""
    return subject.make().turn_limit / GRID
