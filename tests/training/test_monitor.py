"""Laws of watching a run: each completed step once, torn lines passed over, collapse seen."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokengym.agents.training.monitor import COLLAPSE_STEPS, StepLog, StepRow, find_collapse


def line(step: int, reward: float = 0.5, uniform: float = 0.0, malformed: float = 0.0) -> str:
    return json.dumps(
        {
            "step": step,
            "env/all/reward/total": reward,
            "env/all/reward_uniform_group_rate": uniform,
            "env/all/malformed": malformed,
            "env/all/total_ob_tokens": 900,
            "env/all/total_ac_tokens": 100,
            "time/total": 2.0,
        }
    )


def row(step: int, *, dead: bool = False, malformed: float = 0.0) -> StepRow:
    return StepRow(step, 0.5, 1.0 if dead else 0.1, 0.0, malformed, 1.0, 1.0, {})


def test_a_file_that_grows_gives_each_step_once(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    log = StepLog(path)
    assert log.poll() == []
    path.write_text(line(0) + "\n" + line(1)[:20])
    assert [found.step for found in log.poll()] == [0]
    path.write_text(line(0) + "\n" + line(1) + "\n")
    assert [found.step for found in log.poll()] == [1]
    assert log.poll() == []
    assert log.rows[1].tokens == 1000


def test_a_step_done_again_after_a_resume_counts_once_the_last_time(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    torn = line(1)[:30]
    path.write_text("\n".join([line(0), line(1, 0.1), torn, line(1, 0.9), "{}", "[1]"]) + "\n")
    log = StepLog(path)
    log.poll()
    assert [(found.step, found.reward) for found in log.rows] == [(0, 0.5), (1, 0.9)]


@given(st.lists(st.booleans(), max_size=20))
def test_a_collapse_is_so_many_dead_steps_at_the_end(dead: list[bool]) -> None:
    rows = [row(step, dead=flag) for step, flag in enumerate(dead)]
    found = find_collapse(rows)
    run = 0
    for flag in reversed(dead):
        if not flag:
            break
        run += 1
    assert (found is not None) == (run >= COLLAPSE_STEPS)
    if found is not None:
        assert found.since == len(dead) - run


@pytest.mark.parametrize(("malformed", "words"), [(1.0, "form is lost"), (0.0, "no gradient left")])
def test_the_reason_says_what_was_lost(malformed: float, words: str) -> None:
    rows = [row(step, dead=True, malformed=malformed) for step in range(COLLAPSE_STEPS)]
    found = find_collapse(rows)
    assert found is not None
    assert words in found.reason


def test_where_the_loop_counts_live_groups_these_decide_and_not_the_returns() -> None:
    tied_but_taught = [row(step, dead=True) for step in range(COLLAPSE_STEPS)]
    taught = [found._replace(metrics={"groups/live": 1.0}) for found in tied_but_taught]
    assert find_collapse(tied_but_taught) is not None
    assert find_collapse(taught) is None
    noise = [row(step)._replace(metrics={"groups/live": 0.0}) for step in range(COLLAPSE_STEPS)]
    assert find_collapse(noise) is not None
