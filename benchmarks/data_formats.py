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
        for k in range(GOOD)
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
    ("energy", "plain CSV", lambda: {"d.csv": table(days(load_kw=""))}),
    ("energy", "plain CSV, a load below 0", lambda: {"d.csv": table(days(load_kw=-1))}),
    ("energy", "CityLearn's building", lambda: {"b.csv": table(building())}),
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
        report, _ = levels_of(world, {"data": paths})
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
