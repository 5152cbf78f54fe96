"""Calibration of forecasts before and after training: diagrams, parts of the loss, skill."""

from collections.abc import Sequence

import numpy as np

from tokengym.agents.analysis.charts import BLUE, GREY, PALE_BLUE, chart
from tokengym.agents.analysis.report import Cell, Gallery, Picture, Table
from tokengym.envs.core.seeding import generator
from tokengym.rewards.calibration import (
    auc,
    consistency_band,
    corp,
    expected_error,
    murphy,
    reliability,
)

Stated = Sequence[tuple[float, float]]
"""Pairs of label and stated probability."""

_LEAST = 2
_LINE = (
    "Line: the forecasts recalibrated (CORP). Dots: ten bins, their area the number of forecasts."
)
_BAND = (
    "Band: where the line of a perfectly calibrated forecaster of these forecasts lies, 90 % at "
    "each place; only a line outside it is a sign of miscalibration."
)
_EXACT = (
    "The forecasts are scored against exact probabilities, so the diagram has no noise of outcomes "
    "and needs no band: any distance from the diagonal is miscalibration."
)
_PARTS = (
    "Mean squared error = miscalibration - discrimination + uncertainty (CORP) and = reliability "
    "- resolution + uncertainty + residual (Murphy, 10 bins). Brier skill: 0 is always stating the "
    "base rate, 1 a forecaster who knows what it is scored against."
)
_NULL = (
    " The calibration error is a sign of miscalibration only above its null quantile: what a "
    "perfectly calibrated forecaster of as many questions stays below in 95 % of samples."
)


def forecast_parts(before: Stated, after: Stated) -> list[Table | Gallery]:
    """Return reliability diagrams and the parts of the loss; nothing for fewer than 2 forecasts."""
    both = {"before": before, "after": after}
    sides = {name: stated for name, stated in both.items() if len(stated) >= _LEAST}
    if not sides:
        return []
    exact = not all(_resolved(stated) for stated in sides.values())
    columns = {name: _figures(stated) for name, stated in sides.items()}
    figures = zip(next(iter(columns.values())), *map(dict.values, columns.values()), strict=True)
    rows: list[Sequence[Cell]] = [row for row in figures if any(row[1:])]
    table = Table(("figure", *columns), rows, note=_PARTS + ("" if exact else _NULL))
    diagrams = [_diagram(f"{name.capitalize()} training", cells) for name, cells in sides.items()]
    note = f"{_LINE} {_EXACT if exact else _BAND}"
    return [Gallery(diagrams, "Calibration of the held-out forecasts", note), table]


def _resolved(stated: Stated) -> bool:
    """Return whether forecasts are scored against outcomes rather than exact probabilities."""
    return {label for label, _ in stated} <= {0.0, 1.0}


def _figures(stated: Stated) -> dict[str, str]:
    labels, forecasts = (np.array(side) for side in zip(*stated, strict=True))
    exact, binned = corp(forecasts, labels), murphy(forecasts, labels, 10)
    loss = float(((forecasts - labels) ** 2).mean())
    skill = 1.0 - loss / exact.uncertainty if exact.uncertainty > 0.0 else None
    bins = reliability(forecasts, labels)
    apart_B = np.abs(bins.forecasts_B - bins.frequencies_B)
    distance, resolved = float(bins.counts_B @ apart_B / bins.counts_B.sum()), _resolved(stated)
    rng = generator("calibration", len(labels))
    null = expected_error(forecasts, labels, rng) if resolved else None
    return {
        "forecasts": str(len(labels)),
        "mean squared error": f"{loss:.4f}",
        "Brier skill over the base rate": _show(skill),
        "miscalibration (CORP)": f"{exact.miscalibration:.4f}",
        "discrimination (CORP)": f"{exact.discrimination:.4f}",
        "uncertainty": f"{exact.uncertainty:.4f}",
        "reliability (Murphy)": f"{binned.reliability:.4f}",
        "resolution (Murphy)": f"{binned.resolution:.4f}",
        "residual (Murphy)": f"{binned.residual:.4f}",
        "expected calibration error": f"{distance:.4f}",
        "its mean for a calibrated forecaster": "" if null is None else f"{null.null_mean:.4f}",
        "its 95 % null quantile": "" if null is None else f"{null.null_quantile:.4f}",
        "area under the ROC curve": _show(auc(forecasts, labels)) if resolved else "",
    }


def _diagram(title: str, stated: Stated) -> Picture:
    labels, forecasts = (np.array(side) for side in zip(*stated, strict=True))
    figure, axes = chart(title, "stated probability", "share of yes", height=4.6)
    axes.plot([0, 1], [0, 1], color=GREY, lw=0.9)
    if _resolved(stated):
        band = consistency_band(forecasts, generator("consistency", len(labels)))
        axes.fill_between(band.values_V, band.low_V, band.high_V, color=GREY, alpha=0.25, lw=0)
    else:
        axes.set_ylabel("exact probability")
        axes.scatter(forecasts, labels, s=4, color=PALE_BLUE, alpha=0.6, lw=0)
    bins, curve = reliability(forecasts, labels), corp(forecasts, labels)
    area = 160 * bins.counts_B / bins.counts_B.sum()
    axes.plot(curve.values_V, curve.recalibrated_V, color=BLUE, lw=1.6)
    axes.scatter(bins.forecasts_B, bins.frequencies_B, s=area, color=BLUE, alpha=0.8)
    axes.vlines(forecasts, -0.05, -0.02, color=BLUE, lw=0.4, alpha=0.5)
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.05, 1.02), aspect="equal")
    return Picture.of(figure, f"Reliability diagram, {title.lower()}")


def _show(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"
