"""`tokengym data audit`: every leak that is planted is found, counted and closed."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.forecasting.questions_file import plain, prompts_of, report_of, world_of, write_lines
from tokengym.agents.cli.data import data

CUTOFF = "2025-02-15"


def audited(path: Path, *words: str) -> str:
    shown = CliRunner().invoke(data, ["audit", str(path), "--cutoff", CUTOFF, *words])
    assert shown.exit_code == 0, shown.output
    return shown.output


def counts(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(audited(path, "--json"))
    return found


CLEAN = [plain(n) for n in range(60)]
AGAIN = {"question": "Will the dam hold?", "event": "dam"}
SAME = {"question": "Will it snow?", "resolves_at": "2025-03-15"}
LEAKS: dict[str, list[dict[str, Any]]] = {
    "late_sources": [plain(3, sources=[{"text": "It rose.", "date": "2025-01-20"}])],
    "undated_sources": [plain(3, sources=["It rose."])],
    "prices": [plain(3, price=0.93)],
    "closing_times": [plain(3, closed_at="2025-01-05")],
    "asked_late": [plain(3, closed_at="2025-01-02")],
    "straddling": [
        plain(40, **AGAIN, resolves_at="2025-03-01"),
        plain(50, **AGAIN, id="again", resolves_at="2025-03-01"),
    ],
    "crossing": [plain(40, question="Will it last?", resolves_at="2025-03-01")],
    "repeated": [
        plain(20, **SAME, event="a", closed_at="2025-02-01"),
        plain(50, **SAME, event="b", closed_at="2025-03-10"),
    ],
}


@pytest.mark.parametrize("leak", LEAKS)
def test_a_planted_leak_is_counted_and_closed(leak: str, tmp_path: Path) -> None:
    planted = LEAKS[leak]
    taken = {row["id"] for row in planted}
    clean = [row for row in CLEAN if row["id"] not in taken]
    before = counts(write_lines(tmp_path / "a.jsonl", clean))["leaks"]
    path = write_lines(tmp_path / "b.jsonl", [*clean, *planted])
    after = counts(path)
    assert after["leaks"][leak] == before[leak] + 1
    texts = prompts_of(world_of(path, cutoff=CUTOFF))
    if leak not in ("undated_sources",):
        assert not any("It rose." in text or "price" in text for text in texts)
    if leak in ("asked_late", "crossing", "straddling"):
        assert sum(after["rows"].values()) > sum(
            sum(kept.values()) for kept in after["kept"].values()
        )
    if leak == "repeated":
        assert sum("Will it snow?" in text for text in texts) == 1


def test_audits_say_why_rows_were_dropped(tmp_path: Path) -> None:
    rows = [*CLEAN, plain(70, outcome="maybe"), "{broken", plain(71, outcome="unknown")]
    shown = audited(write_lines(tmp_path / "a.jsonl", rows), "--every")
    assert "rows: a.jsonl 63\nquestions: 60; cutoff" in shown
    assert "a.jsonl:61: row 61, id 'q70': 'outcome' must be resolved to yes or no, got" in shown
    assert "a.jsonl:62: row 62: not JSON" in shown
    lines = [line for line in shown.splitlines() if line.startswith("│ 2 ")]
    assert any("'outcome' must be" in line for line in lines)


def test_a_set_asked_at_one_time_is_split_by_question(tmp_path: Path) -> None:
    rows = [plain(n, asked_at="2025-01-01") for n in range(40)]
    # Two resolution dates of a question, as ForecastBench has them, and the same words twice.
    rows += [plain(n, id=f"q{n}b", question=f"And {n}?", asked_at="2025-01-01") for n in range(9)]
    rows += [plain(0, id="other", event="other", asked_at="2025-01-01")]
    world = world_of(write_lines(tmp_path / "a.jsonl", rows))
    assert "split by question, all asked at one time" in str(report_of(world))
    sizes = {name: world.size(name) or 0 for name in ("train", "validation", "test")}
    assert sum(sizes.values()) == 50
    assert sizes["train"] > 2 * sizes["test"] > 0
    assert sizes["validation"] > 0
    owner: dict[str, str] = {}
    for name, size in sizes.items():
        for index in range(size):
            task = world.task(name, index)
            for shared in (task.answer["event"], task.instance["question"]):
                assert owner.setdefault(shared, name) == name
