"""The public table: its page and its data say the same, and there is as much as it promises."""

import json
from pathlib import Path
from typing import Any

from benchmarks.certified_table import main, renewed
from tests.docs.pages import ROOT
from tokengym.agents.certify.checks import CHECKS

PAGE = ROOT / "docs" / "certified.md"
ROWS = [json.loads(line) for line in PAGE.with_suffix(".jsonl").read_text().splitlines()]


def test_the_page_holds_as_many_environments_as_it_promises() -> None:
    assert len(ROWS) >= 100
    assert sum(row["turns"] > 1 for row in ROWS) >= 10
    packages = [row["package"] for row in ROWS]
    assert len(ROWS) - packages.count("reasoning-gym 0.1.25") >= 30
    known = {*CHECKS}
    assert {found["check"] for row in ROWS for found in row["failed"]} <= known


def test_a_new_row_replaces_its_environments_old_one() -> None:
    old: list[dict[str, Any]] = [
        {"target": name, "options": {}, "date": 1} for name in ("a:b", "a:a")
    ]
    new: list[dict[str, Any]] = [
        {"target": "a:b", "options": {}, "date": 2},
        {"target": "a:b", "options": {"c": 1}},
    ]
    assert renewed(old, new) == [old[1], new[0], new[1]]


def test_the_tables_are_made_of_the_data(tmp_path: Path) -> None:
    page, data = tmp_path / "page.md", PAGE.with_suffix(".jsonl")
    page.write_text(PAGE.read_text())
    main([str(data), "--markdown", str(page)])
    assert page.read_text() == PAGE.read_text()
    assert page.with_suffix(".jsonl").read_text() == data.read_text()
