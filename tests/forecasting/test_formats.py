"""Laws of the formats: what each reads, what each refuses, and which of its fields never show."""

from pathlib import Path
from typing import Any

from tests.forecasting.questions_file import (
    plain,
    reasons,
    tasks_by_key,
    world_of,
    write_csv,
    write_json,
    write_lines,
)
from tokengym.envs.core.seeding import SPLITS

JANUARY_2025 = 1_735_700_400
"""1 January 2025, 03:00 UTC, in seconds."""

DAY = 86_400


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
    world = world_of(write_json(tmp_path / "markets.json", rows), show_prices=True)
    tasks = tasks_by_key(world)
    assert [tasks[f"m{n}"].answer["outcome"] for n in range(6)] == [0, 1] * 3
    for task in tasks.values():
        assert "9871" not in task.instance_json
        assert task.instance["resolves_by"] is None
        assert task.instance["asked_on"] == f"2025-01-0{int(task.answer['key'][1:]) + 1}"
    assert len(reasons(world)) == 4


def test_manifold_markets_of_a_table_are_those_of_the_api(tmp_path: Path) -> None:
    rows = [
        *(market(n) for n in range(9)),
        market(9, resolution="MKT"),
        market(10, resolution=None),
    ]
    # pandas writes whole numbers of a column with gaps as floats.
    floats = [{**row, "resolutionTime": float(row["resolutionTime"])} for row in rows]
    one, other = (
        world_of(path)
        for path in (write_json(tmp_path / "m.json", rows), write_csv(tmp_path / "m.csv", floats))
    )
    assert tasks_by_key(one) == tasks_by_key(other)
    assert [reason.partition(",")[0] for reason in reasons(other)] == [
        "'resolution' must be 'YES' or 'NO'"
    ] * 2


def gamma(number: int, **changes: Any) -> dict[str, Any]:
    """A market as Polymarket's Gamma API gives it, closed a day after it opened."""
    row = {
        "id": f"{253_000 + number}",
        "question": f"Will vessel {number} dock?",
        "conditionId": f"0x{number:064x}",
        "slug": f"will-vessel-{number}-dock",
        "endDate": "2025-12-31T12:00:00Z",
        "startDate": f"2025-01-{number + 1:02}T09:14:07.483Z",
        "description": 'Resolves to "Yes" if it docks.',
        "outcomes": '["Yes", "No"]',
        "outcomePrices": '["1", "0"]' if number % 2 else '["0", "1"]',
        "volume": "98712.3",
        "active": True,
        "closed": True,
        "createdAt": f"2025-01-{number + 1:02}T06:42:07.4836Z",
        "closedTime": f"2025-01-{number + 2:02} 16:31:01+00",
        "umaResolutionStatus": "resolved",
        "lastTradePrice": 0.9871,
        "events": [{"id": f"{900 + number // 2}", "slug": "docks", "title": "Docks"}],
    }
    return {**row, **changes}


def test_polymarkets_markets_are_read_without_what_came_after(tmp_path: Path) -> None:
    rows = [
        *(gamma(n) for n in range(6)),
        gamma(6, outcomes='["Up", "Down"]', outcomePrices='["0.000002", "0.999998"]'),
        gamma(7, outcomes='["No", "Yes"]', closedTime=None, umaEndDate="2025-01-09T16:31:01Z"),
        gamma(8, closed=False),
        gamma(9, outcomePrices='["0.5", "0.5"]'),
        gamma(10, outcomePrices='["0.995", "0.005"]', umaResolutionStatus="proposed"),
        gamma(11, outcomePrices='["1"]'),
        gamma(14, outcomePrices='["1", "1"]'),
        gamma(12, outcomePrices="[1, "),
        gamma(13, closedTime="2025-01-02 09:00:00+00"),
    ]
    world = world_of(
        write_json(tmp_path / "markets.json", rows), show_prices=True, cutoff="2026-01-01"
    )
    tasks = tasks_by_key(world)
    assert [tasks[f"{253_000 + n}"].answer["outcome"] for n in range(8)] == [0, 1] * 3 + [1, 0]
    assert tasks["253006"].instance["labels"] == ["Up", "Down"]
    assert tasks["253000"].answer["event"] == tasks["253001"].answer["event"] == "event 900"
    for task in tasks.values():
        shown = task.instance_json
        assert not any(later in shown for later in ("9871", "2025-12-31", "16:31", "9999"))
        assert (task.instance["price"], task.instance["resolves_by"]) == (None, None)
    said = [reason.partition(", got")[0] for reason in reasons(world)]
    assert said[:6] == [
        "'closed' must be true: the market is open",
        "'outcomePrices' must be 1 for what happened, else 0",
        "'outcomePrices' must be 1 for what happened, else 0",
        "'outcomePrices' must list 2 prices",
        "'outcomePrices' must be 1 for what happened, else 0",
        "'outcomePrices' is neither JSON nor a Python literal: '[1,'",
    ]
    assert "when the answer was already known" in said[6]
    rows = [{**row, "events": str(row["events"])} for row in rows]
    of_table = world_of(write_csv(tmp_path / "markets.csv", rows), cutoff="2026-01-01")
    assert tasks_by_key(of_table).keys() == tasks.keys()


def test_polymarkets_events_are_their_markets_together(tmp_path: Path) -> None:
    events = [
        {"id": f"{900 + n}", "slug": "docks", "title": "Docks", "closed": True,
         "markets": [{k: v for k, v in gamma(2 * n + m).items() if k != "events"} for m in (0, 1)]}
        for n in range(6)
    ]  # fmt: skip
    events[5]["markets"][1]["closed"] = False  # type: ignore[index]
    world = world_of(write_json(tmp_path / "events.json", events))
    apart = world_of(write_json(tmp_path / "m.json", [gamma(n) for n in range(11)]))
    assert tasks_by_key(world) == tasks_by_key(apart)
    assert reasons(world) == ["'closed' must be true: the market is open (question '253011')"]


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
    return {"id": number, "title": f"Will law {number} pass?", "question": {**question, **changes}}


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
    world = world_of(write_json(tmp_path / "page.json", {"results": posts, "next": None}))
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
    world = world_of(write_json(tmp_path / "autocast.json", rows))
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
    world = world_of(write_json(tmp_path / "autocast.json", rows))
    assert not reasons(world)
    seen: dict[str, set[str]] = {}
    for name in SPLITS:
        for index in range(world.size(name) or 0):
            answer = world.task(name, index).answer
            seen.setdefault(answer["event"], set()).add(f"{name} {answer['outcome']}")
    assert all(len(splits) == 2 for splits in seen.values())
    assert all(len({one.split()[0] for one in splits}) == 1 for splits in seen.values())


def test_files_of_several_formats_are_read_together(tmp_path: Path) -> None:
    paths = [
        write_json(tmp_path / "markets.json", [market(1)]),
        write_lines(tmp_path / "plain.jsonl", [plain(1)]),
        write_json(tmp_path / "posts.json", {"results": [post(1)]}),
    ]
    assert set(tasks_by_key(world_of(paths, cutoff="2024-12-01"))) == {"m1", "q1", "101"}
