"""The leaderboard follows from the replies that are packed beside its command."""

from pathlib import Path

import pytest

from benchmarks import leaderboard
from benchmarks.pages import read_block
from tests.docs.pages import ROOT
from tokengym.agents.evaluation.config import EvaluationConfig, WorldLevel
from tokengym.agents.evaluation.folder import EvaluationFolder
from tokengym.agents.evaluation.run import run_evaluation


def test_the_page_is_what_the_packed_replies_earn() -> None:
    found = leaderboard.entries()
    assert len(found) >= 5
    assert read_block(ROOT / "docs" / "leaderboard.md", leaderboard.BLOCK) == leaderboard.table(
        found
    )


def test_an_entry_that_does_not_follow_from_its_replies_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leaderboard, "PACKED", tmp_path / "packed")
    folder = EvaluationFolder(tmp_path / "mine")
    config = EvaluationConfig((WorldLevel.parse("forecast"),), ("random",), tasks=4)
    run_evaluation(config, folder)
    leaderboard.pack("mine", [folder.folder])
    ((row,),) = leaderboard.entries().values()
    assert row.result["tasks"] == len(row.tasks) == 4
    better = folder.file.read_text().replace('"success": {\n', '"success": {\n"forged": 1,\n', 1)
    folder.file.write_text(better)
    with pytest.raises(SystemExit, match="differ"):
        leaderboard.pack("mine", [folder.folder])
