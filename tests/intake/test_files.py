"""Files of any length are read within bounds, value by value, and reports say what was left out."""

import gzip
import hashlib
import io
import json
import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokengym.envs.core.errors import DataError
from tokengym.envs.intake import files
from tokengym.envs.intake.files import bounded_lines, open_unpacked, read_whole, sha256, too_long
from tokengym.envs.intake.json_stream import JsonStream, JsonValue, load_json
from tokengym.envs.intake.names import Watched, meant_for, name_unknown, repeated
from tokengym.envs.intake.near import content_words, group_by, group_near, hash_words
from tokengym.envs.intake.numbers import read_identifier
from tokengym.envs.intake.quoting import quoted
from tokengym.envs.intake.report import (
    Dropped,
    Guard,
    IntakeReport,
    group_dropped,
    note_empty,
)
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


@pytest.mark.parametrize("length", [0, 1, 15, 16, 17, 40])
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
def test_lines_are_yielded_with_their_ends_and_long_ones_as_none(end: str) -> None:
    lengths = [0, 1, 6, 7, 8, 9, 15, 16, 17, 40, 3]
    lines = ["x" * length + "\n" for length in lengths[:-1]] + ["yyy" + end]
    wanted = [line if len(line) <= 8 else None for line in lines]
    text = io.StringIO("".join(lines), newline="")
    assert list(bounded_lines(text)) == wanted
    binary = io.BytesIO("".join(lines).encode())
    assert list(bounded_lines(binary)) == [line and line.encode() for line in wanted]


def test_bounds_are_stated_in_mebibytes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert too_long() == "longer than 64 MiB"
    assert too_long(files.LONGEST_FILE) == "longer than 256 MiB"
    monkeypatch.setattr(files, "LONGEST_ROW", 3 << 20)
    assert too_long() == "longer than 3 MiB"


def test_a_gzip_may_be_long_or_unpack_to_much_but_not_both(
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
    with (
        open_unpacked(path) as file,
        pytest.raises(OSError, match="more than 100 times its size"),
    ):
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


@given(
    values=st.lists(VALUES, max_size=6),
    array=st.booleans(),
    blanks=st.sampled_from(["", " ", "\n", "\r\n \n"]),
    begun=st.integers(1, 9),
)
def test_values_are_read_one_by_one_with_the_lines_they_begin_on(
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


def test_what_is_damaged_in_an_array_is_said_and_what_came_before_is_kept() -> None:
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


def test_numbers_too_long_for_any_field_are_infinite_and_fields_come_once() -> None:
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
    with pytest.raises(DataError, match=rf"^{re.escape(str(path))}:2: not JSON: "):
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


def test_errors_quote_the_beginning_of_a_value() -> None:
    assert quoted("x" * 58) == repr("x" * 58)  # 60 characters with its marks
    assert quoted("x" * 59) == "'" + "x" * 59 + "..."
    nested: list[Any] = []
    for _ in range(100_000):
        nested = [nested]
    assert quoted(nested) == "a list nested too deep"
    while nested:  # or taking it apart would go as deep
        nested = nested[0]


def test_unknown_names_are_listed_up_to_a_number_each_with_what_was_meant() -> None:
    assert name_unknown(["load", "Prcie", "", "zzz"], ["price", "load"]) == (
        "Prcie (is 'price' meant?), zzz"
    )
    assert name_unknown(["load"], ["load", "price"]) == ""
    # A name that is there as well was not meant.
    assert name_unknown(["prcie", "price"], ["price"]) == "prcie"
    twenty = [f"field {n}!" for n in range(20)]
    assert name_unknown(twenty, []) == ", ".join(twenty)
    assert name_unknown([*twenty, "x", "y"], []) == ", ".join([*twenty, "and 2 more"])
    assert name_unknown(["n" * 61], []) == "n" * 60
    assert meant_for("titel", ["title", "year"]) == ["title"]
    assert meant_for("titel", ["year"]) == []
    assert meant_for("abcd", ["abxx"], 0.5) == ["abxx"]
    assert (repeated(["a", "", "", "b", "a", "b"]), repeated(["a", "b", ""])) == ("a", None)


def test_a_row_remembers_what_was_asked_for() -> None:
    row = Watched({"a": 1, "b": 2})
    assert (list(row), len(row), row.asked) == (["a", "b"], 2, set())
    assert row["a"] == 1
    assert row.get("c") is None
    assert row.asked == {"a", "c"}


@pytest.mark.parametrize(
    ("text", "read"),
    [("12.0", "12"), (" 7.0 ", "7"), ("7.00", "7.00"), ("1.05", "1.05"), ("W1.0", "W1.0")],
)
def test_an_identifier_loses_the_fraction_that_a_tool_put_on_it(text: str, read: str) -> None:
    assert read_identifier(text) == read


def test_texts_are_near_by_one_word_or_one_letter_and_by_no_number() -> None:
    base = "Which team wins the champions league final match tonight"
    near = [
        "which Team won't",
        "Champions League final match: which teams win tonight?",
        "Which team wins the champions league final match",
        "Which team wins the champoins league final match tonight",
        "Which team wins the champion league final match tonight",
    ]
    assert [group_near([base, other])[1] == 0 for other in near] == [
        *(False, True, True, True, True),
    ]
    # One letter more, less or other, in words of at least six; two letters are another word.
    for other, same in (("champxions", True), ("chmpions", True), ("chaxpions", True)):
        assert (group_near([base, base.replace("champions", other)])[1] == 0) == same
    assert group_near([base, base.replace("champions", "chaxxions")]) == [0, 1]
    assert group_near([base, base.replace("match", "mitch")]) == [0, 1]
    numbered = "Will product 17 sell more units than product 25 next month"
    assert group_near([numbered, numbered.replace("17", "18")]) == [0, 1]
    # Four words or fewer must be the same.
    assert group_near(
        ["alpha beta gamma delta", "alpha beta gamma deltas", "alpha beta gamma"]
    ) == [
        *(0, 0, 2),
    ]
    assert group_near(["alpha beta gamma delta omega", "alpha beta gamma delta"]) == [0, 0]
    assert group_near(["", "!", ""]) == [0, 1, 2]
    assert group_near(["the of", "of the", "the"]) == [0, 0, 2]


def test_words_are_compared_by_their_stems() -> None:
    alike = ({"close", "closes", "closed"}, {"win", "wins", "winner", "winning"})
    for words in alike:
        assert len({content_words(word) for word in words}) == 1
    apart = {"win", "wine", "close", "clause", "red", "re"}
    assert len({content_words(word) for word in apart}) == len(apart) - 1  # win and wine are one
    assert hash_words("") == hash_words([]) == 0
    assert hash_words(["b", "a"]) == hash_words("a b") != hash_words("b a")
    assert 0 < hash_words("a") < 2**64
    assert hash_words("price") == 14028459523106168241


def test_groups_go_on_over_shared_keys() -> None:
    assert group_by([["a"], ["b"], ["a", "b"], [], ["c"], ["c", "d"], ["d"]]) == [
        *(0, 0, 0, 3, 4, 4, 4),
    ]


def test_what_was_left_out_is_grouped_counted_and_placed() -> None:
    refused: Iterator[tuple[int, str, str]] = iter(
        [(1, "late", "f:1"), (2, "dark", "f:2"), (1, "late", "f:3"), (0, "gap", "f:4")]
    )
    found = group_dropped([*refused, (1, "late", "f:5")])
    assert found == (
        Dropped(3, "late", ("f:1", "f:3", "f:5")),
        Dropped(2, "dark", ("f:2",)),
        Dropped(0, "gap", ("f:4",)),
    )
    assert [str(one) for one in found] == [
        "3 rows left out: late (f:1, f:3 and 1 more)",
        "2 rows left out: dark (f:2)",
        "cut: gap (f:4)",
    ]
    assert str(Dropped(1, "x", ("f:1", "f:2"))) == "1 row left out: x (f:1, f:2)"
    report = IntakeReport(
        rows={"f": 1234, "g": 1},
        sizes={"train": 7, "test": 2},
        dropped=found,
        guards={"a": Guard(2, "twins", "joined"), "b": Guard(0, "none", "nothing")},
        notes=("first",),
    )
    assert report.refused == 5
    assert str(report).splitlines() == [
        "first",
        "rows: f 1,234, g 1; 7 train, 2 test; 5 refused",
        *map(str, found),
        "2 twins: joined",
    ]
    assert str(IntakeReport({"f": 1})) == "rows: f 1; 0 refused"
    assert note_empty({"train": 1, "test": 2}) == ()
    assert note_empty({"train": 0, "validation": 1, "test": 0}) == (
        "nothing is left for train and test",
    )
