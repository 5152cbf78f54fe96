"""One damaged row is one rejected row, whatever is wrong with it; the file is read on."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests.forecasting.questions_file import plain
from tokengym.envs.forecasting.data.reading import QuestionReading
from tokengym.envs.intake import files

DEEP = "[" * 100_000 + "]" * 100_000
HUGE = "1" + "0" * 400
ENDLESS = "1" + "0" * 5000


def encoded(**changes: Any) -> bytes:
    return json.dumps(plain(7, **changes)).encode()


def written(name: str, text: str) -> bytes:
    """A row with a text for the value of a field, whatever JSON makes of it."""
    return encoded(**{name: 77777}).replace(b"77777", text.encode())


DAMAGED: dict[str, bytes] = {
    "last day": encoded(resolves_at="9999-12-31"),
    "last hour": encoded(resolves_at="9999-12-31T23:00:00Z", closed_at="9999-12-30"),
    "before the calendar": encoded(asked_at="0001-01-01T00:00:00+14:00"),
    "400 digits in time": written("asked_at", HUGE),
    "400 digits in outcome": written("outcome", HUGE),
    "400 digits in price": written("price", HUGE),
    "5000 digits": written("outcome", ENDLESS),
    "infinity": encoded(asked_at=float("inf")),
    "not a number": encoded(outcome=float("nan")),
    "deep": written("sources", DEEP),
    "bad bytes": encoded(question="Will x?").replace(b"Will x?", b"Will \xff\xfe?"),
    "half a character": encoded(question="Will \ud83d rise?"),
}


def read(path: Path, content: bytes) -> QuestionReading:
    path.write_bytes(content)
    reading = QuestionReading()
    reading.read(path)
    assert len(reading.usable()) == 2
    return reading


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_row_is_rejected_with_its_line(tmp_path: Path, name: str) -> None:
    rows = [json.dumps(plain(1)).encode(), DAMAGED[name], json.dumps(plain(2)).encode()]
    for first in (rows, rows[::-1], [rows[1], rows[0], rows[2]]):
        reading = read(tmp_path / "rows.jsonl", b"\n".join(first))
        (rejected,) = reading.rejected
        assert rejected.place.line == first.index(rows[1]) + 1
        assert len(str(rejected)) < 300
    (rejected,) = read(tmp_path / "rows.json", b"[" + b",\n".join(rows) + b"]").rejected
    assert rejected.place.line == 2


def test_a_damaged_row_of_a_table_is_rejected(tmp_path: Path) -> None:
    fields = ["id", "question", "asked_at", "resolves_at", "outcome"]
    rows = [",".join(str(plain(number)[name]) for name in fields).encode() for number in (1, 2)]
    bad = rows[0].replace(b"river", b"\xffiver")
    short = b"only,two"
    reading = read(
        tmp_path / "rows.csv", b"\n".join([",".join(fields).encode(), bad, *rows, short])
    )
    assert [rejected.place.line for rejected in reading.rejected] == [2, 5]


LONG = 1 << 16
"""What a test takes for the longest row."""


@pytest.fixture
def short_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LONGEST_ROW", LONG)


@pytest.mark.usefixtures("short_rows")
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_a_line_too_long_to_hold_is_rejected(tmp_path: Path, packed: bool) -> None:
    bomb = encoded(question="x" * 3 * LONG)
    rows = [json.dumps(plain(1)).encode(), bomb, json.dumps(plain(2)).encode()]
    for order in (rows, rows[::-1], [bomb, *rows[::2]]):
        content = b"\n".join(order)
        reading = read(tmp_path / "rows.jsonl", gzip.compress(content) if packed else content)
        (rejected,) = reading.rejected
        assert rejected.place.line == order.index(bomb) + 1
        assert "longer than 0 MiB" in str(rejected)


@pytest.mark.usefixtures("short_rows")
def test_tables_are_read_up_to_an_overlong_line(tmp_path: Path) -> None:
    fields = ["id", "question", "asked_at", "resolves_at", "outcome"]
    rows = [",".join(str(plain(number)[name]) for name in fields) for number in (1, 2)]
    lines = [",".join(fields), *rows, "x" * 3 * LONG, "after"]
    (rejected,) = read(tmp_path / "rows.csv", "\n".join(lines).encode()).rejected
    assert "nothing after it is read: a line is longer than" in str(rejected)


@pytest.mark.usefixtures("short_rows")
def test_a_first_line_too_long_to_hold_is_named(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(b"0" * 3 * LONG)
    reading = QuestionReading()
    reading.read(path)
    assert ["a line is longer than" in str(rejected) for rejected in reading.rejected] == [True]


def test_lines_after_a_damaged_first_one_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "LONGEST_FILE", 100)
    rows = [b'{"question": ', json.dumps(plain(1)).encode(), json.dumps(plain(2)).encode()]
    (rejected,) = read(tmp_path / "rows.jsonl", b"\n".join(rows)).rejected
    assert rejected.place.line == 1
