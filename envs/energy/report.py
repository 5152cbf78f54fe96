"""The meaning of an episode's numbers, for reports, and key performance indicators."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean

import numpy as np

from tokengym.envs.core.metric import read_metrics
from tokengym.envs.core.task import Task
from tokengym.rewards.clustered import clustered_mean
from tokengym.rewards.estimates import Estimate

METRICS = read_metrics(Path(__file__).with_name("metrics.toml"))

_INDICATORS = {
    "cost (ct)": "total_money_cost",
    "carbon (kg)": "carbon",
    "peak import (kW)": "peak_import",
    "ramping (kW)": "ramping",
    "self-consumption (%)": "self_consumption",
    "unserved energy (kWh)": "unserved_energy",
    "discomfort (K h)": "discomfort",
}


def indicator_scores(
    tasks: Sequence[Task],
    ends_TK: Sequence[Sequence[Mapping[str, float | None]]],
    rng: np.random.Generator,
) -> dict[str, float | Estimate]:
    """Return the means of the key performance indicators; see `WorldSpec.scores`.

    The cost is also stated as a share of what leaving the plant alone costs, as CityLearn does, if
    that costs anything.

    Args:
        tasks: the Tasks.
        ends_TK: metrics at the ends of episodes, by Task and rollout.
        rng: not used.
    """
    scores: dict[str, float | Estimate] = {}
    for name, metric in _INDICATORS.items():
        values_TK = [[end.get(metric) for end in ends] for ends in ends_TK]
        reported_TK = [
            [METRICS[metric].scale * value for value in values if value is not None]
            for values in values_TK
            if None not in values
        ]
        if reported_TK:
            scores[name] = clustered_mean([[fmean(values)] for values in reported_TK])
    reference = math.fsum(float(task.answer["reference"]) for task in tasks)
    paid_T = [fmean(end.get("total_money_cost") or 0.0 for end in ends) for ends in ends_TK]
    if reference > 0.0:
        scores["cost over that of the safe hold"] = math.fsum(paid_T) / reference
    return scores
