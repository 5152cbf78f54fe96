"""Laws of rollouts on disk: what is written is read, a kill loses one line, order is restored."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tokengym.agents.rollouts import (
    RolloutLog,
    RolloutOrigin,
    RolloutRecord,
    record_play,
    train_segment,
)
from tokengym.envs import baselines, make_world
from tokengym.envs.core.errors import DataError
from tokengym.envs.core.play import play


@pytest.fixture(scope="module")
def played() -> list[RolloutRecord]:
    """Three debates, as the challenger saw them."""
    world, policies = make_world("disruption"), baselines("disruption")
    sides = {"predictor": policies["noisy"], "challenger": policies["scripted"]}
    records = [play(world, world.task("test", index), sides, seed=index) for index in range(3)]
    origins = [RolloutOrigin("train", step=4, group=n, options={"label": "cd5"}) for n in range(3)]
    return [
        record_play(origin, one, "challenger") for origin, one in zip(origins, records, strict=True)
    ]


def test_a_record_survives_its_json(played: list[RolloutRecord], tmp_path: Path) -> None:
    log = RolloutLog(tmp_path)
    log.append(train_segment(4), played)
    assert list(log.read(train_segment(4))) == played
    assert [one.step for one in log.segments()] == [4]
    assert log.notes == []


def test_a_record_holds_all_replies_and_its_roles_rewards(played: list[RolloutRecord]) -> None:
    for record in played:
        assert {turn.role for turn in record.turns} == {"predictor", "challenger"}
        assert {turn.role for turn in record.own_turns} == {"challenger"}
        assert record.total == sum(turn.reward for turn in record.turns)
        for turn in record.turns:
            assert turn.reward == sum(turn.terms.values())


@pytest.mark.parametrize("lost", [1, 40, 2000])
def test_a_torn_last_line_is_left_out(
    played: list[RolloutRecord], tmp_path: Path, lost: int
) -> None:
    log = RolloutLog(tmp_path)
    log.append("evaluation_x", played[:2])
    path = log.path("evaluation_x")
    path.write_bytes(path.read_bytes()[:-lost])
    assert list(log.read()) == played[:1]
    assert log.notes == [f"{path}: the last line was incomplete and is skipped"]
    RolloutLog(tmp_path).append("evaluation_x", played[2:])  # another process, after a kill
    assert list(RolloutLog(tmp_path).read()) == [played[0], played[2]]


def test_sealing_orders_rollouts_and_keeps_the_last(
    played: list[RolloutRecord], tmp_path: Path
) -> None:
    log = RolloutLog(tmp_path)
    stale = replace(played[1], total=9.0)
    log.append(train_segment(4), [played[2], stale, played[0], played[1]])
    log.seal(train_segment(4))
    assert list(log.read()) == played
    log.append(train_segment(4), [replace(played[1], level="another")])  # is another's place
    log.seal(train_segment(4))
    assert len(list(log.read())) == len(played) + 1
    before = log.path(train_segment(4)).stat().st_ino
    log.seal(train_segment(4))
    assert log.path(train_segment(4)).stat().st_ino == before


def test_damage_within_a_file_and_another_schema_are_named(
    played: list[RolloutRecord], tmp_path: Path
) -> None:
    log = RolloutLog(tmp_path)
    log.append("evaluation_x", played)
    path = log.path("evaluation_x")
    lines = path.read_text().splitlines(keepends=True)
    path.write_text(lines[0] + lines[1][:50] + "\n" + lines[2])
    with pytest.raises(DataError, match=r"evaluation_x.jsonl, line 2"):
        list(log.read())
    data = json.loads(lines[0])
    path.write_text(json.dumps({**data, "schema": 2}) + "\n")
    with pytest.raises(DataError, match=r"schema 2; this version of Tokengym reads 1"):
        list(log.read())
    del data["turns"]
    path.write_text(json.dumps(data) + "\n")
    with pytest.raises(DataError, match=r"line 1: a rollout is damaged"):
        list(log.read())
