"""Laws of returns: what the optimum means, and that nothing beats it or the oracle."""

import math

import numpy as np

from tokengym.envs.testing.law import Violation, law, require
from tokengym.envs.testing.play import play
from tokengym.envs.testing.subject import Subject
from tokengym.rewards.bounds import GRID
from tokengym.rewards.chance import against_optimum

_DEVIATIONS = 2.5
"""Standard errors by which a policy may lead."""
_AGAIN = 5
"""How many times as many Tasks decide."""
_GROUPS, _GROUP = 6, 8


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

    The oracle attains an optimum that is stated to be exact. A policy that seems to earn more is
    compared again on more Tasks first.
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
                play(subject.make(), task, policy, seed=subject.key(number)).returns[role]
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
    known = [limit for limit in limits if limit is not None]
    if len(known) == len(tasks):
        limit_T, exact = np.array([limit.value for limit in known]), all(k.exact for k in known)
        declared, turns = subject.spec.return_range[role], subject.make().turn_limit
        wrong = against_optimum(earned, limit_T, declared, turns, exact=exact)
        require(not wrong, wrong)


@law(per_level=False)
def groups_of_rollouts_differ(subject: Subject) -> None:
    """Most groups of eight noisy, or else random, rollouts of a Task differ in return."""
    policy = subject.policies.get("noisy", subject.policies["random"])
    role, groups = subject.spec.roles[0], []
    for task in subject.tasks("validation", _GROUPS):
        keys = (subject.key(number) for number in range(_GROUP))
        played = (play(subject.make(), task, policy, seed=key) for key in keys)
        groups.append([episode.returns[role] for episode in played])
    dead = sum(len(set(group)) == 1 for group in groups)
    found = f"{dead} of {len(groups)} groups tie, a share of {subject.ties:g} may"
    require(dead <= subject.ties * len(groups), found)


def _rounding(subject: Subject) -> float:
    """Most that rounding to the grid may add to a return."""
    return subject.make().turn_limit / GRID
