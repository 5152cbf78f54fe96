"""What held-out episodes came to before and after training, in the units of their world."""

from collections.abc import Mapping, Sequence

from tokengym.agents.analysis.report import Cell, Table
from tokengym.agents.training.outcome import Evaluation
from tokengym.envs.core.metric import Metric
from tokengym.envs.core.spec import WorldSpec
from tokengym.envs.registry import load

_STOP, _TERM = "stop/", "term/"
_GENERAL: Mapping[str, Metric] = {
    "malformed": Metric("Malformed replies", "", "Share of replies the world refused.", share=True),
    "cut_off": Metric(
        "Replies cut off", "", "Share of replies that reached the limit of tokens.", share=True
    ),
    "copied": Metric(
        "Replies that copy the prompt", "", "Share that end with a line of the prompt.", share=True
    ),
}
_ENDS: Mapping[str, str] = {
    "completed": "The world's own end.",
    "malformed": "Ended by a malformed reply.",
    "failure": "Ended by a broken rule.",
    "turn_limit": "All turns of the level were played.",
    "token_budget": "The conversation outgrew its token budget.",
    "abandoned": "A role left or kept the others waiting.",
}


def episode_table(spec: WorldSpec, before: Evaluation, after: Evaluation, title: str) -> Table:
    """Lay out the figures of two evaluations, each with its unit and what it means.

    Shown are the world's own metrics in its order, what every world has, how episodes ended, and
    the terms of the return; other numbers that a world reports are left to `outcome.json`.

    Args:
        spec: of the world.
        before: the policy as it was.
        after: the policy as it became.
        title: heading.
    """
    both = {**before.figures, **after.figures}
    declared: Mapping[str, Metric] = load(spec.metrics) if spec.metrics else {}
    known = {name: metric for name, metric in {**_GENERAL, **declared}.items() if name in both}
    ordered = [*(name for name in declared if name in known), *(n for n in _GENERAL if n in known)]
    shown = {name: known[name] for name in ordered}
    for name in sorted(both):
        if name.startswith(_TERM):
            part = name.removeprefix(_TERM)
            shown[name] = Metric(f"Term: {part}", "return", "Mean of its sum over an episode.")
        elif name.startswith(_STOP):
            reason = name.removeprefix(_STOP)
            why = _ENDS.get(reason, "")
            shown[name] = Metric(f"Ended: {reason}", "", why, share=True)
    rows: list[Sequence[Cell]] = [
        (
            (f"{metric.title} ({metric.unit})" if metric.unit else metric.title, metric.meaning),
            *(_show(found.figures.get(name), metric) for found in (before, after)),
        )
        for name, metric in shown.items()
    ]
    note = "Means over the held-out episodes that report the figure; totals are over an episode."
    return Table(("figure", "before", "after"), rows, title, note)


def _show(value: float | None, metric: Metric) -> str:
    if value is None:
        return ""
    return f"{value:.1%}" if metric.share else f"{metric.scale * value:.4g}"
