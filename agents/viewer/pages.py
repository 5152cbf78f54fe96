"""The page: as files for the server, or as one file with the runs in it."""

import base64
import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tokengym.agents.viewer.run_view import RunView

_FOLDER = Path(__file__).parent / "static"
_STYLE = "viewer.css"
_SCRIPTS = ("dom.js", "source.js", "charts.js", "table.js", "rollout.js", "compare.js", "app.js")

STATIC: Mapping[str, str] = {
    name: (_FOLDER / name).read_text(encoding="utf-8") for name in (_STYLE, *_SCRIPTS)
}
"""The files that pages are made of, by name."""
_MARKUP = 2_000
"""Bytes of a page around its data, its script and its style."""
TYPES: Mapping[str, str] = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
}

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Tokengym viewer</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
{head}</head><body><main id="app" aria-busy="true"><p>Reading the runs…</p></main>
{tail}</body></html>
"""


def index_page() -> str:
    """Return the page that the server serves."""
    head = f'<link rel="stylesheet" href="/static/{_STYLE}">\n'
    scripts = "".join(f'<script defer src="/static/{name}"></script>\n' for name in _SCRIPTS)
    return _PAGE.format(head=head + scripts, tail="")


def whole_page(runs: Mapping[str, RunView], most_bytes: int) -> str:
    """Return one page with runs in it, which needs no server and no other file.

    All curves are in it, and a sample of the rollouts, which the page states: Tasks of the
    evaluations in one half of the room, the same in each, and groups of the steps in the other,
    spaced evenly.

    Args:
        runs: the runs by name.
        most_bytes: bound of the page.
    """
    script, style = "\n".join(STATIC[name] for name in _SCRIPTS), STATIC[_STYLE]
    data = [{**view.summary(), "curves": view.curves()} for view in runs.values()]
    room = most_bytes - len(_json(data)) - len(script) - len(style) - _MARKUP
    for run, view in zip(data, runs.values(), strict=True):
        run |= _sample(view, room // len(runs))
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    head = (
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n<style>{style}</style>\n'
    )
    tail = (
        f'<script type="application/json" id="data">{_json({"runs": data})}</script>\n'
        f"<script>{script}</script>\n"
    )
    return _PAGE.replace("{head}", head).replace("{tail}", tail)


def _json(data: Any) -> str:
    # Data is no code, but `</script>` in it would end it, and `<!--` would comment the rest out.
    return json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _sample(view: RunView, room: int) -> dict[str, Any]:
    """Return the tables and groups of a run that fit into `room` bytes."""
    tables = view.tables()
    for table in tables.values():
        del table["stamp"]
    evaluations = [name for name in tables if not name.startswith("train_")]
    steps = [name for name in tables if name not in evaluations]
    half = room // 2 if evaluations and steps else room
    # A step's share of the room; what evaluations share are their Tasks.
    sampled = _fitting(view, tables, evaluations, half)
    for step in steps:
        sampled |= _fitting(view, tables, [step], half // len(steps))
    return {
        "tables": {name: table for name, (table, _) in sampled.items()},
        "groups": {name: groups for name, (_, groups) in sampled.items()},
        "all_rows": {name: len(table["return"]) for name, table in tables.items()},
    }


def _fitting(
    view: RunView, tables: Mapping[str, dict[str, Any]], names: Sequence[str], room: int
) -> dict[str, tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Return the table and the groups of segments: of as many Tasks as fit, the same in each."""
    packed: dict[str, dict[str, dict[str, Any]]] = {name: {} for name in names}
    sizes: Counter[str] = Counter()
    for name in names:
        for rows, records in view.groups(name):
            plain = [record.to_dict() for record in records]
            for record in plain:  # a page shows the texts of tokens, not their numbers
                record["turns"] = [{**turn, "tokens": ()} for turn in record["turns"]]
            task = f"{records[0].fingerprint} {records[0].role} {records[0].origin.group}"
            packed[name][task] = {"rows": rows, "records": plain}
            row = {key: [column[at] for at in rows] for key, column in tables[name].items()}
            sizes[task] += len(_json(plain)) + len(_json(row))
    count, tasks = len(sizes), list(sizes)
    while count and sum(sizes[task] for task in _spaced(tasks, count)) > room:
        count = count * 9 // 10
    sampled = {}
    for name, groups in packed.items():
        held = [groups[task] for task in _spaced(tasks, count) if task in groups]
        rows = [row for group in held for row in group["rows"]]
        table = {key: [column[at] for at in rows] for key, column in tables[name].items()}
        sampled[name] = ({**table, "row": rows}, held)
    return sampled


def _spaced(tasks: Sequence[str], count: int) -> list[str]:
    """Return `count` of some Tasks, spaced evenly."""
    return [tasks[at * len(tasks) // count] for at in range(count)]


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
