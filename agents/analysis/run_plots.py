"""The curves of a run: returns against their reference lines, tie rates, supervised loss."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from tokengym.agents.analysis.role_report import RoleReport
from tokengym.agents.training.monitor import StepRow

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_SMOOTHING = 0.85


def draw_curves(steps: Sequence[StepRow], sides: Sequence[RoleReport]) -> "Figure":
    """Draw rewards and tie rates by step for each role, and forecasts where there are any."""
    from matplotlib.figure import Figure

    first = sides[0]
    scatters = bool(first.before.stated or first.after.stated)
    count = len(sides) + scatters
    figure = Figure(figsize=(8 if count == 1 else 6 * count, 5), layout="tight")
    axes = figure.subplots(1, count, squeeze=False)[0]
    last = steps[-1].step + 1 if steps else 1
    for panel, side in zip(axes, sides, strict=False):
        _draw_returns(panel, last, side)
        if any(row.nll is not None for row in steps):
            _draw_loss(panel, steps)
        panel.set_title(side.title)
    if scatters:
        _draw_scatter(axes[-1], first)
    return figure


def _draw_returns(axes: "Axes", last: int, side: RoleReport) -> None:
    numbers, rewards = list(side.rewards), list(side.rewards.values())
    axes.plot(numbers, rewards, color="#9bb7d4", lw=0.8)
    axes.plot(numbers, _smooth(rewards), color="#1f5f99", lw=2)
    for at, found in ((0, side.before), (last, side.after)):
        mean, low, high, _ = found.returns
        axes.errorbar([at], [mean], [[mean - low], [high - mean]], fmt="o", color="k", capsize=4)
    lines = side.references.lines
    names = ("null", "random", side.references.yardstick.blind_name, "oracle")
    for name in (name for name in names if name in lines):
        mean = lines[name].value
        axes.axhline(mean, ls="--", lw=1, color="#777")
        axes.annotate(
            name,
            (1.0, mean),
            xycoords=("axes fraction", "data"),
            fontsize=9,
            xytext=(-4, 3),
            textcoords="offset points",
            ha="right",
        )
    rates = side.uniform_rates
    axes.plot(list(rates), list(rates.values()), color="#c44", lw=0.8, alpha=0.7)
    axes.set_xlabel("step")
    axes.set_ylabel("mean return (blue), uniform-group rate (red)")


def _draw_loss(axes: "Axes", steps: Sequence[StepRow]) -> None:
    """Draw the loss of supervised steps on a scale of its own."""
    right = axes.twinx()
    losses = {row.step: row.nll for row in steps if row.nll is not None}
    right.plot(list(losses), list(losses.values()), color="#2a8a57", lw=1.5)
    right.set_ylabel("negative log-likelihood of a demonstrated token (green)")
    axes.set_ylabel("mean return on held-out Tasks")


def _draw_scatter(axes: "Axes", side: RoleReport) -> None:
    for found, colour, name in (
        (side.before, "#bbbbbb", "before"),
        (side.after, "#1f5f99", "after"),
    ):
        if found.stated:
            label, stated = zip(*found.stated, strict=True)
            axes.scatter(label, stated, s=5, color=colour, label=name, alpha=0.6)
    axes.plot([0, 1], [0, 1], color="k", lw=0.8)
    axes.set_xlabel("what it is scored against")
    axes.set_ylabel("stated probability")
    axes.set_title("held-out questions")
    axes.legend(loc="upper left")


def _smooth(values: Iterable[float]) -> list[float]:
    smooth: list[float] = []
    for value in values:
        smooth.append(_SMOOTHING * smooth[-1] + (1 - _SMOOTHING) * value if smooth else value)
    return smooth
