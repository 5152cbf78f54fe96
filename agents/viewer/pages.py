"""The page: as files for the server, or as one file with the runs in it."""

import base64
import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from tokengym.agents.rollouts import RolloutRecord, evaluation_segment
from tokengym.agents.viewer.library import open_runs
from tokengym.agents.viewer.pictures import draw
from tokengym.agents.viewer.run_view import RunView
from tokengym.agents.viewer.table import groups_of
from tokengym.atomic_write import write_whole
from tokengym.envs.core.errors import DataError, OptionError
from tokengym.envs.core.rendering import can_draw
from tokengym.envs.registry import spec

_FOLDER = Path(__file__).parent / "static"
_STYLE = "viewer.css"
_SCRIPTS = (
    *("dom.js", "source.js", "charts.js", "table.js", "rollout.js", "compare.js", "report.js"),
    "app.js",
)

STATIC: Mapping[str, str] = {
    name: (_FOLDER / name).read_text(encoding="utf-8") for name in (_STYLE, *_SCRIPTS)
}
"""The files that pages are made of, by name."""
REPORT = "report.html"
"""The page that a finished run's folder holds."""

_READING = "<p>Reading the runs…</p>"
_BEFORE, _AFTER = evaluation_segment("before"), evaluation_segment("after")
_CREDENTIALS = re.compile(r"(?<=://)[^/\s\"@]+@")
_ROW = 600
"""Bytes of a rollout's row in its table, at most."""
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
{head}</head><body><main id="app" aria-busy="true">{plain}</main>
{tail}</body></html>
"""


def index_page() -> str:
    """Return the page that the server serves."""
    head = f'<link rel="stylesheet" href="/static/{_STYLE}">\n'
    scripts = "".join(f'<script defer src="/static/{name}"></script>\n' for name in _SCRIPTS)
    return _PAGE.format(head=head + scripts, tail="", plain=_READING)


def write_page(paths: Sequence[Path], file: Path, megabytes: float = 5.0) -> None:
    """Write what some folders and files hold as one page.

    Args:
        paths: as `open_runs` takes them.
        file: where to write it.
        megabytes: bound of the page.

    Raises:
        OptionError: if a path holds nothing to show.
    """
    write_whole(file, whole_page(open_runs(paths), int(megabytes * 1e6)).encode())


def whole_page(runs: Mapping[str, RunView], most_bytes: int) -> str:
    """Return one page with runs in it, which needs no server and no other file.

    All reports and curves are in it, and a sample of the rollouts, which the page states: first
    the groups with the largest and smallest return, advantage and change, then others, spaced
    evenly: Tasks of the evaluations, the same in each, and groups of the steps.

    Args:
        runs: the runs by name.
        most_bytes: bound of the page.
    """
    script, style = "\n".join(STATIC[name] for name in _SCRIPTS), STATIC[_STYLE]
    known = [
        {**view.summary(), "curves": view.curves(), "report": view.report()}
        for view in runs.values()
    ]
    data = json.loads(_CREDENTIALS.sub("", json.dumps(known)))  # an address may have a password
    # Whoever opens it where scripts do not run reads what was found, too.
    reports = [report for run in data if (report := run["report"])]
    found = [line for report in reports for line in (report["warning"], *report["lines"]) if line]
    plain = "".join(f"<p>{escape(line)}</p>\n" for line in found) or _READING
    room = most_bytes - len(_json(data)) - len((script + style + plain).encode()) - _MARKUP
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
    return _PAGE.format(head=head, tail=tail, plain=plain)


def _json(data: Any) -> str:
    # Data is no code, but `</script>` in it would end it, and `<!--` would comment the rest out.
    return json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


class _Group(NamedTuple):
    """A group of a sample; those of one Task in several evaluations go together."""

    step: str
    fingerprint: str
    role: str
    number: int


def _sample(view: RunView, room: int) -> dict[str, Any]:
    """Return the tables and groups of a run that fit into `room` bytes."""
    sizes: dict[bool, Counter[_Group]] = {True: Counter(), False: Counter()}
    counts: Counter[str] = Counter()
    values: dict[tuple[bool, str], list[tuple[float, _Group]]] = {}
    earned: dict[str, dict[_Group, float]] = {_BEFORE: {}, _AFTER: {}}
    for name in view.stamps():
        for record in view.records(name):
            group = _group_of(name, record)
            counts[name] += 1
            sizes[bool(group.step)][group] += len(_json(_shown(record))) + _ROW
            for what, value in (("return", record.total), ("advantage", record.advantage)):
                if value is not None:
                    values.setdefault((bool(group.step), what), []).append((value, group))
            if name in earned:
                earned[name][group] = record.earned
    before, after = earned.values()
    if change := [(after[group] - before[group], group) for group in before if group in after]:
        values[False, "change"] = change
    extremes = [pick(of)[1] for pick in (max, min) for of in values.values()]
    most, changed = max(change, key=lambda one: abs(one[0]), default=(0.0, None))
    pictures = _pictures(view, changed if most else None) if room > 0 else {}
    drawn, left = sum(len(one["picture"]) for one in pictures.values()), room
    while True:
        kept = _kept(sizes, extremes, left - drawn)
        sample = _packed(view, kept, pictures)
        if not kept or len(_json(sample)) <= room:
            return sample | {"all_rows": counts}
        left = left * 9 // 10


def _kept(
    sizes: Mapping[bool, Mapping[_Group, int]], extremes: Sequence[_Group], room: int
) -> set[_Group]:
    """Return the groups that fit: those of the steps have what evaluations leave, at least half."""
    half = room // 2 if sizes[True] else room
    kept = _chosen(sizes[False], extremes, half)
    left = room - sum(sizes[False][group] for group in kept)
    return kept | _chosen(sizes[True], extremes, left)


def _packed(
    view: RunView, kept: set[_Group], pictures: Mapping[tuple[str, _Group], dict[str, str]]
) -> dict[str, Any]:
    """Return tables and groups of the rollouts in some groups."""
    tables, packed = {}, {}
    for name in view.stamps():
        records = [one for one in view.records(name) if _group_of(name, one) in kept]
        if records:
            tables[name] = view.table(name, records)
            shown = [
                _shown(one) | pictures.get((name, _group_of(name, one)), {}) for one in records
            ]
            packed[name] = [
                {"rows": rows, "records": [shown[row] for row in rows]}
                for rows in groups_of(records).values()
            ]
    return {"tables": tables, "groups": packed}


def _group_of(segment: str, record: RolloutRecord) -> _Group:
    step = segment if segment.startswith("train_") else ""
    return _Group(step, record.fingerprint, record.role, record.origin.group)


def _shown(record: RolloutRecord) -> dict[str, Any]:
    """Return a rollout as pages show it: texts of tokens, not their numbers, and few digits."""
    plain = record.to_dict()
    plain["turns"] = [
        {
            **turn,
            "tokens": (),
            "logprobs": [p if p is None else round(p, 3) for p in turn["logprobs"]],
        }
        for turn in plain["turns"]
    ]
    return plain


def _chosen(sizes: Mapping[_Group, int], extremes: Sequence[_Group], room: int) -> set[_Group]:
    """Return as many groups as fit: the extremes first, then others, spaced evenly."""
    first, groups = [group for group in extremes if group in sizes], list(sizes)
    count = len(groups)
    while first or count:
        chosen = {*first, *(groups[at * len(groups) // count] for at in range(count))}
        if sum(sizes[group] for group in chosen) <= room:
            return chosen
        if count:
            count = count * 9 // 10
        else:
            first.pop()
    return set()


def _pictures(view: RunView, group: _Group | None) -> dict[tuple[str, _Group], dict[str, str]]:
    """Return by segment what is added to the rollouts of a Task before and after: its picture."""
    pictures: dict[tuple[str, _Group], dict[str, str]] = {}
    if group is None:
        return pictures
    for name in (_BEFORE, _AFTER):
        for record in view.records(name):
            if _group_of(name, record) == group and can_draw(spec(record.world)):
                with suppress(OptionError, DataError):  # of files of a user's, or changed since
                    drawn = base64.b64encode(draw(record)).decode()
                    pictures[name, group] = {"picture": f"data:image/png;base64,{drawn}"}
    return pictures


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
