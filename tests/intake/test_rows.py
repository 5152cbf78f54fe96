"""Laws of rows: what was written is read, in every format, whatever the order; typos are named."""

import csv
import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tokengym.envs.intake.numbers import read_identifier, read_number, whole_number
from tokengym.envs.intake.rows import read_rows

Rows = list[dict[str, Any]]


def lines(rows: Rows) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def table(rows: Rows) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, ["id", "text"])
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode() + b"\n \n,\n,\n"


WRITERS: dict[str, Callable[[Rows], bytes]] = {
    "lines": lines,
    "gzip": lambda rows: gzip.compress(lines(rows)),
    "array": lambda rows: json.dumps(rows, indent=1).encode(),
    "document": lambda rows: json.dumps({"questions": rows}, indent=1).encode(),
    "pages": lambda rows: b"".join(json.dumps({"results": [row]}).encode() + b"\n" for row in rows),
    "table": table,
}
words = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Zs", "Zl", "Zp"]), min_size=1
)
rows_of_text = st.lists(
    st.fixed_dictionaries({"id": st.uuids().map(str), "text": words}), min_size=1, max_size=8
)


@pytest.mark.parametrize("name", WRITERS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=rows_of_text)
def test_what_is_read_is_what_was_written_in_its_order(
    tmp_path: Path, name: str, rows: Rows
) -> None:
    path = tmp_path / "rows"
    for order in (rows, rows[::-1]):
        path.write_bytes(WRITERS[name](order))
        found = list(read_rows(path))
        assert [one.row for one in found] == order
        assert [one.number for one in found] == list(range(1, len(rows) + 1))


@pytest.mark.parametrize("text", ["1_0", "١٢", "1\uff12", "1,234", "nan", "inf", "0x1", "", "1 0"])
def test_what_only_looks_like_a_number_is_none(text: str) -> None:
    assert read_number(text) is None


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(-(10**6), 10**6))
def test_numbers_are_read_as_tools_write_them(number: float, whole: int) -> None:
    assert read_number(repr(number)) == read_number(number) == number
    assert whole_number(f"{whole}.0") == whole_number(float(whole)) == whole_number(whole) == whole
    assert read_identifier(f"{abs(whole)}.0") == str(abs(whole))
