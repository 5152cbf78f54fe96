"""Reliability diagrams of forecasts before and after training."""

from collections.abc import Mapping, Sequence

import numpy as np

from tokengym.agents.reports.report import Chart, Series
from tokengym.envs.core.seeding import generator
from tokengym.rewards.calibration import consistency_band, corp, reliability

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


def reliability_diagrams(sides: Mapping[str, Stated]) -> list[Chart]:
    """Return a diagram of each side that has at least 2 forecasts.

    Args:
        sides: forecasts by when they were stated, such as `before`.
    """
    return [_diagram(when, stated) for when, stated in sides.items() if len(stated) >= _LEAST]


def _diagram(when: str, stated: Stated) -> Chart:
    labels, forecasts = (np.array(side) for side in zip(*stated, strict=True))
    bins, curve = reliability(forecasts, labels), corp(forecasts, labels)
    binned = bins.forecasts_B.tolist(), bins.frequencies_B.tolist()
    drawn = [
        Series("recalibrated", curve.values_V.tolist(), curve.recalibrated_V.tolist()),
        Series("bins", *binned, kind="dots", sizes=bins.counts_B.tolist()),
        Series("calibrated", (0.0, 1.0), (0.0, 1.0)),
    ]
    note, ylabel = f"{_LINE} {_EXACT}", "exact probability"
    if set(labels.tolist()) <= {0.0, 1.0}:
        note, ylabel = f"{_LINE} {_BAND}", "share of yes"
        band = consistency_band(forecasts, generator("consistency", len(labels)))
        edges = (band.values_V.tolist(), band.low_V.tolist(), band.high_V.tolist())
        drawn.append(Series("chance", edges[0], (), *edges[1:], kind="band"))
    title = f"Reliability {when} training"
    return Chart(title, "stated probability", ylabel, drawn, share=True, note=note)
