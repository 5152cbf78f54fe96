"""A Prophet Arena table of our own making: the columns and cells of the published format."""

import csv
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

START = datetime(2025, 9, 20, 12, 1, 9, 330143, tzinfo=UTC)
TEAMS = ("Ada FC", "Ben United", "Tie", "Cleo Rovers", "Zed's Eleven", "Dan Town")
COLUMNS = (
    *("submission_id", "event_ticker", "title", "snapshot_time", "close_time", "market_outcome"),
    *("category", "markets", "sources", "market_data"),
)


def row(rng: np.random.Generator, number: int, event: int) -> dict[str, Any]:
    """Return a snapshot of an event, which decides everything but its time, sources and prices."""
    fixed = np.random.default_rng(event)
    markets = fixed.permutation(TEAMS)[: int(fixed.integers(1, 5))].tolist()
    opened = START + timedelta(days=event, hours=int(fixed.integers(0, 9)))
    closes = opened + timedelta(days=2 + int(fixed.integers(0, 9)), minutes=7)
    taken = opened + (closes - opened) * float(rng.integers(0, 9)) / 10.0
    # An exclusive event: one market wins; in some all lose.
    winner = int(fixed.integers(len(markets) + 1))
    outcomes = {market: int(place == winner) for place, market in enumerate(markets)}
    sources = [
        {"ranking": int(rank), "title": f"Report {number}-{rank}", "summary": "It's close. "}
        for rank in rng.permutation(4)
    ]
    prices = {market: {"last_price": int(rng.integers(1, 99))} for market in markets}
    # Published cells are JSON or Python literals.
    write = json.dumps if number % 2 else repr
    return {
        "submission_id": f"sub-{number:04}",
        "event_ticker": f"EV-{event:03}",
        "title": f"Cup round {event}",
        "snapshot_time": taken.isoformat(),
        "close_time": closes.isoformat().replace("+00:00", "Z"),
        "market_outcome": write(outcomes),
        "category": "Sports",
        "markets": write(markets),
        "sources": write(sources),
        "market_data": write(prices),
    }


def write_arena(path: Path, events: int = 60) -> Path:
    """Write one to three snapshots of each event, in no order."""
    rng = np.random.default_rng(5)
    numbered = enumerate(rng.permutation(np.repeat(np.arange(events), rng.integers(1, 4, events))))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(row(rng, number, int(event)) for number, event in numbered)
    return path
