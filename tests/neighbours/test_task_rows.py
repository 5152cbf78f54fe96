"""Rows of data name Tasks for other trainers."""

from tokengym.agents.adapters.rows import task_rows
from tokengym.envs import Rollouts


def test_rows_of_tasks_name_them_for_skyrl_and_verl() -> None:
    rollouts = Rollouts("energy:small")
    rows = list(task_rows("energy:small", "train", 2))
    for index, row in enumerate(rows):
        task = rollouts.world.task("train", index)
        assert row["prompt"] == [{"role": "user", "content": rollouts.start(task).text}]
        assert {"split": row["split"], "index": row["index"]} == row["extra_info"]
        assert row["reward_model"]["ground_truth"] == task.fingerprint
    assert [row["index"] for row in rows] == [0, 1]
