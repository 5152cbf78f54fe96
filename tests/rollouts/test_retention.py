"""Laws of keeping training rollouts: a share of the groups, a bound in bytes, repeated steps."""

import pickle
from dataclasses import replace
from pathlib import Path

import pytest

from tokengym.agents.rollouts import (
    RolloutLog,
    RolloutOrigin,
    RolloutRecord,
    TrainRollouts,
    record_play,
)
from tokengym.envs import baselines, make_world
from tokengym.envs.core.play import play

GROUPS, SIZE, STEPS = 8, 2, 20


@pytest.fixture(scope="module")
def one() -> RolloutRecord:
    world = make_world("forecast")
    record = play(world, world.task("train", 0), baselines("forecast")["noisy"])
    return record_play(RolloutOrigin("train"), record, "forecaster")


def train(kept: TrainRollouts, one: RolloutRecord) -> list[int]:
    """Write all steps; returns how many groups of each were kept."""
    counts = []
    for step in range(kept.steps):
        origins = kept.origins(step, GROUPS)
        counts.append(len(origins))
        for origin in origins:
            group = [replace(one, origin=replace(origin, member=n)) for n in range(SIZE)]
            kept.write(step, group)
    return counts


def test_all_are_kept_where_there_is_room(tmp_path: Path, one: RolloutRecord) -> None:
    kept = TrainRollouts(str(tmp_path), 1.0, 2**28, STEPS, RolloutOrigin("train"))
    assert train(pickle.loads(pickle.dumps(kept)), one) == [GROUPS] * STEPS
    records = list(RolloutLog(tmp_path).read())
    assert len(records) == GROUPS * SIZE * STEPS
    assert {record.origin.kept for record in records} == {1.0}


def test_a_share_is_kept_and_said(tmp_path: Path, one: RolloutRecord) -> None:
    kept = TrainRollouts(str(tmp_path), 0.5, 2**28, STEPS, RolloutOrigin("train"))
    assert train(kept, one) == [GROUPS // 2] * STEPS
    assert {record.origin.kept for record in RolloutLog(tmp_path).read()} == {0.5}
    none = TrainRollouts(str(tmp_path / "none"), 0.0, 2**28, STEPS, RolloutOrigin("train"))
    assert train(none, one) == [0] * STEPS


def test_no_more_bytes_are_kept_than_allowed(tmp_path: Path, one: RolloutRecord) -> None:
    whole = len(one.to_json()) * GROUPS * SIZE * STEPS
    for part in (0.02, 0.1, 0.6):
        folder = tmp_path / str(part)
        kept = TrainRollouts(str(folder), 1.0, int(part * whole), STEPS, RolloutOrigin("train"))
        counts = train(kept, one)
        used = sum(segment.size for segment in RolloutLog(folder).segments())
        assert used <= part * whole
        if part >= 0.6:
            assert min(counts) >= 2
            assert used >= 0.5 * part * whole


def test_steps_that_are_done_again_begin_anew(tmp_path: Path, one: RolloutRecord) -> None:
    kept = TrainRollouts(str(tmp_path), 1.0, 2**28, 4, RolloutOrigin("train"))
    train(kept, one)
    RolloutLog(tmp_path).append("evaluation_before", [one])
    kept.discard_from(2)
    names = [segment.name for segment in RolloutLog(tmp_path).segments()]
    assert names == ["evaluation_before", "train_000000", "train_000001"]
