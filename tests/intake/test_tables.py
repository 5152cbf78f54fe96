"""Laws of a user's tables: what was written is read, under the line it begins on."""

import csv
import gzip
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokengym.envs.core.errors import DataError
from tokengym.envs.intake import files
from tokengym.envs.intake.tables import CsvTable, csv_rows, read_text

words = st.text(st.characters(codec="utf-8", exclude_characters="\r\0"), max_size=8)
tables = st.lists(st.lists(words, min_size=2, max_size=3), min_size=1, max_size=6)


def written(rows: list[list[str]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def lines_of(text: str) -> io.StringIO:
    return io.StringIO(text, newline="")


@given(tables.filter(lambda rows: any(cell.strip() for cell in rows[-1])))
def test_rows_are_read_under_their_first_line(rows: list[list[str]]) -> None:
    begins = 1
    for (line, cells), row in zip(csv_rows(lines_of(written(rows)), 1, ","), rows, strict=True):
        assert (line, cells) == (begins, row)
        begins += 1 + "".join(row).count("\n")


def test_long_cells_are_read_within_the_limit() -> None:
    limit = csv.field_size_limit()
    article = "x" * (limit + 1)
    assert [cells for _, cells in csv_rows([f'a,"{article}"'])] == [["a", article]]
    assert csv.field_size_limit() == limit


def table(folder: Path, text: str) -> CsvTable:
    path = folder / "data.csv"
    path.write_text(text, encoding="utf-8")
    return CsvTable(path)


def test_columns_bear_their_names_without_units_and_cells_no_blanks(tmp_path: Path) -> None:
    read = table(tmp_path, "\ufeffTime, Solar  Generation [W/kW]\n\n1, 2.5\n\n3,4\n")
    assert read.header == ["time", "solar_generation"]
    assert read.numbers("pv", "solar_generation") == [2.5, 4.0]
    assert [row.line for row in read.rows] == [3, 5]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "a header and at least one row"),
        ("a,b\n", "a header and at least one row"),
        ("a,b\n1,2\n\n3\n", r"data\.csv, line 4: 1 cells under 2 columns"),
    ],
)
def test_a_table_without_rows_or_with_ragged_ones_is_refused(
    tmp_path: Path, text: str, reason: str
) -> None:
    with pytest.raises(DataError, match=reason):
        table(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "hinted"), [("a,b\n1,5,2\n", True), ("a,b\n1\n", False), ("a;b\n1;2;3\n", False)]
)
def test_cells_too_many_between_commas_may_be_decimals(
    tmp_path: Path, text: str, hinted: bool
) -> None:
    with pytest.raises(DataError, match="cells under 2 columns") as raised:
        table(tmp_path, text)
    assert ("separate columns by semicolons" in str(raised.value)) == hinted


def test_a_cell_without_a_number_is_named_with_its_line(tmp_path: Path) -> None:
    read = table(tmp_path, "a,b\n1,2\n\n3,nan\n")
    with pytest.raises(DataError, match=r"data\.csv, line 4: b is 'nan', not a number"):
        read.numbers("b")
    with pytest.raises(DataError, match=r"b is 'nan', not a number$"):
        read.numbers("b")
    hint = r"a is '1,5', not a number \(decimal commas need semicolons between columns\)$"
    with pytest.raises(DataError, match=hint):
        table(tmp_path, 'a,b\n"1,5",2\n').numbers("a")
    with pytest.raises(DataError, match=r"data\.csv, line 1: the column 'c' is missing"):
        read.texts("c")
    with pytest.raises(DataError, match=r"data\.csv, line 4: b is 'nan', not a number above 0"):
        read.rows[1].positive("b")
    assert read.rows[0].positive("a") == 1.0
    for zero in ("0", "-1"):
        with pytest.raises(DataError, match=f"a is '{zero}', not a number above 0"):
            table(tmp_path, f"a,b\n{zero},2\n").rows[0].positive("a")
    with pytest.raises(DataError, match=r"data\.csv, line 2: a is '1', not a whole number >= 2"):
        read.rows[0].whole("a", 2)


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_a_file_too_long_to_read_whole_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packed: bool
) -> None:
    monkeypatch.setattr(files, "LONGEST_FILE", 1 << 20)
    path = tmp_path / "data.csv"
    for size, allowed in ((1 << 20, True), ((1 << 20) + 1, False)):
        content = b"x" * size
        path.write_bytes(gzip.compress(content) if packed else content)
        if allowed:
            assert len(read_text(path)) == size
        else:
            with pytest.raises(DataError, match=r"data.csv: .* longer than 1 MiB"):
                read_text(path)
