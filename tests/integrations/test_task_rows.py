"""Rows of data name Tasks for other trainers."""

import json

import pytest

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


def test_tools_as_text_survive_a_table_of_datasets() -> None:
    datasets = pytest.importorskip("datasets")
    (written,) = rows = list(task_rows("forecast:desk", "train", 1))
    (read,) = datasets.Dataset.from_list(rows)
    declared = written["responses_create_params"]["tools"]
    assert read["responses_create_params"]["tools"] != declared  # which is why there is text
    assert json.loads(read["tools"]) == declared
