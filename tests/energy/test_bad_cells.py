"""Laws of cells that cannot be read: each costs its row and is shown, many refuse the file."""

from pathlib import Path

import pytest

from tests.energy.test_data import PLAIN, plain_rows, spoiled, write
from tests.every import every
from tokengym.envs.core.errors import DataError
from tokengym.envs.energy.data import read

WORDS = (
    *("unavailable", "unknown", "#N/A", "--", "n/a", "NULL", "None", "NaN", "-", ".", "N/E"),
    "#REF!",
)


CELLS = [
    *((word, 1) for word in (*WORDS, "offline", "1,5", "12:30")),
    *(("offline", column) for column in (2, 3, 4, 5)),
]
"""A word of every kind in one column, and one in each of the others."""


@every(("word", "column"), CELLS)
def test_a_cell_without_a_number_costs_its_row(tmp_path: Path, word: str, column: int) -> None:
    series = read(spoiled(tmp_path, 9, column, f'"{word}"'))
    assert series.steps == len(plain_rows()) - 1
    (lost,) = series.report.dropped
    assert (lost.rows, lost.why.endswith("missing"), lost.places[0][-6:]) == (1, True, "line 9")
    assert f"the first is {word!r} in line 9" in str(series.report)


def test_a_time_that_cannot_be_read_costs_its_row(tmp_path: Path) -> None:
    series = read(spoiled(tmp_path, 10, 0, "tomorrow"))
    assert series.steps == len(plain_rows()) - 1
    assert "1 row left out: time is 'tomorrow' (" in str(series.report)


@pytest.mark.parametrize(("column", "cell"), [(1, "offline"), (1, '"1,5"'), (0, "tomorrow")])
def test_beyond_a_tenth_unreadable_cells_refuse_the_file(
    tmp_path: Path, column: int, cell: str
) -> None:
    rows = plain_rows()
    most = len(rows) // 10
    for count, refused in ((most, False), (most + 1, True)):
        for row in rows[1 : 2 * count : 2]:
            row[column] = cell
        path = write(tmp_path / "bad.csv", PLAIN, rows)
        if not refused:
            assert read(path).report.refused == count
            continue
        reason = rf"line 3: .*{count} of {len(rows)} rows are unreadable, more than 10%"
        with pytest.raises(DataError, match=reason):
            read(path)
