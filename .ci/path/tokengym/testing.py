"""Test a world or a reward of your own: contract tests and Hypothesis strategies.

`check_world` checks every law that a world keeps, `check_reward` what a reward must keep; each
raises `LawBroken`, an AssertionError whose message is the law that was broken. Needs the extra
`tokengym[testing]`, and no test runner.
"""

from tokengym.envs.testing.check import LAWS, check_world, laws
from tokengym.envs.testing.law import Law, LawBroken, TurnLaw
from tokengym.envs.testing.reward import RewardCheck, check_reward
from tokengym.envs.testing.strategies import replies, tasks, token_arrays
from tokengym.envs.testing.subject import Subject

__all__ = [
    "LAWS",
    "Law",
    "LawBroken",
    "RewardCheck",
    "Subject",
    "TurnLaw",
    "check_reward",
    "check_world",
    "laws",
    "replies",
    "tasks",
    "token_arrays",
]
