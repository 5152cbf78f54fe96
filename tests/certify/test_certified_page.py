"""The public table: its page and its data say the same, and there is as much as it promises."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.certified_table import Row, main, renewed
from benchmarks.pages import read_block, table_rows
from tests.docs.pages import ROOT
from tokengym.agents.certify.finding import Severity, Status

PAGE = ROOT / "docs" / "certified.md"
ROWS = [json.loads(line) for line in PAGE.with_suffix(".jsonl").read_text().splitlines()]


def failed(row: Row, severity: Severity) -> list[str]:
    return [found["check"] for found in row["failed"] if found["severity"] == severity]


def test_the_page_counts_what_the_data_holds() -> None:
    _, *packages, total = table_rows(read_block(PAGE, "certified_table.py, summary"))
    found = {
        package: [
            len(rows),
            sum(row["turns"] > 1 for row in rows),
            *(sum(bool(failed(row, severity)) for row in rows) for severity in Severity),
        ]
        for package in {row["package"] for row in ROWS}
        for rows in [[row for row in ROWS if row["package"] == package]]
    }
    assert {row[0]: [*map(int, row[4:-1])] for row in packages} == found
    assert [*map(int, total[4:-1])] == [sum(column) for column in zip(*found.values(), strict=True)]
    for package, by, dates, patience, *_ in packages:
        of_package = [row for row in ROWS if row["package"] == package]
        made = {row["date"][:10] for row in of_package}
        assert {*dates.split(" to ")} == {min(made), max(made)}
        assert {*by.split(", ")} == {row["tokengym"] for row in of_package}
        waited = {row["patience"] for row in of_package}
        assert {*map(float, patience.split(" to "))} == {min(waited), max(waited)}
    environments, of_several_turns = int(total[4]), int(total[5])
    outside = environments - found["reasoning-gym 0.1.25"][0]
    assert environments >= 100
    assert outside >= 30
    assert of_several_turns >= 10
    assert len(packages) >= 5


def test_checks_are_counted_over_all_environments() -> None:
    _, *rows = table_rows(read_block(PAGE, "certified_table.py, common"))
    of_all = Counter(found["check"] for row in ROWS for found in row["failed"])
    passed = Counter(check for row in ROWS for check in row["passed"])
    untold = Counter(check for row in ROWS for check in row.get(Status.UNTOLD, ()))
    names = [check.strip("`") for check, *_ in rows]
    assert sorted(names) == sorted({*of_all, *passed, *untold})
    for name, (_, *cells) in zip(names, rows, strict=True):
        assert [*map(int, cells)] == [of_all[name], of_all[name] + passed[name], untold[name]]


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
