"""Files of questions that several tests read."""

from pathlib import Path

import pytest

from tests.forecasting.questions_file import plain, snapshot, write_csv, write_lines


@pytest.fixture
def river(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "river.jsonl", [plain(number) for number in range(60)])


@pytest.fixture
def arena(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "arena.csv", [snapshot(number) for number in range(60)])
