"""Files of any length are read within bounds, value by value, and reports say what was left out."""

import gzip
import hashlib
import io
import json
import re
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.every import every
from tokengym.envs.core.errors import DataError
from tokengym.envs.intake import files
from tokengym.envs.intake.files import bounded_lines, open_unpacked, read_whole, sha256
from tokengym.envs.intake.json_stream import JsonStream, JsonValue, load_json
from tokengym.envs.intake.rows import begins_as_json, read_objects, read_rows, refuse

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**12), 10**12) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=5,
)


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds that a few bytes reach."""
    monkeypatch.setattr(files, "LONGEST_ROW", 8)
    monkeypatch.setattr(files, "LONGEST_FILE", 16)


@every("length", [0, 1, 15, 16, 17, 40])
@pytest.mark.parametrize("begun", [0, 1, 16, 17])
@pytest.mark.usefixtures("short")
def test_a_file_is_read_whole_up_to_a_bound(length: int, begun: int) -> None:
    text = "x" * length
    start, rest = text[:begun], io.StringIO(text[begun:])
    if length <= 16:
        assert read_whole(rest, start) == text
    else:
        with pytest.raises(OSError, match="longer than 0 MiB, the most that is read whole"):
            read_whole(rest, start)
        assert begun + rest.tell() <= max(17, begun + 1)  # no more than needed was read


@pytest.mark.parametrize("end", ["\n", "\r\n", ""])
@pytest.mark.usefixtures("short")
def test_lines_keep_their_ends_and_long_ones_are_none(end: str) -> None:
    lengths = [0, 1, 6, 7, 8, 9, 15, 16, 17, 40, 3]
    lines = ["x" * length + "\n" for length in lengths[:-1]] + ["yyy" + end]
    wanted = [line if len(line) <= 8 else None for line in lines]
    text = io.StringIO("".join(lines), newline="")
    assert list(bounded_lines(text)) == wanted
    binary = io.BytesIO("".join(lines).encode())
    assert list(bounded_lines(binary)) == [line and line.encode() for line in wanted]


def test_a_gzip_may_not_be_both_long_and_dense(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "LEAST_SUSPECT", 1 << 18)
    text = b"0" * (1 << 18)
    path = tmp_path / "rows"
    path.write_bytes(gzip.compress(text))
    with open_unpacked(path) as file:
        assert file.readable()
        assert file.read() == text
        assert file.seekable()
        file.seek(5)
        assert (file.tell(), file.read(3)) == (5, b"000")
    path.write_bytes(gzip.compress(text + b"0"))
    with open_unpacked(path) as file, pytest.raises(OSError, match="more than 100 times its size"):
        file.read()
    mixed = bytes(range(256)) * 4096  # unpacks to many times its size, too
    monkeypatch.setattr(files, "MOST_UNPACKED", 10_000)
    path.write_bytes(gzip.compress(mixed))
    with open_unpacked(path) as file:
        assert file.read() == mixed
    path.write_bytes(mixed)
    with open_unpacked(path) as file:
        assert file.read() == mixed


def test_a_checksum_is_that_of_the_bytes(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"\x00\xff" * 999)
    assert sha256(path) == hashlib.sha256(b"\x00\xff" * 999).hexdigest()
    with pytest.raises(DataError, match=f"cannot read {re.escape(str(tmp_path))}"):
        sha256(tmp_path)


class Trickle(io.StringIO):
    """A text that gives as little at a time as it can."""

    def read(self, size: int | None = -1, /) -> str:
        return super().read(min(size or 1, 3) if size and size > 0 else size)


@pytest.mark.nightly
@given(
    values=st.lists(VALUES, max_size=6),
    array=st.booleans(),
    blanks=st.sampled_from(["", " ", "\n", "\r\n \n"]),
    begun=st.integers(1, 9),
)
def test_values_are_read_with_their_first_lines(
    values: list[Any], array: bool, blanks: str, begun: int
) -> None:
    texts = [json.dumps(value, indent=1 if n % 2 else None) for n, value in enumerate(values)]
    between = f"{blanks},{blanks}" if array else f"\n{blanks}"
    text = f"[{blanks}" * array + between.join(texts) + f"{blanks}]" * array
    lines, at = [], len(f"[{blanks}") * array
    for one in texts:
        lines.append(7 + text.count("\n", 0, at))
        at += len(one) + len(between)
    stream = JsonStream(text[:begun], Trickle(text[begun:]), 7)
    found = []
    for value in stream:
        found.append(value)
        assert json.loads(stream.text) == value.value
    assert stream.in_array == (array or text.startswith("["))
    if array or not text.startswith("["):
        assert [(value.value, value.line, value.reason) for value in found] == [
            (value, line, "") for value, line in zip(values, lines, strict=True)
        ]


def read(text: str, longest: int = 0) -> list[JsonValue]:
    rest = Trickle if len(text) < 1000 else io.StringIO  # of a long one, a little takes long
    return list(JsonStream(text[:1], rest(text[1:]), 1, longest))


def test_damage_in_an_array_keeps_earlier_items() -> None:
    cut = read('[1,\n {"a": 2},\n')
    assert [(one.line, one.value, one.reason) for one in cut] == [
        (1, 1, ""),
        (2, {"a": 2}, ""),
        (3, None, "the array is cut off"),
    ]
    first, wrong = read("[1,\n\nnope, 2]")
    assert (first.value, wrong.line, wrong.value) == (1, 3, None)
    assert wrong.reason.startswith("not JSON, and nothing after it can be read: Expecting value")
    assert isinstance(wrong.cause, ValueError)
    deep = "[" * 100_000 + "]" * 100_000
    nested, after = read(f'[{{"a": "}}]", "b": {deep}}}, 5]')
    assert (nested.reason, nested.value, nested.line) == ("nested too deep", None, 1)
    assert (after.value, after.reason) == (5, "")
    assert read("[]") == read("") == read("[ \n ]") == []
    assert read("[1, 2] 3") == [JsonValue(1, 1), JsonValue(1, 2)]


@pytest.mark.parametrize("length", [9, 10, 11, 30])
def test_a_value_longer_than_the_bound_is_refused(length: int) -> None:
    text = '"' + "x" * (length - 2) + '"'
    (found,) = read(f"[{text}]", longest=1 << 20)
    assert found.value == text[1:-1]
    *_, last = read(f"[{text[:-1]}", longest=9)
    assert "longer than 0 MiB" in last.reason or "is cut off" in last.reason or last.reason
    whole = json.dumps("x" * (1 << 17))
    (found,) = read(f"[{whole}]", longest=1 << 16)
    assert "nothing after it can be read: longer than 0 MiB" in found.reason


def test_overlong_numbers_are_infinite_and_fields_unique() -> None:
    assert [one.value for one in read("[" + "9" * 300 + "," + "9" * 301 + "]")] == [
        int("9" * 300),
        float("inf"),
    ]
    (twice,) = read('[{"a": 1, "a": 2}]')
    assert "the field 'a' comes twice" in twice.reason
    assert load_json('{"a": 1, "b": [2]}') == {"a": 1, "b": [2]}
    with pytest.raises(ValueError, match="the field 'a' comes twice"):
        load_json('{"b": {"a": 1, "a": 1}}')


@pytest.mark.parametrize("packed", [False, True])
def test_rows_of_every_layout_keep_their_lines_and_numbers(packed: bool, tmp_path: Path) -> None:
    path = tmp_path / "file"

    def rows(text: str, **how: bool) -> list[tuple[int, int | None, Any, bool]]:
        data = text.encode("utf-8", "surrogateescape")
        path.write_bytes(gzip.compress(data) if packed else data)
        return [
            (one.number, one.line, one.row or one.reason, one.inside)
            for one in read_rows(path, **how)
        ]

    one, two = {"a": 1}, {"a": 2}
    assert rows('\n{"a": 1}\n\n{"a": 2}\n') == [(1, 2, one, False), (2, 4, two, False)]
    assert rows('\ufeff[{"a": 1},\n{"a": 2}]') == [(1, 1, one, True), (2, 2, two, True)]
    assert rows('{\n"a":\n1}\n{\n"a": 2}') == [(1, 1, one, False), (2, 4, two, False)]
    page = '{"n": 5,\n"data": [\n{"a": 1},\n{"a": 2, "n": 6}]}'
    assert rows(page) == [(1, 3, {"n": 5, "a": 1}, True), (2, 4, {"n": 6, "a": 2}, True)]
    assert rows(page, common=False)[0] == (1, 3, one, True)
    own = '{"title": "x", "data": [1]}'
    assert rows(own) == [(1, 1, json.loads(own), False)]
    right, wrong = rows('[{"a": 1}, nope, {"a": 2}]')
    assert (right, wrong[:2], wrong[3]) == ((1, 1, one, True), (2, 1), True)
    assert rows("[3]") == [(1, 1, "a row must be an object, got 3", True)]
    assert rows("a;b\n1;2\n;\n3\n", tables=True) == [
        (1, 2, {"a": "1", "b": "2"}, False),
        (2, 3, {"a": None, "b": None}, False),
        (3, 4, "other cells than the header has: 1, not 2", False),
    ]
    assert rows("") == rows(" \n ") == []
    (bad,) = rows("a;b\n1;2\n", tables=False)[:1]
    assert bad[:2] == (1, 1)
    assert bad[2].startswith("not JSON: ")
    wrong, right = rows('{"a": \udcff}\n{"a": 1}\n')
    assert wrong[2].startswith("not JSON: ")
    assert right == (2, 2, one, False)
    assert rows('{"a": "\udcff"}\n') == [(1, 1, "not UTF-8 text", False)]
    assert rows('{"a": "\\ud800"}\n') == [(1, 1, "not UTF-8 text", False)]
    assert rows('{"a": "\\ud83d\\ude00"}\n') == [(1, 1, {"a": "😀"}, False)]


def test_objects_name_their_places_and_damage_is_raised_or_collected(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"a": 1}\nnope\n{"a": 2}\n')
    with pytest.raises(DataError, match=rf"^{re.escape(str(path))}:2: not JSON: 'nope': "):
        list(read_objects(path))
    skipped: list[str] = []
    found = list(read_objects(path, skipped))
    assert [(one.where, one.fields["a"]) for one in found] == [(f"{path}:1", 1), (f"{path}:3", 2)]
    assert [line.partition(": not JSON")[0] for line in skipped] == [f"{path}:2"]
    path.write_text('[{"a": 1},\n 5]')
    skipped = []
    (first,) = read_objects(path, skipped)
    assert first.where == f"{path}:1, row 1"
    assert skipped == [f"{path}:2, row 2: a row must be an object, got 5"]
    missing: list[str] = []
    assert list(read_objects(tmp_path / "none", missing)) == []
    assert len(missing) == 1
    assert "cannot be read" in missing[0]
    with pytest.raises(DataError, match="cannot be read"):
        list(read_objects(tmp_path / "none"))
    with pytest.raises(DataError, match="why") as raised:
        refuse("why", None, ValueError("x"))
    assert isinstance(raised.value.__cause__, ValueError)


def test_json_is_known_by_its_first_sign(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for content, known in (
        (b" \n{", True),
        (b"\xef\xbb\xbf[", True),
        (gzip.compress(b"[1]"), True),
        (gzip.compress(b"a,b"), False),
        (b"a,b", False),
        (b"", False),
        (b"\x1f\x8bdamaged", True),
    ):
        path.write_bytes(content)
        assert begins_as_json(path) == known, content


def test_parquet_is_read_in_the_types_of_json(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow", reason="needs the extra `data`")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "rows.parquet"
    rows = [
        {
            "n": n,
            "when": datetime(2024, 1, 2, 3, tzinfo=UTC),
            "day": date(2024, 1, 2),
            "at": time(3, 4),
            "exact": Decimal("1.50"),
            "list": [{"x": date(2024, 1, 3)}, None],
            "text": "ü",
        }
        for n in range(600)
    ]
    parquet.write_table(pa.Table.from_pylist(rows), path, row_group_size=256)
    found = list(read_rows(path))
    assert [one.number for one in found] == list(range(1, 601))
    assert {one.line for one in found} == {None}
    assert found[-1].row == {
        "n": 599,
        "when": "2024-01-02T03:00:00+00:00",
        "day": "2024-01-02",
        "at": "03:04:00",
        "exact": 1.5,
        "list": [{"x": "2024-01-03"}, None],
        "text": "ü",
    }
    (place, *_) = (one.where for one in read_objects(path, tables=True))
    assert place == f"{path}, row 1"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DataError, match="cannot be read as a Parquet table"):
        list(read_rows(path))
    columns = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    parquet.write_table(columns, path)
    with pytest.raises(DataError, match="the column 'a' comes twice"):
        list(read_rows(path))
