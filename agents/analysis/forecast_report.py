"""Calibration of forecasts against outcomes, before and after training."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tokengym.agents.analysis.report import Picture, Table
from tokengym.envs.core.seeding import generator
from tokengym.rewards.calibration import auc, corp, expected_error, murphy, reliability

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Stated = Sequence[tuple[float, float]]
"""Pairs of label and stated probability."""

_LEAST = 2


def forecast_parts(before: Stated, after: Stated) -> list[Table | Picture]:
    """Return a reliability diagram and the parts of the loss, where forecasts met outcomes.

    Forecasts scored against exact probabilities have no outcomes to be calibrated against: for
    them, as for fewer than two forecasts, there is nothing to return.
    """
    shown = {
        name: stated
        for name, stated in (("before", before), ("after", after))
        if len(stated) >= _LEAST and {label for label, _ in stated} <= {0.0, 1.0}
    }
    if not shown:
        return []
    columns = {name: _figures(stated) for name, stated in shown.items()}
    names = list(next(iter(columns.values())))
    table = Table(
        ("figure", *columns),
        [(name, *(found[name] for found in columns.values())) for name in names],
        "Calibration",
        "Mean squared error = miscalibration - discrimination + uncertainty (CORP, exact) and "
        "= reliability - resolution + uncertainty + residual (Murphy, 10 bins). The calibration "
        "error is a sign of miscalibration only above its null quantile: what a perfectly "
        "calibrated forecaster of as many questions stays below in 95 % of samples.",
    )
    return [Picture.of(_diagram(shown), "Reliability diagram of the forecasts"), table]


def _figures(stated: Stated) -> dict[str, str]:
    labels, forecasts = (np.array(side) for side in zip(*stated, strict=True))
    exact, binned = corp(forecasts, labels), murphy(forecasts, labels, 10)
    error = expected_error(forecasts, labels, generator("calibration", len(labels)))
    area = auc(forecasts, labels)
    base = labels.mean()
    loss = float(((forecasts - labels) ** 2).mean())
    skill = 1.0 - loss / (base * (1.0 - base)) if 0.0 < base < 1.0 else None
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
        "expected calibration error": f"{error.error:.4f}",
        "its mean for a calibrated forecaster": f"{error.null_mean:.4f}",
        "its 95 % null quantile": f"{error.null_quantile:.4f}",
        "area under the ROC curve": _show(area),
    }


def _diagram(shown: dict[str, Stated]) -> "Figure":
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 5), layout="tight")
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], color="k", lw=0.8)
    for (name, stated), colour in zip(shown.items(), ("#bbbbbb", "#1f5f99"), strict=False):
        labels, forecasts = (np.array(side) for side in zip(*stated, strict=True))
        bins, curve = reliability(forecasts, labels), corp(forecasts, labels)
        area = 200 * bins.counts_B / bins.counts_B.sum()
        axes.scatter(bins.forecasts_B, bins.frequencies_B, s=area, color=colour, label=name)
        axes.plot(curve.values_V, curve.recalibrated_V, color=colour, lw=1.2)
    axes.set(xlabel="stated probability", ylabel="share of yes (bins; line: CORP)")
    axes.set_title("Reliability of held-out forecasts")
    axes.legend(loc="upper left")
    return figure


def _show(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"
