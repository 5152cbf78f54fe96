"""Small files of real-looking questions for the tests of the loaders, and worlds over them."""

import csv
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tokengym.envs.core.seeding import SPLITS
from tokengym.envs.core.task import Task
from tokengym.envs.forecasting.world import ForecastWorld
from tokengym.envs.intake.report import IntakeReport
from tokengym.envs.registry import make_world


def plain(number: int, **changes: Any) -> dict[str, Any]:
    """A question asked on day `number` of 2025 and resolved 5 days later."""
    month, day = divmod(number, 28)
    late_month, late_day = divmod(number + 5, 28)
    row = {
        "id": f"q{number}",
        "event": f"event {number}",
        "question": f"Will river {number} rise above its mark?",
        "background": "It has rained.",
        "asked_at": f"2025-{month + 1:02}-{day + 1:02}T09:00:00Z",
        "resolves_at": f"2025-{late_month + 1:02}-{late_day + 1:02}T15:30:00Z",
        "outcome": number % 2,
    }
    return {**row, **changes}


def write_lines(path: Path, rows: Iterable[object]) -> Path:
    """Write JSON lines; a text stands for itself."""
    lines = (row if isinstance(row, str) else json.dumps(row) for row in rows)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def write_json(path: Path, document: object) -> Path:
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def snapshot(number: int, **changes: Any) -> dict[str, Any]:
    """A Prophet Arena row: an event with two markets."""
    row = plain(number)
    return {
        "submission_id": f"s{number}",
        "event_ticker": f"MATCH-{number}",
        "title": f"Match {number}: who wins?",
        "snapshot_time": row["asked_at"],
        "close_time": row["resolves_at"],
        "market_outcome": json.dumps({"Reds": number % 2, "Blues": 1 - number % 2}),
        "category": "Sports",
        "markets": json.dumps(["Reds", "Blues"]),
        "sources": json.dumps(
            [
                {"ranking": 2, "title": "Second", "summary": "The Blues travel."},
                {"ranking": 1, "title": "First", "summary": "The Reds train."},
            ]
        ),
        "market_data": json.dumps({"Reds": {"last_price": 42}, "Blues": {"yes_ask": 60}}),
        **changes,
    }


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    """Write rows as pandas does: lists as text, nothing for what a row lacks."""
    with path.open("w", newline="", encoding="utf-8") as out:
        writer = csv.DictWriter(out, list(dict.fromkeys(name for row in rows for name in row)))
        writer.writeheader()
        writer.writerows(rows)
    return path


def world_of(path: Path | list[Path], **options: Any) -> ForecastWorld:
    world = make_world("tokengym/Forecast-v1", data=path, **options)
    assert isinstance(world, ForecastWorld)
    return world


def tasks_of(world: ForecastWorld) -> list[Task]:
    return [world.task(name, i) for name in SPLITS for i in range(world.size(name) or 0)]


def tasks_by_key(world: ForecastWorld) -> dict[str, Task]:
    return {task.answer["key"]: task for task in tasks_of(world)}


def prompts_of(world: ForecastWorld) -> list[str]:
    return [world.start(task).text for task in tasks_of(world)]


def report_of(world: ForecastWorld) -> IntakeReport:
    assert world.data_report is not None
    return world.data_report


def reasons(world: ForecastWorld) -> list[str]:
    """Return why rows of the data were refused, without the place of each."""
    placed = re.compile(r".*?: row \d+(, id '[^']*')?: ")
    return [placed.sub("", refusal, count=1) for refusal in report_of(world).every]
