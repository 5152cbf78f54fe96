"""Every law of `tokengym.testing`, for every (world, level) there is, and what only ours keep."""

import subprocess
import sys
from functools import cache
from itertools import pairwise

import pytest

from tokengym.envs.core.rollout import Policy, play
from tokengym.envs.registry import specs
from tokengym.testing import LAWS, Law, Subject

CASES = [(row.id, level) for row in specs().values() for level in row.levels]
BAD_REPLIES = [
    "",
    "\n\n\n",
    "\x00\x01\x7f",
    "\u202e\u2066 drow \u2069",
    "9" * 5000,
    "Probability: " + "1" * 400,
    "TRIP " + "O1," * 500,
    "BATTERY 1e999",
    "LABEL",
    "?" * 50,
    "a" * 100_000,
]

# Drawn Tasks are kept: the laws of one case share them.
subject = cache(Subject)


def named(case: object) -> str:
    if isinstance(case, Law):
        return case.name
    assert isinstance(case, tuple)
    return f"{case[0].rpartition('/')[2]}-{case[1]}"


@pytest.mark.parametrize("case", CASES, ids=named)
@pytest.mark.parametrize("law", [law for law in LAWS if law.per_level], ids=named)
def test_every_level_keeps_every_law(law: Law, case: tuple[str, str]) -> None:
    assert law.applies(subject(case))
    law.check(subject(case))


@pytest.mark.parametrize("case", [(row.id, row.levels[0]) for row in specs().values()], ids=named)
@pytest.mark.parametrize("law", [law for law in LAWS if not law.per_level], ids=named)
def test_every_world_keeps_the_costly_laws(law: Law, case: tuple[str, str]) -> None:
    assert law.applies(subject(case))
    law.check(subject(case))


@pytest.mark.parametrize("case", CASES, ids=named)
def test_no_bad_reply_is_taken_for_a_good_one(case: tuple[str, str]) -> None:
    under_test = subject(case)
    world, role = under_test.make(), under_test.spec.roles[0]
    for task in under_test.tasks("train", 3):
        for reply in BAD_REPLIES:
            record = play(world, task, saying(reply), under_test.rng())
            for asked, answer in pairwise(record.turns):
                assert asked.role != role or not answer.metrics["well_formed"]


def saying(reply: str) -> Policy:
    return lambda world, turn, rng: reply


def test_importing_the_suite_loads_no_heavy_library() -> None:
    code = (
        "import sys, tokengym.envs, tokengym.rewards, tokengym.agents;"
        "heavy = {'scipy', 'pettingzoo', 'torch', 'tinker', 'transformers', 'matplotlib'};"
        "heavy.add('hypothesis');"
        "print(sorted(heavy & set(sys.modules)))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert shown.stdout.strip() == "[]"
