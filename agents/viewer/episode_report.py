"""Results of held-out episodes before and after training, in the units of their world."""

from collections.abc import Mapping, Sequence

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

    Shown are the world's own metrics in its order, how episodes ended, and the terms of the return;
    other numbers that a world reports are left to the rollouts.

    Args:
        spec: of the world.
        tables: the rollouts of the policy as it was and as it became, by when that was.
        title: heading.
    """
    rows: list[Sequence[Cell]] = []
    for name, metric in _metrics(spec, list(tables.values())).items():
        cells = [_cell(_values(table, name), metric) for table in tables.values()]
        if any(cells):
            heading = f"{metric.title} ({metric.unit})" if metric.unit else metric.title
            rows.append(((heading, metric.meaning), *cells))
    return Table(("figure", *tables), rows, title, _NOTE)


def _metrics(spec: WorldSpec, tables: Sequence[RolloutTable]) -> dict[str, Metric]:
    """Return the figures that may be shown, in order."""
    declared: Mapping[str, Metric] = import_object(spec.metrics) if spec.metrics else {}
    stops = {
        f"{_STOP}{reason}": Metric(f"Ended: {reason}", "", _ENDS.get(reason, ""), share=True)
        for reason in sorted({reason for table in tables for reason in table.stops})
    }
    terms = {
        f"{_TERM}{name}": Metric(f"Term: {name}", "return", "Mean of its sum over an episode.")
        for name in sorted({name for table in tables for name in table.terms})
    }
    return {**declared, **stops, **terms}


def _values(table: RolloutTable, name: str) -> Sequence[float]:
    """Return a figure of each episode that has it."""
    if name.startswith(_STOP):
        ended = table.stops[name.removeprefix(_STOP)]
        return [1.0] * ended + [0.0] * (table.stops.total() - ended)
    if name.startswith(_TERM):
        return table.terms.get(name.removeprefix(_TERM), ())
    return [value for end in table.ends if (value := end.get(name)) is not None]


def _cell(values: Sequence[float], metric: Metric) -> Cell:
    """Return the mean of a figure with its interval; empty where no episode has it."""
    if not values:
        return ""

    def show(number: float) -> str:
        return f"{number:.1%}" if metric.share else f"{metric.scale * number:.4g}"

    if metric.share:
        mean = share_estimate(sum(values), len(values))
        return show(mean.value), f"{sum(values):g} of {len(values)}: {mean.interval(show)}"
    mean = mean_estimate(values)
    return show(mean.value), mean.interval(show)
