"""The public table: its page and its data say the same, and there is as much as it promises."""

import json
from collections import Counter
from dataclasses import replace

import pytest

from benchmarks.certified_table import TAUGHT, teaches
from tests.certify.synthetic import QUICK, Products
from tests.docs.pages import ROOT
from tokengym.agents.analysis.markdown import read_block, table_rows
from tokengym.agents.certify.certificate import Certificate, certify
from tokengym.agents.certify.finding import Severity
from tokengym.agents.certify.source import Episode, Place, Source

PAGE = ROOT / "docs" / "certified.md"
ROWS = [json.loads(line) for line in PAGE.with_suffix(".jsonl").read_text().splitlines()]


def failed(row: dict, severity: Severity) -> list[str]:
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
    assert {row[0]: [*map(int, row[2:])] for row in packages} == found
    assert [*map(int, total[2:])] == [sum(column) for column in zip(*found.values(), strict=True)]
    for package, dates, *_ in packages:
        made = {row["date"][:10] for row in ROWS if row["package"] == package}
        assert {*dates.split(" to ")} == {min(made), max(made)}
    environments, of_several_turns = int(total[2]), int(total[3])
    outside = environments - found["reasoning-gym 0.1.25"][0]
    assert environments >= 100
    assert outside >= 30
    assert of_several_turns >= 10
    assert len(packages) >= 5


def test_the_page_says_how_many_groups_teach_nothing() -> None:
    _, *packages = table_rows(read_block(PAGE, "certified_table.py, teaches"))
    for package, *cells in packages:
        rows = [row["without advantage"] for row in ROWS if row["package"] == package]
        for cell, check in zip(
            cells, ("teaches.wrong_replies", "statistical.training_signal"), strict=True
        ):
            told = [row[check] for row in rows if check in row]
            mean = sum(told) / max(len(told), 1)
            assert cell == (f"{mean:.2f} ({len(told)} of {len(rows)})" if told else "")
            if package.startswith("tokengym"):
                assert len(told) == len(rows)


def test_a_mean_is_of_all_rows_or_is_not_published() -> None:
    """An environment whose check ran out of time is missing; one without right replies is not."""

    class Unknown(Products):
        def start(self, place: Place) -> Episode:
            return replace(super().start(place), reference=())

    def made(source: Source, name: str, patience: float = 60.0) -> Certificate:
        settings = replace(QUICK, patience=patience)
        return certify(source, name, settings, only=TAUGHT)

    told, inapplicable = made(Products(), "told"), made(Unknown(), "inapplicable")
    _, (_, wrong, noisy) = table_rows(teaches([told, inapplicable]))
    assert wrong.endswith(" (1 of 2)")
    assert noisy.endswith(" (2 of 2)")
    with pytest.raises(SystemExit, match=r"missing are slow$"):
        teaches([told, made(Products(), "slow", patience=1e-9), inapplicable])


def test_each_environment_has_its_findings_by_class() -> None:
    _, *rows = table_rows(read_block(PAGE, "certified_table.py, each"))
    shown = Counter(
        (f"{source}:{name.partition(' --option ')[0]}", *cells)
        for names, *cells in rows
        for source, of_source in (part.split(": ", 1) for part in names.split("; "))
        for name in of_source.strip("`").split("`, `")
    )
    held = Counter(
        (
            row["target"],
            *(
                ", ".join(f"`{check.rpartition('.')[2]}`" for check in failed(row, severity))
                for severity in Severity
            ),
        )
        for row in ROWS
    )
    assert shown == held


def test_checks_are_counted_over_all_environments() -> None:
    _, *rows = table_rows(read_block(PAGE, "certified_table.py, common"))
    counts = Counter(found["check"] for row in ROWS for found in row["failed"])
    passed = Counter(check for row in ROWS for check in row["passed"])
    *failing, (never, zero, of_never) = rows
    for check, failed_by, of in failing:
        name = check.strip("`")
        assert (int(failed_by), int(of)) == (counts[name], counts[name] + passed[name])
    assert zero == "0"
    names = never.strip("`").split("`, `")
    assert sorted([*names, *(row[0].strip("`") for row in failing)]) == sorted({*counts, *passed})
    told = [passed[name] for name in names]
    assert not any(counts[name] for name in names)
    assert of_never == f"{min(told)} to {max(told)}"
