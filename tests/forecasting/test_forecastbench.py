"""Sets of ForecastBench are joined, in files or a folder, and split by series or at a cutoff."""

from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.forecasting.questions_file import reasons, tasks_by_key, world_of, write_json
from tokengym.envs.core.errors import DataError
from tokengym.envs.core.seeding import SPLITS


def question_set() -> dict[str, Any]:
    common = {"freeze_datetime": "2025-01-01T00:00:00+00:00", "background": "N/A"}
    return {
        "forecast_due_date": "2025-01-11",
        "question_set": "2025-01-11-llm.json",
        "questions": [
            {
                **common,
                "id": "d1",
                "source": "fred",
                "question": "Will rates have risen by {resolution_date} since {forecast_due_date}?",
                "freeze_datetime_value": "4.21",
                "resolution_criteria": "As the bank reports.",
                "resolution_dates": ["2025-01-18", "2025-02-10"],
            },
            {
                **common,
                "id": "m1",
                "source": "manifold",
                "question": "Will the comet be seen?",
                "freeze_datetime_value": "0.37",
                "resolution_criteria": "N/A",
                "resolution_dates": "N/A",
            },
            {**common, "id": "lost", "source": "fred", "question": "Never resolved?"},
            {**common, "id": ["d1", "d2"], "source": "fred", "question": [1, 2]},
        ],
    }


def resolution_set() -> dict[str, Any]:
    def row(key: object, source: str, date: str, to: object, resolved: bool) -> dict[str, Any]:
        return {
            "id": key,
            "source": source,
            "direction": None,
            "resolution_date": date,
            "resolved_to": to,
            "resolved": resolved,
        }

    return {
        "forecast_due_date": "2025-01-11",
        "question_set": "2025-01-11-llm.json",
        "resolutions": [
            row("d1", "fred", "2025-01-18", 1.0, True),
            row("d1", "fred", "2025-02-10", 0.0, True),
            row("m1", "manifold", "2025-01-23", 1, True),
            row("m1", "manifold", "2025-03-01", 0.4, False),
            row("m1", "manifold", "2025-03-02", 0.4, True),
            row("unknown", "fred", "2025-03-01", 1, True),
            row(["d1", "d2"], "fred", "2025-03-01", 1, True),
        ],
    }


@pytest.mark.parametrize("order", [1, -1])
def test_forecastbench_sets_are_joined_in_either_order(order: int, tmp_path: Path) -> None:
    asked = write_json(tmp_path / "questions.json", question_set())
    resolved = write_json(tmp_path / "resolutions.json", resolution_set())
    world = world_of([asked, resolved][::order], show_prices=True)
    tasks = tasks_by_key(world)
    assert set(tasks) == {
        "fred:d1:2025-01-11:2025-01-18",
        "fred:d1:2025-01-11:2025-02-10",
        "manifold:m1:2025-01-11:2025-01-23",
    }
    soon, later = (tasks[f"fred:d1:2025-01-11:{date}"] for date in ("2025-01-18", "2025-02-10"))
    assert soon.answer == {**later.answer, "outcome": 1, "key": soon.answer["key"]}
    assert "risen by 2025-01-18 since 2025-01-11?" in soon.instance["question"]
    assert soon.instance["price"] is None
    assert "Value on 2025-01-01: 4.21" in soon.instance["background"]
    seen = tasks["manifold:m1:2025-01-11:2025-01-23"]
    assert "2025-01-23" not in seen.instance_json
    assert seen.instance["price"] == pytest.approx([0.63, 0.37])
    assert "N/A" not in seen.instance_json
    said = reasons(world)
    assert len(said) == 6
    assert sum("combinations" in reason for reason in said) == 2
    assert sum("no resolution" in reason for reason in said) == 1
    assert sum("no question" in reason for reason in said) == 1


def bench_sets(folder: Path, due: date, series: Sequence[int], weeks: Sequence[int]) -> list[Path]:
    """A set of questions on series, each with a horizon by week, and its resolutions."""
    horizons = [(due + timedelta(weeks=week)).isoformat() for week in weeks]
    frozen = f"{due - timedelta(days=10)}T00:00:00+00:00"
    questions = [
        {
            "id": f"s{number}",
            "source": "fred",
            "question": f"Will {number} rise from {{forecast_due_date}} to {{resolution_date}}?",
            "background": "N/A",
            "resolution_criteria": "N/A",
            "freeze_datetime": frozen,
            "freeze_datetime_value": f"{number}.25" if number % 2 else "No",
            "resolution_dates": horizons,
        }
        for number in series
    ]
    resolutions = [
        {"id": f"s{number}", "source": "fred", "direction": None, "resolution_date": horizon,
         "resolved_to": float((number + at) % 2), "resolved": True}
        for at, horizon in enumerate(horizons)
        for number in series
    ]  # fmt: skip
    common = {"forecast_due_date": f"{due}", "question_set": f"{due}-llm.json"}
    return [
        write_json(folder / f"{due}-llm.json", {**common, "questions": questions}),
        write_json(folder / f"{due}-resolved.json", {**common, "resolutions": resolutions}),
    ]


DUE = date(2025, 3, 2)


def test_more_rounds_give_more_questions_to_train_on(tmp_path: Path) -> None:
    rounds = [
        bench_sets(tmp_path, DUE + timedelta(weeks=2 * n), range(20 * n, 20 * n + 40), (1, 4, 13))
        for n in range(3)
    ]
    one, two, three = (
        world_of([path for each in rounds[:n] for path in each]).size("train") or 0
        for n in (1, 2, 3)
    )
    assert 82 <= one <= 86
    assert (two, three) > (1.9 * one, 2.8 * one)
    shown = [t.instance["background"] for t in tasks_by_key(world_of(rounds[0])).values()]
    assert {text.split(":")[0] for text in shown} == {"Value on 2025-02-20"}
    assert {text.split(": ")[1] for text in shown if "No" in text} == {"No"}


@pytest.mark.nightly
@given(data=st.data())
def test_rounds_are_split_by_series_or_cutoff(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whatever the order of files: what was joined is together, and what is read was written."""
    folder = tmp_path_factory.mktemp("rounds")
    paths, asked = [], set()
    for number in range(data.draw(st.integers(1, 3))):
        series = sorted(data.draw(st.sets(st.integers(0, 12), min_size=2)))
        weeks = sorted(data.draw(st.sets(st.integers(1, 9), min_size=1, max_size=3)))
        due = DUE + timedelta(weeks=4 * number)
        paths += bench_sets(folder, due, series, weeks)
        asked |= {
            (s, due.isoformat(), (due + timedelta(weeks=week)).isoformat())
            for s in series
            for week in weeks
        }
    order = data.draw(st.permutations(paths))
    cutoff = data.draw(st.none() | st.sampled_from(sorted({due for _, due, _ in asked})))
    world, again = world_of(order, cutoff=cutoff), world_of(paths, cutoff=cutoff)
    assert tasks_by_key(world) == tasks_by_key(again)
    used: dict[str, set[tuple[str, ...]]] = {name: set() for name in SPLITS}
    for name in SPLITS:
        for index in range(world.size(name) or 0):
            _, series, due, horizon = world.task(name, index).answer["key"].split(":")
            used[name].add((series, due, horizon))
    written = {(f"s{number}", due, horizon) for number, due, horizon in asked}
    of_series = {name: {key[0] for key in keys} for name, keys in used.items()}
    assert not of_series["train"] & of_series["validation"]
    if cutoff is None and len({number for number, _, _ in asked}) > 1:
        assert set.union(*used.values()) == written
        assert not of_series["test"] & (of_series["train"] | of_series["validation"])
    else:
        assert used["test"] == {key for key in written if key[1] >= str(cutoff)}
        learned = used["train"] | used["validation"]
        assert learned == {key for key in written if key[2] < str(cutoff)}


def test_a_folder_is_read_whatever_its_files_are_called(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    folder.mkdir()
    write_json(folder / "asked", question_set())
    write_json(folder / "resolved.txt", resolution_set())
    (folder / ".hidden").write_text("no data")
    together = world_of([folder / "asked", folder / "resolved.txt"])
    assert set(tasks_by_key(world_of(folder))) == set(tasks_by_key(together))
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(DataError, match="at least one file"):
        world_of(empty)
