"""An evaluation's results for people: terminal and page."""

import math
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import groupby

from tokengym.agents.evaluation.folder import EvaluationFolder
from tokengym.agents.evaluation.plan import EvaluationPlan
from tokengym.agents.evaluation.results import PolicyResult, Results
from tokengym.agents.reports.report import Report, Table
from tokengym.agents.scale.level_scale import Scale
from tokengym.rewards.estimates import Estimate
from tokengym.rewards.skill import describe_skill

_ABSOLUTE = re.compile(r"(^|:)(?:/[^/@]+)+/([^/@]+)(?=@|$)")
"""An absolute path in a policy's name, such as `openai:/home/me/model@http://127.0.0.1:8000/v1`."""


_FIRST = 6
"""Rows of a table at first contact."""
_SAMPLE_SIZES = (
    "'Detectable' is the smallest true difference that this many Tasks find with a power of 80 %; "
    "'Tasks needed', how many would find the difference measured."
)
_SETTINGS = ("temperature", "limit", "tokens read", "tokens written")
"""Rows that say how was sampled, not what came of it."""


def evaluation_report(
    plan: EvaluationPlan, scales: Sequence[Scale], results: Results, *, whole: bool = True
) -> Report:
    """Lay out what an evaluation found.

    Args:
        plan: what was evaluated.
        scales: the ends of skill, in the order of the plan.
        results: what came of it.
        whole: every measure; if not, the first six of each table and no study of sample sizes.
    """
    names = _short_names({row.policy for row in results.policies})
    of_place = [list(rows) for _, rows in groupby(results.policies, lambda row: row.place)]
    tasks = ", ".join(f"{rows[0].place} {rows[0].tasks} x {rows[0].rollouts}" for rows in of_place)
    splits = ", ".join(dict.fromkeys(place.split for place in plan.places))
    lines = [
        *(line for row in results.policies for line in _warnings(row, names[row.policy])),
        *(
            f"{names[row.policy]} in {row.place}: {row.standing}."
            for row in results.policies
            if row.standing
        ),
        f"Tasks ({splits}) x rollouts: {tasks}. Intervals: 95 %, clustered by Task.",
        *map(_measured_by, plan.titles, scales),
        "Skill: 0 is the best policy that ignores the Task, 1 the oracle. Success: at most "
        f"{plan.success_margin:g} below the oracle's return on the Task.",
    ]
    if any(scale.unit == "expected" for scale in scales):
        lines.append(
            "Expected returns are what replies earn on average over outcomes. Skill, success and "
            "differences are of them where they are known: they have no noise of outcomes."
        )
    if any(row.standing for row in results.policies):
        lines.append(
            "Reference policies are those that the field knows by name: "
            f"tokengym check {plan.places[0].name} --ladder lists them."
        )
    lines += [f"{short}: {name}" for name, short in sorted(names.items()) if short != name]
    parts = [
        figures_table(
            f"{rows[0].place}, {rows[0].role}",
            {names[row.policy]: row for row in rows},
            whole=whole,
        )
        for rows in of_place
    ]
    if results.pairs:
        parts.append(_pairs(results, names, whole))
    return Report("Evaluation", lines, parts)


def saved_report(folder: EvaluationFolder) -> Report | None:
    """Lay out what a folder's evaluation found; `None` while it is under way.

    Raises:
        DataError: if its file is damaged.
    """
    plan, scales, results = folder.saved()
    return None if results is None else evaluation_report(plan, scales, results)


def _warnings(row: PolicyResult, name: str) -> Iterator[str]:
    """Yield what a reader must know before any figure of a policy."""
    where = f"{name} in {row.place}"
    if row.form_warning:
        yield f"{where}: {row.form_warning}."
    for model, count in row.other_models.items():
        yield f"{where}: {count} replies are of another model, {model}."
    if row.failures:
        reasons = ", ".join(f"{count} {reason}" for reason, count in row.failures.items())
        yield (
            f"{where}: {sum(row.failures.values())} of {row.tasks * row.rollouts} "
            f"rollouts failed ({reasons}). {row.lost} without an answer are left out of all "
            "figures and intervals; the rest of what was refused counts as empty replies."
        )


def _measured_by(title: str, scale: Scale) -> str:
    """State what the ends of skill and the optimum are, in one unit."""
    unit = "expected returns" if scale.unit == "expected" else "returns"
    limit = "optimum" if scale.exact else "bound"
    return (
        f"{title}, {unit}: {scale.label} {scale.ends.blind:.3f}, "
        f"oracle {scale.ends.oracle:.3f}, {limit} {scale.optimum:.3f}."
    )


def _short_names(policies: Collection[str]) -> Mapping[str, str]:
    """Return policies' names with absolute paths cut to their last part, unless two become equal.

    A table with a directory's whole path at the head of a column is wider than a terminal.
    """
    short = {name: _ABSOLUTE.sub(r"\1\2", name) for name in policies}
    counts = Counter(short.values())
    return {name: cut if counts[cut] == 1 else name for name, cut in short.items()}


def figures_table(title: str, policies: Mapping[str, PolicyResult], *, whole: bool = True) -> Table:
    """Lay out the figures of policies side by side; those that no policy has are left out.

    Args:
        title: heading.
        policies: results by the heads of their columns.
        whole: whether to show more than the first few.
    """
    columns = [{"": name, **_cells(row)} for name, row in policies.items()]
    figures = dict.fromkeys(figure for column in columns for figure in column)
    rows = [(figure, *(column.get(figure, "") for column in columns)) for figure in figures]
    filled = [row for row in rows[1:] if any(row[1:])]
    scores = [row[0] for row in filled if any(row[0] in each.scores for each in policies.values())]
    first = [row[0] for row in filled if row[0] not in (*scores, *_SETTINGS)]
    first += scores[: max(0, _FIRST - len(first))]
    shown = filled if whole else [row for row in filled if row[0] in first]
    left = len(filled) - len(shown)
    return Table(rows[0], shown, title, f"{left} more measures: --all" if left else "")


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


def _pairs(results: Results, names: Mapping[str, str], whole: bool) -> Table:
    units = {row.unit for row in results.pairs}
    title = "expected return" if units == {"expected"} else "return"
    rows = [
        {
            "world": row.place,
            "difference of": f"{names[row.first]} - {names[row.second]}",
            title: _unbroken(row.difference)
            + (" (expected)" if row.unit == "expected" and len(units) > 1 else ""),
            "p": _p_value(row.p_corrected),
            "detectable": f"{row.detectable:.3f}" if whole else "",
            "Tasks needed": f"{row.tasks_needed:,}" if whole and row.tasks_needed else "",
        }
        for row in results.pairs
    ]
    columns = [name for name in rows[0] if any(row[name] for row in rows)]
    several = f"p is corrected for {len(rows)} comparisons (Holm). " if len(rows) > 1 else ""
    return Table(
        columns,
        [[row[name] for name in columns] for row in rows],
        "Paired by Task",
        several + (_SAMPLE_SIZES if whole else ""),
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
