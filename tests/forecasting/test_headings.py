"""Spreadsheets as people keep them: headings, dates and answers of their own."""

from pathlib import Path

import pytest

from tests.forecasting.questions_file import report_of, tasks_of, world_of
from tokengym.envs.core.errors import DataError, OptionError

TOWNS = ("Aldby", "Borrow", "Carn")


def sheet(
    path: Path, dates: list[str], heading: str = "Question,Answer,Date", rest: str = ""
) -> Path:
    rows = [
        f"Will the mill of {TOWNS[n % 3]} number {n} close?,{('Yes', 'no')[n % 2]},{date}{rest}"
        for n, date in enumerate(dates)
    ]
    path.write_text("\n".join([heading, *rows]))
    return path


def days(form: str, day: int = 13) -> list[str]:
    return [form.format(day=day + n % 15, month=1 + n % 12) for n in range(30)]


def asked_on(world: object) -> set[str]:
    return {task.instance["asked_on"] for task in tasks_of(world)}  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "form",
    [
        "{day:02d}/{month:02d}/2025",
        "{month}/{day}/2025",
        "{day}.{month}.2025",
        "{day}-{month}-2025 9:30",
        "2025-{month:02d}-{day:02d}",
    ],
)
def test_dates_in_any_one_order_are_read_alike(form: str, tmp_path: Path) -> None:
    world = world_of(sheet(tmp_path / "a.csv", days(form)))
    assert asked_on(world) == asked_on(
        world_of(sheet(tmp_path / "b.csv", days("2025-{month:02d}-{day:02d}")))
    )
    assert sum(world.size(split) or 0 for split in ("train", "validation", "test")) == 30


def test_dates_with_months_in_words_are_read(tmp_path: Path) -> None:
    dates = ["19 Mar 2025", "March 20 2025", "21 April 2025", "Apr. 22 2025", "23-May-2025"]
    world = world_of(sheet(tmp_path / "a.csv", dates))
    assert asked_on(world) == {
        *("2025-03-19", "2025-03-20", "2025-04-21", "2025-04-22", "2025-05-23")
    }


def test_an_undecided_order_of_dates_is_a_question(tmp_path: Path) -> None:
    path = sheet(tmp_path / "a.csv", ["01/02/2025", "03/04/2025", "05/06/2025"])
    with pytest.raises(DataError, match="whether the day or the month comes first"):
        world_of(path)
    assert "2025-02-01" in asked_on(world_of(path, columns="dates=day-first"))
    assert "2025-01-02" in asked_on(world_of(path, columns="dates=month-first"))


def test_dates_in_two_orders_are_refused_with_both(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="'13/01/2025' has the day first and '01/14/2025'"):
        world_of(sheet(tmp_path / "a.csv", ["13/01/2025", "01/14/2025"]))


def test_columns_name_headings_of_their_own(tmp_path: Path) -> None:
    path = sheet(tmp_path / "a.csv", days("2025-{month:02d}-{day:02d}"), "Frage,Antwort,Datum")
    with pytest.raises(DataError, match="no known format"):
        world_of(path)
    world = world_of(path, columns={"question": "Frage", "outcome": "Antwort", "date": "Datum"})
    assert "Frage as question" in " ".join(report_of(world).notes)
    with pytest.raises(OptionError, match="no field 'quest'"):
        world_of(path, columns="quest=Frage")
    with pytest.raises(DataError, match="no column 'Fragen'"):
        world_of(path, columns="question=Fragen,outcome=Antwort,date=Datum")


def test_a_state_is_no_answer(tmp_path: Path) -> None:
    """Exports of markets say `resolved: true` of questions whatever their answer."""
    path = sheet(tmp_path / "a.csv", ["2025-03-01"], "Title,Resolved,Date")
    with pytest.raises(DataError, match=r"lacks \['outcome'\]"):
        world_of(path)


def test_two_dates_and_a_context_are_taken_by_synonym(tmp_path: Path) -> None:
    path = sheet(
        tmp_path / "a.csv",
        ["2025-03-01", "2025-03-02"],
        "QUESTION TEXT,Result,Created,Close Date,Context",
        ",2025-05-01,Mills close early.",
    )
    task = tasks_of(world_of(path))[0]
    assert task.instance["resolves_by"] == "2025-05-01"
    assert task.instance["background"] == "Mills close early."
    assert task.answer["key"].startswith("a.csv row ")
