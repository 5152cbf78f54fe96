"""Table of the formats of all worlds: rows read, rows refused and why, of files made on the spot.

    python -m benchmarks.data_formats --markdown docs/howto/own_data.md

Every file has good rows and faulty ones. A format that is read as a whole refuses its file at the
first faulty row.
"""

import csv
import gzip
import io
import json
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from textwrap import shorten
from typing import Any

from benchmarks.paper_formats import make_papers, print_or_write
from tokengym.agents.analysis.markdown import markdown_table
from tokengym.agents.cli.data_audit import levels_of
from tokengym.envs.core.errors import TokengymError

BLOCK = "data_formats.py"
GOOD = 48
HOURS = 120
_PLACE = re.compile(r"^.*?(?:, line \d+|:\d+(?:: row \d+[^:]*)?): ")
"""Of a reason, where the row stands."""
_WHY = 90

Files = Mapping[str, bytes]


def questions(**changes: Any) -> list[dict[str, Any]]:
    """Return resolved questions, and then one with changes."""
    rows = [
        {
            "id": f"q{k}",
            "question": f"Will bridge {k} open?",
            "asked_at": f"2023-{k % 12 + 1:02}-01",
            "resolves_at": f"2023-{k % 12 + 1:02}-20",
            "outcome": k % 3 > 0,
        }
        for k in range(GOOD)
    ]
    return [*rows, {**rows[0], "id": "bad", "question": "Will it?", **changes}]


def markets() -> list[dict[str, Any]]:
    """Return markets as Manifold's API gives them, and one that resolved to a probability."""
    start, day = 1672531200000, 86_400_000
    rows = [
        {
            "id": f"m{k}",
            "question": f"Will bridge {k} open?",
            "outcomeType": "BINARY",
            "createdTime": start + 7 * k * day,
            "closeTime": start + (7 * k + 5) * day,
            "resolutionTime": start + (7 * k + 6) * day,
            "resolution": "YES" if k % 3 else "NO",
        }
        for k in range(GOOD)
    ]
    return [*rows, {**rows[0], "id": "soft", "question": "Will it?", "resolution": "MKT"}]


def gamma() -> list[dict[str, Any]]:
    """Return markets as Polymarket's API gives them, and one that resolved to a share."""
    rows = [
        {
            "id": f"{k}",
            "question": f"Will bridge {k} open?",
            "outcomes": '["Yes", "No"]',
            "outcomePrices": '["1", "0"]' if k % 3 else '["0", "1"]',
            "closed": True,
            "startDate": f"2023-{k % 12 + 1:02}-01T09:14:07.483Z",
            "closedTime": f"2023-{k % 12 + 1:02}-20 16:31:01+00",
        }
        for k in range(GOOD)
    ]
    half = {"id": "half", "question": "Will it?", "outcomePrices": '["0.5", "0.5"]'}
    return [*rows, {**rows[0], **half}]


def rounds() -> Files:
    """Return a question set and a resolution set of ForecastBench; a question is not resolved."""
    due = {"forecast_due_date": "2024-05-05"}
    asked = [
        {
            "id": f"s{k}",
            "source": "fred",
            "question": f"Will gauge {k} rise until {{resolution_date}}?",
            "freeze_datetime": "2024-04-25T00:00:00+00:00",
            "freeze_datetime_value": f"{k}.5",
            "resolution_dates": ["2024-05-12", "2024-06-04"],
        }
        for k in range(GOOD)
    ]
    resolved = [
        {"id": f"s{k}", "source": "fred", "resolution_date": date, "resolved_to": k % 2,
         "resolved": k > 0 or date < "2024-06"}
        for k in range(GOOD)
        for date in ("2024-05-12", "2024-06-04")
    ]  # fmt: skip
    return {
        "asked.json": json.dumps({**due, "questions": asked}).encode(),
        "resolved.json": json.dumps({**due, "resolutions": resolved}).encode(),
    }


def parts() -> Files:
    """Return a load, PVWatts' hours and ENTSO-E's prices, which begin half a day later."""
    hours = [datetime(2024, 5, 1) + timedelta(hours=k) for k in range(HOURS)]
    sun = [
        {"Month": t.month, "Day": t.day, "Hour": t.hour, "AC System Output (W)": 90 * t.hour}
        for t in hours
    ]
    prices = [
        {"MTU (CET/CEST)": f"{t:%d/%m/%Y %H:%M:%S} - ", "Area": "BZN|FR",
         "Day-ahead Price (EUR/MWh)": 500 if 16 <= t.hour < 20 else 250}
        for t in hours[12:]
    ]  # fmt: skip
    return {
        "load.csv": table(
            [{"time": t.isoformat(), "load_kw": 0.5 + t.hour % 3 / 10} for t in hours]
        ),
        "pvwatts_hourly.csv": b'"PVWatts: Hourly PV Performance Data"\n' + table(sun),
        "prices.csv": table(prices),
    }


def days(**changes: object) -> list[dict[str, Any]]:
    """Return hours of a home, the last with changes."""
    start = datetime(2024, 5, 1)
    rows: list[dict[str, Any]] = [
        {
            "time": (start + timedelta(hours=k)).isoformat(),
            "load_kw": 0.5 + k % 3 / 10,
            "pv_kw": 2.0 if 8 < k % 24 < 16 else 0.0,
            "price_import": 0.5 if 16 <= k % 24 < 20 else 0.25,
            "price_export": 0.06,
            "grid_up": 1,
        }
        for k in range(HOURS)
    ]
    return [*rows[:-1], {**rows[-1], **changes}]


def building() -> list[dict[str, Any]]:
    """Return hours of a building of CityLearn, with heat that is not played."""
    return [
        {
            "hour": k % 24 + 1,
            "non_shiftable_load": 0.8,
            "solar_generation": 400.0 if 8 < k % 24 < 16 else 0.0,
            "heating_demand": 2.0,
        }
        for k in range(HOURS)
    ]


def sales() -> list[dict[str, Any]]:
    """Return sales of two articles, one of them with a gap, in numbers as pandas writes them."""
    rows = [
        {"period": float(k), "sku": sku, "qty": float(k % 4)}
        for k in range(GOOD + 12)
        for sku in ("bolt", "nut")
    ]
    return rows[:-1]


def lines(rows: Sequence[Any], *more: str) -> bytes:
    """Return JSON lines, and then others."""
    return "\n".join([*map(json.dumps, rows), *more]).encode()


def table(rows: Sequence[Mapping[str, Any]], delimiter: str = ",") -> bytes:
    """Return a CSV with blank lines at its end."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), delimiter=delimiter, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return f"{text.getvalue()}\n\n".encode()


FORMATS: Sequence[tuple[str, str, Callable[[], Files]]] = (
    (
        "forecast",
        "plain, JSON lines",
        lambda: {"q.jsonl": lines(questions(outcome="maybe"), '{"id": ', '{"id": 1, "id": 2}')},
    ),
    (
        "forecast",
        "the same, gzipped array",
        lambda: {"q.json": gzip.compress(json.dumps([*questions(asked_at="soon"), 7]).encode())},
    ),
    (
        "forecast",
        "plain, CSV",
        lambda: {"q.csv": table(questions(outcome=2.0)) + b"short,row\n"},
    ),
    ("forecast", "Manifold", lambda: {"m.jsonl": lines(markets())}),
    ("forecast", "Manifold, CSV", lambda: {"m.csv": table(markets())}),
    ("forecast", "Polymarket", lambda: {"m.json": json.dumps(gamma()).encode()}),
    ("forecast", "ForecastBench, both sets", rounds),
    ("energy", "plain CSV", lambda: {"d.csv": table(days(load_kw=""))}),
    ("energy", "plain CSV, a load below 0", lambda: {"d.csv": table(days(load_kw=-1))}),
    ("energy", "CityLearn's building", lambda: {"b.csv": table(building())}),
    ("energy", "load, PVWatts, ENTSO-E's prices", parts),
    ("warehouse", "sales", lambda: {"s.csv": table(sales())}),
    ("warehouse", "sales, semicolons", lambda: {"s.csv": table(sales(), ";")}),
    ("disruption", "labelled papers", lambda: {"p.jsonl": lines(make_papers())}),
    (
        "disruption",
        "labelled papers, one without a title",
        lambda: {"p.jsonl": lines([*make_papers(), {"openalex_id": "W0"}])},
    ),
)


def measure(folder: Path, world: str, files: Files) -> tuple[str, str, str]:
    """Return rows read, rows refused, and the reasons or why the files are refused."""
    paths = []
    for name, content in files.items():
        paths.append(str(folder / name))
        (folder / name).write_bytes(content)
    try:
        zone = {"zone": "Europe/Berlin"} if world == "energy" else {}
        report, _ = levels_of(world, {"data": paths, **zone})
    except TokengymError as error:
        return "0", "all", shorten(_PLACE.sub("", str(error)), _WHY, placeholder=" …")
    refused = sum(one.rows for one in report.dropped)
    return f"{sum(report.rows.values())}", f"{refused}", "; ".join(d.why for d in report.dropped)


def formats_table() -> str:
    """Return the table as Markdown."""
    rows = []
    for world, what, write in FORMATS:
        with tempfile.TemporaryDirectory() as folder:
            read, refused, why = measure(Path(folder), world, write())
        rows.append((world, what, read, refused, why.replace("|", "/")))
    return markdown_table(("world", "format", "rows read", "rows refused", "why"), rows)


if __name__ == "__main__":
    print_or_write(__doc__, BLOCK, formats_table)
