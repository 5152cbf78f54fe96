"""Laws of `tokengym data audit` of days: what is read, left out and played is printed."""

from pathlib import Path

import pytest

from tests.energy.days import days_file

pytest.importorskip("rich")
pytest.importorskip("typer")

from typer.testing import CliRunner

from tokengym.agents.cli import app


def test_the_report_names_files_gaps_and_the_levels_that_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    path = days_file(tmp_path / "home.csv")
    lines = path.read_text().splitlines()
    path.write_text("\n".join(lines[:100] + lines[102:]) + "\n")
    shown = CliRunner().invoke(app, ["data", "audit", str(path)])
    assert shown.exit_code == 0, shown.output
    assert "energy; rows: home.csv 478" in shown.output
    assert "home.csv: plain" in shown.output
    assert "a gap of 2 steps of 1:00:00" in shown.output
    assert "478 steps of 60 minutes, in 2 stretches, the longest of 379" in shown.output
    rows = {line.split()[1]: line for line in shown.output.splitlines() if line.startswith("│")}
    assert rows["day"].split()[3:8:2] == ["13", "3", "3"]
    assert "give resample=True" in rows["soma"]
    assert "the column 'outside'" in rows["household"]
