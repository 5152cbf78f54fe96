"""The first Tasks of every level are pinned: Tasks that change need a new revision of the level.

`TOKENGYM_UPDATE_GOLDEN=1` adds new levels and those whose revision rose. It never rewrites a level
whose Tasks changed under the same revision.
"""

import json
import os
from dataclasses import replace

import pytest

from tests.contract.grammars import GOLDEN, LEVELS
from tokengym.envs.registry import make_world, spec

PINNED = GOLDEN.parent / "tasks.json"
COUNT = 10


def pinned_now(world: str, level: str) -> dict[str, object]:
    tasks = make_world(world, level).first_tasks("train", COUNT)
    return {
        "revision": spec(world).revisions.get(level, 0),
        "tasks": [f"{task.fingerprint} {task.answer_fingerprint}" for task in tasks],
    }


@pytest.mark.parametrize("case", LEVELS, ids="-".join)
def test_tasks_change_with_the_revision_alone(case: tuple[str, str]) -> None:
    world, level = case
    name, golden = f"{world}:{level}", json.loads(PINNED.read_text())
    now, before = pinned_now(world, level), golden.get(name)
    if os.environ.get("TOKENGYM_UPDATE_GOLDEN") and (
        before is None or before["revision"] != now["revision"]
    ):
        before = golden[name] = now
        PINNED.write_text(json.dumps(dict(sorted(golden.items())), indent=1) + "\n")
    assert before is not None, f"{name} is new: write its Tasks with TOKENGYM_UPDATE_GOLDEN=1"
    assert now["revision"] == before["revision"], f"{name} has a new revision: update {PINNED.name}"
    assert now == before, (
        f"the Tasks of {name} changed: add 1 to its entry in `revisions` of the world's spec, "
        "then write them with TOKENGYM_UPDATE_GOLDEN=1"
    )


def test_no_level_is_pinned_that_there_is_not() -> None:
    assert {f"{world}:{level}" for world, level in LEVELS} == set(json.loads(PINNED.read_text()))


def test_a_revision_has_tasks_of_its_own() -> None:
    world = make_world("forecast", "easy")
    first = world.task("train", 0)
    world.spec = replace(world.spec, revisions={"easy": 1})
    assert world.task("train", 0).fingerprint != first.fingerprint


def test_a_version_keeps_the_tasks_drawn_since_another() -> None:
    world = make_world("forecast", "easy")
    first = world.task("train", 0).instance_json
    world.spec = replace(world.spec, id=f"{world.spec.unversioned}-v9")
    assert world.task("train", 0).instance_json == first
    world.spec = replace(world.spec, drawn_since=None)
    assert world.task("train", 0).instance_json != first
