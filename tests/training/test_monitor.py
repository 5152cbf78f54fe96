"""Laws of watching a run: each completed step once, torn lines passed over, replies counted."""

import json
from pathlib import Path
from typing import Any

from tinker_cookbook.stores.storage import storage_from_uri
from tinker_cookbook.stores.training_store import TrainingRunStore

from tokengym.agents.training.monitor import StepLog
from tokengym.agents.training.replies import ROLLOUTS, ReplyStatistics


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


def test_what_a_step_replied_is_read_from_its_rollouts(tmp_path: Path) -> None:
    """From the file that the cookbook writes, torn lines passed over."""
    groups = [["Probability: 0.1", "Probability: 0.1 "], ["Probability: 0.1", "I think"]]
    records: list[dict[str, Any]] = [
        {"group_idx": group, "steps": [{"logs": {"reply": reply}}, {"logs": {}}]}
        for group, replies in enumerate(groups)
        for reply in replies
    ]
    TrainingRunStore(storage_from_uri(str(tmp_path))).write_rollouts(0, records, ROLLOUTS)
    (file,) = tmp_path.rglob("*rollout*.jsonl")
    with file.open("a") as torn:
        torn.write('{"group_idx": 3, "st')
    (tmp_path / "metrics.jsonl").write_text(line(0) + "\n" + line(1) + "\n")
    log = StepLog(tmp_path / "metrics.jsonl")
    log.poll()
    first, second = log.rows
    assert first.replies == ReplyStatistics(4, 2, "Probability: 0.1", 0.75, 2)
    assert not first.one_reply
    assert second.replies is None
    assert second.commonest_share is None
