"""Results of held-out episodes before and after training, in the units of their world."""

from collections.abc import Collection, Mapping, Sequence
from statistics import fmean

from tokengym.agents.evaluation.rollout_table import RolloutTable
from tokengym.agents.reports.report import Cell, Table
from tokengym.envs.core.metric import Metric
from tokengym.envs.core.spec import WorldSpec
from tokengym.envs.registry import import_object
from tokengym.rewards.estimates import mean_estimate, share_estimate

_STOP, _TERM = "stop/", "term/"
_NOTE = (
    "Means over the held-out episodes that report the figure; totals are over an episode. Below: "
    "95 % intervals over episodes, of shares those of Clopper and Pearson."
)
_GENERAL: Mapping[str, Metric] = {
    name: Metric(title, "", meaning, share=True)
    for name, title, meaning in (
        ("malformed", "Malformed replies", "Share of replies that were rejected."),
        ("cut_off", "Replies cut off", "Share of replies that reached the token limit."),
        ("copied", "Replies that copy the prompt", "Share that end with a line of the prompt."),
    )
}
_ENDS: Mapping[str, str] = {
    "completed": "The world's own end.",
    "malformed": "Ended by a malformed reply.",
    "failure": "Ended by a broken rule.",
    "turn_limit": "All turns of the level were played.",
    "token_budget": "The conversation outgrew its token budget.",
    "abandoned": "A role left or kept the others waiting.",
}


def episode_table(spec: WorldSpec, tables: Mapping[str, RolloutTable], title: str) -> Table:
    """Lay out the figures of the evaluations before and after, with units and meanings.

    Shown are the world's own metrics in its order, what every world has, how episodes ended, and
    the terms of the return; other numbers that a world reports are left to the rollouts.

    Args:
        spec: of the world.
        tables: the rollouts of the policy as it was and as it became, by when that was.
        title: heading.
    """
    figures = [mean_figures(table) for table in tables.values()]
    metrics = _metrics(spec, {name for of_each in figures for name in of_each})
    rows: list[Sequence[Cell]] = [
        (
            (f"{metric.title} ({metric.unit})" if metric.unit else metric.title, metric.meaning),
            *(
                _cell(of_each.get(name), metric, [end.get(name) for end in table.ends])
                for of_each, table in zip(figures, tables.values(), strict=True)
            ),
        )
        for name, metric in metrics.items()
    ]
    return Table(("figure", *tables), rows, title, _NOTE)


def mean_figures(table: RolloutTable) -> dict[str, float]:
    """Return means of what the world reports at the end of an episode, and shares, by name.

    `malformed` is the share of replies, each rollout's own share counting alike, `cut_off` that of
    those that ran out of tokens, `stop/REASON` that of episodes; `term/NAME` the mean sum over an
    episode.
    """
    values: dict[str, Sequence[float]] = {}
    for name in dict.fromkeys(name for end in table.ends for name in end):
        values[name] = [value for end in table.ends if (value := end.get(name)) is not None]
    values |= {f"{_TERM}{name}": sums for name, sums in table.terms.items()}
    values |= {name: table.columns[name] for name in ("malformed", "cut_off")}
    figures = {name: fmean(values[name]) for name in sorted(values) if values[name]}
    episodes = table.stops.total()
    return figures | {
        f"{_STOP}{reason}": table.stops[reason] / episodes for reason in sorted(table.stops)
    }


def _metrics(spec: WorldSpec, reported: Collection[str]) -> dict[str, Metric]:
    """Return the names of the figures that are shown, in order."""
    declared: Mapping[str, Metric] = import_object(spec.metrics) if spec.metrics else {}
    general = {name: metric for name, metric in _GENERAL.items() if name not in declared}
    every = {**declared, **general}
    chosen = {name: metric for name, metric in every.items() if name in reported}
    for name in sorted(reported):
        if name.startswith(_TERM):
            part = name.removeprefix(_TERM)
            chosen[name] = Metric(f"Term: {part}", "return", "Mean of its sum over an episode.")
        elif name.startswith(_STOP):
            reason = name.removeprefix(_STOP)
            chosen[name] = Metric(f"Ended: {reason}", "", _ENDS.get(reason, ""), share=True)
    return chosen


def _cell(value: float | None, metric: Metric, ends: Sequence[float | None]) -> Cell:
    """Return a figure, with its interval where the episodes are saved."""
    if value is None:
        return ""
    values = [end for end in ends if end is not None]
    if not values:
        return _show(value, metric)

    def show(number: float) -> str:
        return _show(number, metric)

    if metric.share:
        mean = share_estimate(sum(values), len(values))
        return show(value), f"{sum(values):g} of {len(values)}: {mean.interval(show)}"
    return show(value), mean_estimate(values).interval(show)


def _show(value: float, metric: Metric) -> str:
    return f"{value:.1%}" if metric.share else f"{metric.scale * value:.4g}"
