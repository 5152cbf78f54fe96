"""The page: as files for the server, or as one file with the runs in it."""

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tokengym.agents.viewer.run_view import RunView, compare

_FOLDER = Path(__file__).parent / "static"
_STYLE = "viewer.css"
_SCRIPTS = ("dom.js", "source.js", "charts.js", "table.js", "rollout.js", "compare.js", "app.js")

STATIC: Mapping[str, str] = {
    name: (_FOLDER / name).read_text(encoding="utf-8") for name in (_STYLE, *_SCRIPTS)
}
"""The files that pages are made of, by name."""
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

    All curves and tables are in it, and whole rollouts as far as they fit: of every segment the
    first groups, as many of each as there is room for.

    Args:
        runs: the runs by name.
        most_bytes: bound of the rollouts together.
    """
    data: dict[str, Any] = {"runs": [_run(view, most_bytes // len(runs)) for view in runs.values()]}
    data["comparisons"] = _comparisons(list(runs.values()))
    script, style = "\n".join(STATIC[name] for name in _SCRIPTS), STATIC[_STYLE]
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    head = (
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n<style>{style}</style>\n'
    )
    # Data is no code, but `</script>` in it would end it, and `<!--` would comment the rest out.
    plain = json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    tail = (
        f'<script type="application/json" id="data">{plain}</script>\n<script>{script}</script>\n'
    )
    return _PAGE.replace("{head}", head).replace("{tail}", tail)


def _run(view: RunView, most_bytes: int) -> dict[str, Any]:
    tables = view.tables()
    room = most_bytes // max(len(tables), 1)
    groups = {segment: _first_groups(view, segment, room) for segment in tables}
    return {**view.summary(), "curves": view.curves(), "tables": tables, "groups": groups}


def _first_groups(view: RunView, segment: str, most_bytes: int) -> list[dict[str, Any]]:
    groups, size = [], 0
    for rows, records in view.groups(segment):
        group = {"rows": rows, "records": [record.to_dict() for record in records]}
        size += len(json.dumps(group))
        if size > most_bytes:
            break
        groups.append(group)
    return groups


def _comparisons(views: Sequence[RunView]) -> dict[str, Any]:
    return {
        f"{left.name}\n{right.name}": compare(left, right)
        for left in views
        for right in views
        if left is not right
    }


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
