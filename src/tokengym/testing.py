"""Test a world or a reward of your own: contract tests and Hypothesis strategies.

`check_world` checks a world against each of `LAWS`, `check_reward` does the same for a
reward function. Both raise `LawBroken`, an AssertionError that begins with the broken law. They
need the extra `tokengym[testing]`, but no test runner.
"""

from tokengym.agents.check.laws import LAWS, check_world, laws
from tokengym.envs.testing.law import Law, LawBroken, TurnLaw
from tokengym.envs.testing.reward import RewardCheck, RewardLaw, check_reward
from tokengym.envs.testing.strategies import replies, tasks, token_arrays
from tokengym.envs.testing.subject import Subject

__all__ = [
    "LAWS",
    "Law",
    "LawBroken",
    "RewardCheck",
    "RewardLaw",
    "Subject",
    "TurnLaw",
    "check_reward",
    "check_world",
    "laws",
    "replies",
    "tasks",
    "token_arrays",
]
