"""The charts of a run: returns against their reference lines, ties, replies, entropy, loss."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tokengym.agents.analysis.charts import BLUE, GREEN, PALE_BLUE, RED, chart, label_lines, legend
from tokengym.agents.analysis.report import Picture
from tokengym.agents.analysis.role_report import RoleReport
from tokengym.agents.training.folder.monitor import StepRow, mixed_series

_SMOOTHING = 0.85
_WORLDS = (BLUE, RED, GREEN, PALE_BLUE)
_REPLIES: Mapping[str, tuple[str, Callable[[StepRow], float | None]]] = {
    "malformed": (RED, lambda row: row.malformed_share),
    "cut off": (BLUE, lambda row: row.cut_off_share),
    "commonest reply": (GREEN, lambda row: row.commonest_share),
}


def run_charts(steps: Sequence[StepRow], sides: Sequence[RoleReport]) -> list[Picture]:
    """Draw the course of a run by step, each kind of quantity on its own axes."""
    last = steps[-1].step + 1 if steps else 1
    several = len(sides) > 1
    pictures = []
    for side in sides:
        of_role = f", {side.name}" if several else ""
        pictures.append(_returns(f"Mean return{of_role}", last, side))
        if side.uniform_rates:
            pictures.append(_ties(f"Ties{of_role}", side))
    shares: dict[str, tuple[str, dict[int, float]]] = {}
    for row in steps:
        for tag, series in mixed_series(row):
            colour = _WORLDS[len(shares) % len(_WORLDS)]
            shares.setdefault(tag, (colour, {}))[1][row.step] = series["share"]
    if shares:
        pictures.append(_series("Worlds", "share of the groups", shares, share=True))
    losses = _known(steps, lambda row: row.loss)
    if losses:
        unit = "nats per token" if "train/nll" in steps[0].metrics else "of a pair of replies"
        pictures.append(_series("Loss", unit, {"": (GREEN, losses)}))
    shown = {name: (colour, _known(steps, read)) for name, (colour, read) in _REPLIES.items()}
    replies = {name: line for name, line in shown.items() if any(line[1].values())}
    if replies and not losses:
        pictures.append(_series("Replies", "share of replies", replies, share=True))
    distances = _known(steps, lambda row: row.metrics.get("teacher/kl"))
    if distances:
        label = "reverse KL (nats per sampled token)"
        pictures.append(_series("Distance from the teacher", label, {"": (GREEN, distances)}))
    entropies = _known(steps, lambda row: row.entropy)
    if entropies:
        pictures.append(_series("Entropy", "nats per sampled token", {"": (BLUE, entropies)}))
    return pictures


def _known(steps: Sequence[StepRow], read: Callable[[StepRow], Any]) -> dict[int, float]:
    """Return a quantity by step, of the steps that have it."""
    return {row.step: float(value) for row in steps if (value := read(row)) is not None}


def _returns(title: str, last: int, side: RoleReport) -> Picture:
    figure, axes = chart(title, "step", "return")
    numbers, rewards = list(side.rewards), list(side.rewards.values())
    smooth = _smooth(rewards)
    axes.plot(numbers, rewards, color=PALE_BLUE, lw=0.8)
    axes.plot(numbers, smooth, color=BLUE, lw=2)
    levels = list(side.references.levels.items())
    reach = [*smooth, *(level for _, level in levels)]
    for at, evaluation in ((0, side.before), (last, side.after)):
        mean, low, high, _ = evaluation.earned
        axes.errorbar(
            [at], [mean], [[mean - low], [high - mean]], fmt="o", color="k", ms=4, capsize=3
        )
        reach += [low, high]
    # From blind to reachable, not from the worst step: what lies between is what was learned.
    margin = 0.03 * (max(reach) - min(reach)) or 0.01
    axes.set_ylim(min(reach) - margin, max(reach) + margin)
    label_lines(axes, levels)
    return Picture.of(figure, f"{title} by step; points: on held-out Tasks, 95 % intervals")


def _ties(title: str, side: RoleReport) -> Picture:
    lines = {
        "groups whose returns tie": (RED, side.uniform_rates),
        "tied pairs": (BLUE, side.pair_rates),
    }
    return _series(title, "rate", {name: line for name, line in lines.items() if line[1]}, True)


def _series(
    title: str,
    ylabel: str,
    lines: Mapping[str, tuple[str, Mapping[int, float]]],
    share: bool = False,
) -> Picture:
    figure, axes = chart(title, "step", ylabel)
    for name, (colour, values) in lines.items():
        axes.plot(list(values), list(values.values()), color=colour, lw=1.4, label=name or None)
    if share:
        axes.set_ylim(-0.02, 1.02)
    legend(axes)
    named = ", ".join(name for name in lines if name)
    return Picture.of(figure, f"{title} by step{': ' if named else ''}{named}")


def _smooth(values: Iterable[float]) -> list[float]:
    smooth: list[float] = []
    for value in values:
        smooth.append(_SMOOTHING * smooth[-1] + (1 - _SMOOTHING) * value if smooth else value)
    return smooth
