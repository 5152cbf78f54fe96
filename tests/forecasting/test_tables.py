"""Questions in tables, arrays and packed files are read like JSON lines, refusals with places."""

import csv
import gzip
import json
import tracemalloc
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.forecasting.questions_file import plain, report_of, tasks_of, world_of, write_lines
from tests.forecasting.test_formats import autocast, post
from tokengym.envs.core.errors import DataError
from tokengym.envs.forecasting.data.reading import QuestionReading
from tokengym.envs.intake.rows import read_rows

ROWS: list[dict[str, Any]] = [
    plain(1, price=0.25, sources=[{"text": "It is dry.", "date": "2025-01-01"}]),
    plain(2, outcome="perhaps"),
    plain(20, question="Who wins?", outcomes=["Oslo", "Rome", "Lima"], outcome="Rome"),
    plain(40, question="How high?", thresholds=[2, 4.5], unit="m", outcome=3.2),
]


def write_table(path: Path, delimiter: str = ",") -> Path:
    columns = list(dict.fromkeys(name for row in ROWS for name in row))
    with path.open("w", newline="", encoding="utf-8-sig") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(columns)
        for row in ROWS:
            cells = (row.get(name, "") for name in columns)
            writer.writerow([json.dumps(c) if isinstance(c, list) else c for c in cells])
    return path


def write_parquet(path: Path) -> Path:
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = [{**row, "outcome": str(row["outcome"])} for row in ROWS]
    for row in rows:
        row["asked_at"] = datetime.fromisoformat(row["asked_at"])
    columns = {name: [row.get(name) for row in rows] for name in {n for row in rows for n in row}}
    parquet.write_table(pa.table(columns), path, row_group_size=2)
    return path


def write_packed(path: Path) -> Path:
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, ROWS)).encode()))
    return path


def write_array(path: Path) -> Path:
    path.write_text(json.dumps(ROWS, indent=1), encoding="utf-8")
    return path


FILES: dict[str, Callable[[Path], Path]] = {
    "comma.csv": write_table,
    "semicolon.csv": lambda path: write_table(path, ";"),
    "tabs.tsv": lambda path: write_table(path, "\t"),
    "rows.parquet": write_parquet,
    "rows.jsonl.gz": write_packed,
    "rows.json": write_array,
}


@pytest.mark.parametrize("name", FILES)
def test_a_table_is_read_like_json_lines(name: str, tmp_path: Path) -> None:
    expected = world_of(write_lines(tmp_path / "rows.jsonl", ROWS), show_prices=True)
    world = world_of(FILES[name](tmp_path / name), show_prices=True)
    assert [t.instance for t in tasks_of(world)] == [t.instance for t in tasks_of(expected)]
    assert [t.answer for t in tasks_of(world)] == [t.answer for t in tasks_of(expected)]
    (rejected,) = report_of(world).every
    assert rejected.startswith(name)
    assert "row 2, id 'q2': 'outcome' must be resolved" in rejected


def test_numeric_questions_are_asked_in_ranges(tmp_path: Path) -> None:
    world = world_of(write_lines(tmp_path / "rows.jsonl", ROWS))
    task = next(t for t in tasks_of(world) if t.answer["key"] == "q40")
    text = world.start(task).text
    assert "A: at most 2 m\nB: above 2 m, at most 4.5 m\nC: above 4.5 m" in text
    assert "The outcomes are in order." in text
    assert task.answer["outcome"] == 1
    turn = world.reply("Probabilities: A 0.2, B 0.5, C 0.3")
    assert turn.metrics["score"] == pytest.approx(1.0 - (0.2**2 + 0.3**2) / 2.0)
    others = next(t for t in tasks_of(world) if t.answer["key"] == "q20")
    assert "half the summed squared errors" in world.start(others).text


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"thresholds": [3, 2]}, "ascending"),
        ({"thresholds": []}, "ascending"),
        ({"thresholds": list(range(30))}, "1 to 25"),
        ({"thresholds": [1], "outcomes": ["a", "b"]}, "not both"),
        ({"thresholds": [1], "outcome": "high"}, "must be a number"),
        ({"outcomes": ["a", "b"], "outcome": "a", "ordered": "maybe"}, "'ordered'"),
    ],
)
def test_thresholds_that_make_no_sense_are_refused(
    changes: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    reading = QuestionReading()
    reading.read(write_lines(tmp_path / "a.jsonl", [plain(1, **changes)]))
    assert reason in reading.rejected[0].reason


def test_numeric_questions_of_metaculus_and_autocast_have_thresholds(tmp_path: Path) -> None:
    scale = {"range_min": 0, "range_max": 100, "zero_point": None}
    posts = [
        post(number, type="numeric", resolution=resolution, scaling=scale)
        for number, resolution in enumerate(("37.5", "above_upper_bound"))
    ]
    choices = {"min": 10, "max": 110, "deriv_ratio": 1}
    seats = autocast(1, qtype="num", choices=choices, answer=0.5)
    reading = QuestionReading()
    reading.read(write_lines(tmp_path / "a.jsonl", [*posts, seats]))
    first, second, third = reading.usable()
    assert first.labels[:2] == ("at most 20", "above 20, at most 40")
    assert [first.outcome, second.outcome, third.outcome] == [1, 4, 2]
    assert third.labels[2] == "above 50, at most 70"
    assert all(record.ordered for record in (first, second, third))


def test_epochs_in_a_table_are_times(tmp_path: Path) -> None:
    stamp = int(datetime(2025, 1, 1, 12, tzinfo=UTC).timestamp())
    path = tmp_path / "a.csv"
    path.write_text(
        "id,question,asked_at,resolves_at,outcome\n"
        f"a,Will it?,{stamp},2025-02-01,yes\n\nb,Will that?,{1000 * stamp},2025-02-01,0\n"
    )
    reading = QuestionReading()
    reading.read(path)
    assert [r.asked_at.hour for r in reading.usable()] == [12, 12]


def test_a_header_without_a_needed_column_names_it(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("id,question,asked,outcome\n1,Will it?,2025-01-01,yes\n")
    with pytest.raises(DataError, match=r"this one lacks \['resolves_at'\]"):
        world_of(path)


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.json", "rows.csv"])
def test_reading_rows_holds_few_of_them_in_memory(name: str, tmp_path: Path) -> None:
    path, text = tmp_path / name, "word " * 2000
    rows = [{"id": n, "question": text} for n in range(300)]
    if name.endswith("csv"):
        path.write_text("id,question\n" + "".join(f"{r['id']},{text}\n" for r in rows))
    elif name.endswith("jsonl"):
        write_lines(path, rows)
    else:
        path.write_text(json.dumps(rows))
    tracemalloc.start()
    count = sum(1 for _ in read_rows(path))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 300
    assert peak < path.stat().st_size / 4


@pytest.mark.parametrize("content", [b"PAR1 and then nothing", b"\x1f\x8bno gzip"])
def test_a_damaged_container_is_refused(content: bytes, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    path = tmp_path / "damaged"
    path.write_bytes(content)
    with pytest.raises(DataError, match="cannot be read"):
        world_of(path)
