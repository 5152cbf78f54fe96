"""Every law of `tokengym.testing`, for every (world, level) there is, and what only ours keep."""

import json
import subprocess
import sys
from functools import cache

import pytest

from tests.contract import grammars
from tokengym.envs.registry import spec, specs
from tokengym.testing import LAWS, Law, Subject

CASES = [(row.id, level) for row in specs().values() for level in row.levels]

FIRST = [(row.id, row.levels[0]) for row in specs().values()]
OF_EACH_GRAMMAR = [(spec(world).id, level) for world, level in grammars.OF_EACH_GRAMMAR]
OF_REPLIES = {
    *("no_replies_break_an_episode", "repeating_the_prompt_breaks_nothing"),
    "replies_cut_before_their_end_are_malformed",
}
"""Laws of what a grammar reads."""
OF_EVERY_WORLD = {
    *("an_index_is_one_task_in_every_process", "unknown_splits_are_refused"),
    *("wrong_indices_are_refused", "foreign_tasks_are_refused"),
    *("replies_need_an_episode", "other_roles_are_refused"),
}
"""Laws of what all levels share: the first one of a world tells."""
NEVER_LEFT_OUT = {
    *("an_index_is_one_task", "optima_lie_in_the_range"),
    *("tasks_survive_json_and_pickle", "the_answer_is_not_shown"),
}
"""Laws that the quick tests check at every level; the others only at a world's first."""
LARGER = {
    *(("tokengym/Warehouse-v1", f"pick{size}") for size in ("", "_online")),
    ("tokengym/Warehouse-v1", "stock_large"),
    ("tokengym/Energy-v2", "day"),
}
"""Levels whose env differs from another's in size alone; Gymnasium's checker draws many Tasks."""


@cache  # the laws of one case share its Tasks
def subject(case: tuple[str, str]) -> Subject:
    """A case, with fewer Tasks for means where they take long to solve."""
    return Subject(case, tasks=12 if case in FIRST else 5)


def cases_of(law: Law) -> list[tuple[str, str]]:
    """The levels at which a law is checked: every one, unless that costs much and shows little."""
    if not law.per_level or law.name in OF_EVERY_WORLD:
        return FIRST
    if law.name in OF_REPLIES:
        return OF_EACH_GRAMMAR
    if law.name == "gymnasium_accepts_the_env":
        return [case for case in CASES if case not in LARGER]
    return CASES


def named(case: object) -> str:
    if isinstance(case, Law):
        return case.name
    assert isinstance(case, tuple)
    return f"{case[0].rpartition('/')[2]}-{case[1]}"


def marks(law: Law, case: tuple[str, str]) -> list[pytest.MarkDecorator]:
    if law.name in NEVER_LEFT_OUT:
        return [pytest.mark.every_level]
    return [] if case in FIRST else [pytest.mark.nightly]


@pytest.mark.parametrize(
    ("law", "case"),
    # By level: a process that runs a stretch of them draws the Tasks of few levels.
    [
        pytest.param(law, case, marks=marks(law, case))
        for case in CASES
        for law in LAWS
        if case in cases_of(law)
    ],
    ids=named,
)
def test_every_level_keeps_every_law(law: Law, case: tuple[str, str]) -> None:
    assert law.applies(subject(case))
    law.check(subject(case))


@pytest.mark.nightly
def test_every_process_draws_the_same_tasks_at_every_level() -> None:
    code = (
        "import json, sys, tokengym;"
        "cases = json.load(sys.stdin);"
        "print([tokengym.make_world(*case).task('test', 1).fingerprint for case in cases])"
    )
    drawn = [subject(case).task("test", 1).fingerprint for case in CASES]
    shown = subprocess.run(
        [sys.executable, "-c", code], input=json.dumps(CASES), capture_output=True, text=True
    )
    assert shown.stdout.strip() == str(drawn), shown.stderr


@pytest.mark.nightly
def test_importing_the_suite_loads_no_heavy_library() -> None:
    code = (
        "import sys, tokengym.envs, tokengym.rewards, tokengym.agents;"
        "heavy = {'scipy', 'pettingzoo', 'torch', 'tinker', 'transformers', 'matplotlib'};"
        "heavy.add('hypothesis');"
        "print(sorted(heavy & set(sys.modules)))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert shown.stdout.strip() == "[]"
