"""An evaluation's results for people and for tables: terminal, page, CSV."""

import csv
import math
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from tokengym.agents.analysis.report import Report, Table
from tokengym.agents.evaluation.config import EvaluationConfig, WorldLevel
from tokengym.agents.evaluation.folder import EvaluationFolder
from tokengym.agents.evaluation.results import PairResult, PolicyResult, Results, WorldResult
from tokengym.agents.settings import read_plain
from tokengym.agents.training.folder.run_summary import form_warning
from tokengym.rewards.estimates import Estimate
from tokengym.rewards.skill import describe_skill

_ABSOLUTE = re.compile(r"(^|:)(?:/[^/@]+)+/([^/@]+)(?=@|$)")
"""An absolute path in a policy's name, such as `openai:/home/me/model@http://127.0.0.1:8000/v1`."""


def evaluation_report(config: EvaluationConfig, results: Results) -> Report:
    """Lay out what an evaluation found."""
    names = _short_names({row.policy for row in results.policies})
    tasks = ", ".join(
        f"{_name(row)} {row.tasks} x {row.rollouts}"
        for row in {(row.world, row.level): row for row in results.policies}.values()
    )
    lines = [
        *(line for row in results.policies for line in _warnings(row, names[row.policy])),
        f"Tasks ({config.split}) x rollouts: {tasks}. Intervals: 95 %, clustered by Task.",
        *(
            f"{names[row.policy]} in {_name(row)}: {row.place}."
            for row in results.policies
            if row.place
        ),
        *map(_measured_by, results.worlds),
        "Skill: 0 is the best policy that ignores the Task, 1 the oracle. Success: at most "
        f"{config.success_margin:g} below the oracle's return on the Task.",
    ]
    if any(row.unit == "expected" for row in results.worlds):
        lines.append(
            "Expected returns are what replies earn on average over outcomes. Skill, success and "
            "differences are of them where they are known: they have no noise of outcomes."
        )
    lines += [f"{short}: {name}" for name, short in sorted(names.items()) if short != name]
    by_world = groupby(results.policies, lambda row: f"{_name(row)}, {row.role}")
    parts = [_figures(name, list(rows), names) for name, rows in by_world]
    if results.pairs:
        parts.append(_pairs(results, names))
    return Report("Evaluation", lines, parts)


def saved_report(folder: EvaluationFolder) -> Report | None:
    """Lay out what a folder's evaluation found; `None` while it is under way.

    Raises:
        DataError: if its file is damaged.
    """
    found = folder.read()["results"]
    if found is None:
        return None
    return evaluation_report(folder.config(), read_plain(Results, _with_nan(found)))


def _with_nan(found: Any, among_scores: bool = False) -> Any:
    """Return saved results whose numbers are NaN where JSON has `null`."""
    if isinstance(found, list):
        return [_with_nan(one) for one in found]
    if not isinstance(found, Mapping):
        return math.nan if among_scores and found is None else found
    numbers = among_scores or {"value", "low", "high"} <= found.keys()
    return {name: _with_nan(one, numbers or name == "scores") for name, one in found.items()}


def _warnings(row: PolicyResult, name: str) -> Iterator[str]:
    """Yield what a reader must know before any figure of a policy."""
    if warning := form_warning(row.malformed.value, row.cut_off.value, row.prompt):
        yield f"{name} in {_name(row)}: {warning}."
    for model, count in row.other_models.items():
        yield f"{name} in {_name(row)}: {count} replies are of another model, {model}."
    if row.failures:
        reasons = ", ".join(f"{count} {reason}" for reason, count in row.failures.items())
        yield (
            f"{name} in {_name(row)}: {sum(row.failures.values())} of {row.tasks * row.rollouts} "
            f"rollouts failed ({reasons}). {row.lost} without an answer are left out of all "
            "figures and intervals; the rest of what was refused counts as empty replies."
        )


def _measured_by(row: WorldResult) -> str:
    """State what the ends of skill and the optimum are, in one unit."""
    unit = "expected returns" if row.unit == "expected" else "returns"
    limit = "optimum" if row.exact else "bound"
    return (
        f"{_name(row)}, {unit}: {row.blind_name} {row.blind.value:.3f}, "
        f"oracle {row.oracle.value:.3f}, {limit} {row.optimum:.3f}."
    )


def _name(row: PolicyResult | PairResult | WorldResult) -> str:
    """Return the world and level of a result: `energy:day`."""
    return WorldLevel(row.world, row.level).name


def _short_names(policies: Collection[str]) -> Mapping[str, str]:
    """Return policies' names with absolute paths cut to their last part, unless two become equal.

    A table with a directory's whole path at the head of a column is wider than a terminal.
    """
    short = {name: _ABSOLUTE.sub(r"\1\2", name) for name in policies}
    counts = Counter(short.values())
    return {name: cut if counts[cut] == 1 else name for name, cut in short.items()}


def _figures(name: str, policies: Sequence[PolicyResult], names: Mapping[str, str]) -> Table:
    """Lay out the figures of policies side by side; those that no policy has are left out."""
    columns = [{"": names[row.policy], **_cells(row)} for row in policies]
    figures = dict.fromkeys(figure for column in columns for figure in column)
    rows = [(figure, *(column.get(figure, "") for column in columns)) for figure in figures]
    filled = [row for row in rows[1:] if any(row[1:])]
    return Table(rows[0], filled, name)


def _cells(row: PolicyResult) -> dict[str, str]:
    most, failed = max(row.pass_at), sum(row.failures.values())
    return {
        "expected return": "" if row.expected is None else _unbroken(row.expected),
        "return": _unbroken(row.mean_return),
        "skill": "" if math.isnan(row.skill.value) else _joined(describe_skill(row.skill)),
        "success": _share(row.success),
        f"pass@{most}": "" if most == 1 else _share(row.pass_at[most]),
        **{name: _score(score) for name, score in row.scores.items()},
        "violations": "" if row.violations is None else _share(row.violations),
        "malformed": _share(row.malformed),
        "cut off": "" if row.cut_off.value == 0.0 else _share(row.cut_off),
        "refused": "" if row.refused.value == 0.0 else _share(row.refused),
        "failed": f"{failed} of {row.tasks * row.rollouts}" if failed else "",
        "temperature": "" if row.temperature is None else f"{row.temperature:g}",
        "limit": "" if row.max_tokens is None else f"{row.max_tokens}",
        "tokens read": "" if row.prompt_tokens is None else f"{row.prompt_tokens:,}",
        "tokens written": "" if row.completion_tokens is None else f"{row.completion_tokens:,}",
        "cost": "" if row.cost is None else f"${row.cost:.2f}",
    }


def _pairs(results: Results, names: Mapping[str, str]) -> Table:
    units = {row.unit for row in results.pairs}
    title = "expected return" if units == {"expected"} else "return"
    rows = [
        {
            "world": _name(row),
            "difference of": f"{names[row.first]} - {names[row.second]}",
            title: _unbroken(row.difference)
            + (" (expected)" if row.unit == "expected" and len(units) > 1 else ""),
            "on outcomes": "" if row.on_outcomes is None else _unbroken(row.on_outcomes),
            "p": _p_value(row.p_corrected),
            "could show": f"{row.detectable:.3f}",
            "Tasks to show it": "" if row.tasks_needed is None else f"{row.tasks_needed:,}",
        }
        for row in results.pairs
    ]
    columns = [name for name in rows[0] if any(row[name] for row in rows)]
    several = f"p is corrected for {len(rows)} comparisons (Holm). " if len(rows) > 1 else ""
    return Table(
        columns,
        [[row[name] for name in columns] for row in rows],
        "Paired by Task",
        f"{several}'Could show' is the smallest true difference that a sample like this finds in "
        "four of five cases; 'Tasks to show it', how many Tasks would find this one so.",
    )


def _score(score: float | Estimate) -> str:
    number = score.value if isinstance(score, Estimate) else score
    if math.isnan(number):
        return ""
    return _unbroken(score) if isinstance(score, Estimate) else f"{score:.3f}"


def _share(share: Estimate) -> str:
    return f"{share.value:.1%} ({100 * share.low:.0f} to {100 * share.high:.0f})"


def _unbroken(estimate: Estimate) -> str:
    """Return value and interval, the ± of a half width joined by non-breaking spaces."""
    return _joined(str(estimate))


def _joined(text: str) -> str:
    """Return text whose value and half width no line break parts."""
    return text.replace(" ± ", "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}")


def _p_value(p_value: float) -> str:
    return "< 0.001" if p_value < 0.001 else f"{p_value:.3f}"


def write_tables(folder: Path, results: Results) -> None:
    """Write `worlds.csv`, `policies.csv`, `pairs.csv`: an estimate is three columns."""
    for name, rows in results.to_dict().items():
        flat = [_flat(row) for row in rows]
        columns = list(dict.fromkeys(key for row in flat for key in row))
        with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, columns)
            writer.writeheader()
            writer.writerows(flat)


def _flat(data: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in data.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = value
    return flat
