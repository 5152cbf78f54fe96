"""An evaluation's results for people and for tables: terminal, HTML, CSV."""

import csv
import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from tokengym.agents.analysis.report import Report, Table
from tokengym.agents.evaluation.config import EvaluationConfig, WorldLevel
from tokengym.agents.evaluation.results import PairResult, PolicyResult, Results
from tokengym.rewards.estimates import Estimate

_ABSOLUTE = re.compile(r"(^|:)(?:/[^/@]+)+/([^/@]+)(?=@|$)")
"""An absolute path in a policy's name, such as `openai:/home/me/model@http://127.0.0.1:8000/v1`."""


def evaluation_report(config: EvaluationConfig, results: Results) -> Report:
    """Lay out what an evaluation found."""
    tasks = ", ".join(
        f"{_name(one)} {one.tasks} x {one.rollouts}"
        for one in {(one.world, one.level): one for one in results.policies}.values()
    )
    lines = [
        f"Tasks ({config.split}) x rollouts: {tasks}. Intervals: 95 %, clustered by Task.",
        "Skill: 0 is the best policy that ignores the Task, 1 the oracle. Success: at most "
        f"{config.success_margin:g} below the oracle's return on the Task. Expected: what replies "
        "earn on average over outcomes, where that is known.",
    ]
    names = _short_names({one.policy for one in results.policies})
    lines += [f"{short}: {name}" for name, short in sorted(names.items()) if short != name]
    parts = [_figures(name, of, names) for name, of in _by_world(results.policies).items()]
    if results.pairs:
        parts.append(_pairs(results, names))
    return Report("Evaluation", lines, parts)


def _name(one: PolicyResult | PairResult) -> str:
    """Return the world and level of a result: `energy:day`."""
    return WorldLevel(one.world, one.level).name


def _by_world(policies: Sequence[PolicyResult]) -> Mapping[str, list[PolicyResult]]:
    found: dict[str, list[PolicyResult]] = {}
    for one in policies:
        found.setdefault(f"{_name(one)}, {one.role}", []).append(one)
    return found


def _short_names(policies: Collection[str]) -> Mapping[str, str]:
    """Return policies' names with absolute paths cut to their last part, unless two become equal.

    A table with a directory's whole path at the head of a column is wider than a terminal.
    """
    short = {name: _ABSOLUTE.sub(r"\1\2", name) for name in policies}
    counts = Counter(short.values())
    return {name: cut if counts[cut] == 1 else name for name, cut in short.items()}


def _figures(name: str, policies: Sequence[PolicyResult], names: Mapping[str, str]) -> Table:
    """Lay out the figures of policies side by side; those that no policy has are left out."""
    columns = [{"": names[one.policy], **_cells(one)} for one in policies]
    figures = dict.fromkeys(figure for column in columns for figure in column)
    rows = [(figure, *(column.get(figure, "") for column in columns)) for figure in figures]
    shown = [row for row in rows[1:] if any(row[1:])]
    return Table(rows[0], shown, name)


def _cells(one: PolicyResult) -> dict[str, str]:
    most = max(one.pass_at)
    return {
        "return": _unbroken(one.mean_return),
        "expected": "" if one.expected is None else _unbroken(one.expected),
        "skill": "" if math.isnan(one.skill.value) else _unbroken(one.skill),
        "success": _share(one.success),
        f"pass@{most}": "" if most == 1 else _share(one.pass_at[most]),
        **{name: _score(score) for name, score in one.scores.items()},
        "violations": "" if one.violations is None else _share(one.violations),
        "malformed": _share(one.malformed),
        "cut off": "" if one.cut_off.value == 0.0 else _share(one.cut_off),
        "refused": "" if one.refused.value == 0.0 else _share(one.refused),
        "failed": f"{one.failed} of {one.tasks * one.rollouts}" if one.failed else "",
        "temperature": "" if one.temperature is None else f"{one.temperature:g}",
        "limit": "" if one.max_tokens is None else f"{one.max_tokens}",
        "tokens read": "" if one.prompt_tokens is None else f"{one.prompt_tokens:,}",
        "tokens written": "" if one.completion_tokens is None else f"{one.completion_tokens:,}",
        "cost": "" if one.cost is None else f"${one.cost:.2f}",
    }


def _pairs(results: Results, names: Mapping[str, str]) -> Table:
    rows = [
        (
            _name(one),
            f"{names[one.first]} - {names[one.second]}",
            _unbroken(one.difference),
            _p_value(one.p_corrected),
            f"{one.detectable:.3f}",
        )
        for one in results.pairs
    ]
    several = f"p is corrected for {len(rows)} comparisons (Holm). " if len(rows) > 1 else ""
    return Table(
        ("world", "difference of", "return", "p", "could show"),
        rows,
        "Paired by Task",
        f"{several}'Could show' is the smallest true difference that a sample like this finds in "
        "four of five cases.",
    )


def _score(score: float | Estimate) -> str:
    number = score.value if isinstance(score, Estimate) else score
    if math.isnan(number):
        return ""
    return _unbroken(score) if isinstance(score, Estimate) else f"{score:.3f}"


def _share(share: Estimate) -> str:
    return f"{share.value:.1%} ({100 * share.low:.0f} to {100 * share.high:.0f})"


def _unbroken(estimate: Estimate) -> str:
    """Return value and half width, joined by non-breaking spaces."""
    return str(estimate).replace(" ", "\N{NO-BREAK SPACE}")


def _p_value(p_value: float) -> str:
    return "< 0.001" if p_value < 0.001 else f"{p_value:.3f}"


def write_tables(folder: Path, results: Results) -> None:
    """Write `policies.csv` and `pairs.csv`: one row each, an estimate as three columns."""
    for name, rows in results.to_dict().items():
        flat = [_flat(row) for row in rows]
        columns = list(dict.fromkeys(key for row in flat for key in row))
        with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, columns)
            writer.writeheader()
            writer.writerows(flat)


def _flat(data: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in data.items():
        if isinstance(value, Mapping):
            found |= _flat(value, f"{prefix}{name}.")
        else:
            found[f"{prefix}{name}"] = value
    return found
