"""Rollouts in the formats of other tools, and back through the reader of certificates."""

import json
from pathlib import Path

import pytest

from tests.rollouts.test_selection import BAD, GOOD, WORSE, rollout
from tokengym.agents.adapters.rows import task_rows
from tokengym.agents.certify.sources.records import RecordedRollouts
from tokengym.agents.rollouts.formats import prompts, results, write_rows
from tokengym.agents.rollouts.selection import demonstrations, preferences
from tokengym.envs import Rollouts


def test_each_task_is_prompted_with_once() -> None:
    other = rollout(["7"], 0.3, read=["How few?"], task="another")
    assert list(prompts([GOOD, BAD, other, WORSE])) == [
        {"prompt": [{"role": "user", "content": text}], "split": "train", "index": 0}
        for text in ("How many?", "How few?")
    ]


@pytest.mark.parametrize("name", ["results.jsonl", "results.parquet"])
def test_results_are_read_back_as_they_were_recorded(name: str, tmp_path: Path) -> None:
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow", reason="needs the extra `data`")
    records = [GOOD, BAD, rollout(["7", "x"], 0.3, step=1, malformed=True)]
    assert write_rows(results(records), tmp_path / name) == 3
    read = RecordedRollouts(tmp_path / name).rollouts
    assert [one.reward for one in read] == [record.total for record in records]
    assert [one.prompt for one in read] == ["How many?"] * 3
    assert [one.split for one in read] == ["train"] * 3
    assert read[0].group == read[1].group != read[2].group
    assert "2" in read[0].reply
    assert "5" in read[0].reply


def test_training_data_in_parquet_is_that_of_the_lines(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs the extra `data`")
    for number, made in enumerate((demonstrations, preferences)):
        rows = list(made([GOOD, BAD, WORSE], 0.05))
        write_rows(rows, tmp_path / f"{number}.parquet")
        write_rows(rows, tmp_path / f"{number}.jsonl")
        lines = (tmp_path / f"{number}.jsonl").read_text().splitlines()
        assert rows
        assert parquet.read_table(tmp_path / f"{number}.parquet").to_pylist() == rows
        assert [json.loads(line) for line in lines] == rows


def test_rows_of_tasks_name_them_for_skyrl_and_verl() -> None:
    rollouts = Rollouts("energy:small")
    rows = list(task_rows("energy:small", "train", 2))
    for index, row in enumerate(rows):
        task = rollouts.world.task("train", index)
        assert row["prompt"] == [{"role": "user", "content": rollouts.start(task).text}]
        assert {"split": row["split"], "index": row["index"]} == row["extra_info"]
        assert row["reward_model"]["ground_truth"] == task.fingerprint
    assert [row["index"] for row in rows] == [0, 1]
