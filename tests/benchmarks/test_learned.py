"""The script of what models learned, on a run of one step."""

from pathlib import Path

import pytest

from benchmarks import learned


@pytest.mark.nightly
def test_a_run_gives_a_row_and_a_picture(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "energy.png"
    words = ["energy", "--seeds", "3", "--runs", str(tmp_path), "--picture", str(picture)]
    sizes = ["--steps", "2", "--groups", "2", "--group-size", "2", "--evaluation-tasks", "4"]
    for _ in range(2):  # a finished run is only read
        learned.main([*words, *sizes])
    *_, row = capfd.readouterr().out.strip().splitlines()
    assert row.startswith("| `energy:evening` | 3 | 2, 2, 2 |")
    assert picture.read_bytes().startswith(b"\x89PNG")
