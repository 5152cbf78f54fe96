"""Laws of the formats: what each reads, what each refuses, and which of its fields never show."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.forecasting.questions_file import plain, write_lines
from tokengym.envs.core.errors import DataError
from tokengym.envs.core.seeding import SPLITS
from tokengym.envs.core.task import Task
from tokengym.envs.forecasting.world import ForecastWorld
from tokengym.envs.registry import make_world

JANUARY_2025 = 1_735_700_400
"""1 January 2025, 03:00 UTC, in seconds."""

DAY = 86_400


def world_of(path: Path | list[Path], **options: Any) -> ForecastWorld:
    world = make_world("forecast", data=path, **options)
    assert isinstance(world, ForecastWorld)
    return world


def tasks_by_key(world: ForecastWorld) -> dict[str, Task]:
    tasks = [world.task(name, i) for name in SPLITS for i in range(world.size(name) or 0)]
    return {task.answer["key"]: task for task in tasks}


def reasons(world: ForecastWorld) -> list[str]:
    assert world.data_report is not None
    return [rejection.reason for rejection in world.data_report.rejected]


def write(path: Path, document: object) -> Path:
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def market(number: int, **changes: Any) -> dict[str, Any]:
    start = 1000 * (JANUARY_2025 + number * DAY)
    row = {
        "id": f"m{number}",
        "question": f"Will launch {number} succeed?",
        "textDescription": "A rocket.",
        "createdTime": start,
        "closeTime": start + 3_600_000,
        "resolutionTime": start + 3_600_000,
        "isResolved": True,
        "outcomeType": "BINARY",
        "resolution": "YES" if number % 2 else "NO",
        "probability": 0.9871,
    }
    return {**row, **changes}


def test_manifold_markets_are_read_without_what_came_after(tmp_path: Path) -> None:
    rows = [
        *(market(n) for n in range(6)),
        market(6, resolution="MKT"),
        market(7, resolution="CANCEL"),
        market(8, outcomeType="MULTIPLE_CHOICE"),
        market(9, resolution=None),
    ]
    world = world_of(write(tmp_path / "markets.json", rows), show_prices=True)
    tasks = tasks_by_key(world)
    assert [tasks[f"m{n}"].answer["outcome"] for n in range(6)] == [0, 1] * 3
    for task in tasks.values():
        assert "9871" not in task.instance_json
        assert task.instance["resolves_by"] is None
        assert task.instance["asked_on"] == f"2025-01-0{int(task.answer['key'][1:]) + 1}"
    assert len(reasons(world)) == 4


def post(number: int, **changes: Any) -> dict[str, Any]:
    question = {
        "id": 100 + number,
        "type": "binary",
        "description": "Some background.",
        "resolution_criteria": "As the ministry reports.",
        "fine_print": "",
        "open_time": JANUARY_2025 + number * DAY,
        "scheduled_resolve_time": "2025-06-30T12:00:00Z",
        "actual_resolve_time": JANUARY_2025 + (number + 2) * DAY,
        "resolution": "yes" if number % 2 else "no",
    }
    return {
        "id": number,
        "title": f"Will law {number} pass?",
        "question": {**question, **changes},
    }


def test_metaculus_posts_show_the_scheduled_date_alone(tmp_path: Path) -> None:
    posts = [
        *(post(n) for n in range(6)),
        post(6, resolution="ambiguous"),
        post(7, resolution="annulled"),
        post(8, type="numeric"),
        post(9, type="multiple_choice", options=["red", "blue"], resolution="blue"),
        {
            "id": 10,
            "title": "Which bills pass?",
            "group_of_questions": {
                "questions": [
                    {**post(10)["question"], "id": 201, "label": "Bill A"},
                    {**post(10)["question"], "id": 202, "label": "Bill B", "resolution": "yes"},
                    {
                        **post(10)["question"],
                        "id": 203,
                        "label": "Bill C",
                        "resolution": "annulled",
                    },
                ]
            },
        },
    ]
    world = world_of(write(tmp_path / "page.json", {"results": posts, "next": None}))
    tasks = tasks_by_key(world)
    assert [tasks[str(100 + n)].answer["outcome"] for n in range(6)] == [0, 1] * 3
    assert {task.instance["resolves_by"] for task in tasks.values()} == {"2025-07-01"}
    assert tasks["109"].instance["labels"] == ["red", "blue"]
    assert tasks["109"].answer["outcome"] == 1
    assert tasks["201"].answer["event"] == tasks["202"].answer["event"]
    assert "As the ministry reports." in tasks["100"].instance["background"]
    assert len(reasons(world)) == 4


def autocast(number: int, **changes: Any) -> dict[str, Any]:
    row = {
        "id": f"G{number}",
        "question": f"Will team {number} qualify?",
        "background": "A cup.",
        "qtype": "t/f",
        "status": "Resolved",
        "publish_time": f"2021-01-{number + 1:02} 19:54:14+00:00",
        "close_time": f"2021-01-{number + 2:02} 04:00:00+00:00",
        "answer": "yes" if number % 2 else "no",
        "choices": ["yes", "no"],
        "crowd": [{"date": "2021-03-01", "forecast": 0.9871}],
    }
    return {**row, **changes}


def test_autocast_questions_are_read_without_the_crowd(tmp_path: Path) -> None:
    rows = [
        *(autocast(n) for n in range(6)),
        autocast(6, qtype="mc", choices=["red", "blue"], answer="B"),
        autocast(7, qtype="mc", choices=["red", "blue"], answer="C"),
        autocast(8, qtype="num", answer=0.3),
        autocast(9, answer=None, status="Active"),
    ]
    world = world_of(write(tmp_path / "autocast.json", rows))
    tasks = tasks_by_key(world)
    assert [tasks[f"G{n}"].answer["outcome"] for n in range(6)] == [0, 1] * 3
    assert tasks["G6"].instance["labels"] == ["red", "blue"]
    assert tasks["G6"].answer["outcome"] == 1
    assert all("9871" not in task.instance_json for task in tasks.values())
    assert all(task.instance["resolves_by"] is None for task in tasks.values())
    assert len(reasons(world)) == 3


def test_a_question_of_autocast_and_its_negation_share_an_event(tmp_path: Path) -> None:
    rows = [
        autocast(n // 2, question=f"Will team {n // 2}{' not' * (n % 2)} qualify?", answer=answer)
        for n, answer in enumerate(["yes", "no"] * 6)
    ]
    world = world_of(write(tmp_path / "autocast.json", rows))
    assert not reasons(world)
    seen: dict[str, set[str]] = {}
    for name in SPLITS:
        for index in range(world.size(name) or 0):
            answer = world.task(name, index).answer
            seen.setdefault(answer["event"], set()).add(f"{name} {answer['outcome']}")
    assert all(len(splits) == 2 for splits in seen.values())
    assert all(len({one.split()[0] for one in splits}) == 1 for splits in seen.values())


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
    asked = write(tmp_path / "questions.json", question_set())
    resolved = write(tmp_path / "resolutions.json", resolution_set())
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


def test_files_of_several_formats_are_read_together(tmp_path: Path) -> None:
    paths = [
        write(tmp_path / "markets.json", [market(1)]),
        write_lines(tmp_path / "plain.jsonl", [plain(1)]),
        write(tmp_path / "posts.json", {"results": [post(1)]}),
    ]
    assert set(tasks_by_key(world_of(paths, cutoff="2024-12-01"))) == {"m1", "q1", "101"}


def test_a_folder_is_read_whatever_its_files_are_called(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    folder.mkdir()
    write(folder / "asked", question_set())
    write(folder / "resolved.txt", resolution_set())
    (folder / ".hidden").write_text("no data")
    together = world_of([folder / "asked", folder / "resolved.txt"])
    assert set(tasks_by_key(world_of(folder))) == set(tasks_by_key(together))
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(DataError, match="at least one file"):
        world_of(empty)
