"""Calibration of forecasts before and after training: diagrams, parts of the loss, skill."""

from collections.abc import Sequence

import numpy as np

from tokengym.agents.reports.report import Cell, Chart, Series, Table
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


def forecast_parts(before: Stated, after: Stated) -> list[Table | Chart]:
    """Return reliability diagrams and the parts of the loss; nothing for fewer than 2 forecasts."""
    both = {"before": before, "after": after}
    sides = {name: stated for name, stated in both.items() if len(stated) >= _LEAST}
    if not sides:
        return []
    exact = not all(_resolved(stated) for stated in sides.values())
    columns = {name: _figures(stated) for name, stated in sides.items()}
    figures = zip(next(iter(columns.values())), *map(dict.values, columns.values()), strict=True)
    rows: list[Sequence[Cell]] = [row for row in figures if any(row[1:])]
    title = "Calibration of the held-out forecasts"
    table = Table(("figure", *columns), rows, title, _PARTS + ("" if exact else _NULL))
    note = f"{_LINE} {_EXACT if exact else _BAND}"
    return [*(_diagram(name, cells, note) for name, cells in sides.items()), table]


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


def _diagram(when: str, stated: Stated, note: str) -> Chart:
    labels, forecasts = (np.array(side) for side in zip(*stated, strict=True))
    bins, curve = reliability(forecasts, labels), corp(forecasts, labels)
    binned = bins.forecasts_B.tolist(), bins.frequencies_B.tolist()
    drawn = [
        Series("recalibrated", curve.values_V.tolist(), curve.recalibrated_V.tolist()),
        Series("bins", *binned, kind="dots", sizes=bins.counts_B.tolist()),
        Series("calibrated", (0.0, 1.0), (0.0, 1.0)),
    ]
    if resolved := _resolved(stated):
        band = consistency_band(forecasts, generator("consistency", len(labels)))
        edges = (band.values_V.tolist(), band.low_V.tolist(), band.high_V.tolist())
        drawn.append(Series("chance", edges[0], (), *edges[1:], kind="band"))
    ylabel = "share of yes" if resolved else "exact probability"
    title = f"Reliability {when} training"
    return Chart(title, "stated probability", ylabel, drawn, share=True, note=note)


def _show(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"
