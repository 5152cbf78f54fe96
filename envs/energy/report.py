"""The meaning of an episode's numbers, for reports, and key performance indicators."""

import math
from collections.abc import Mapping, Sequence
from statistics import fmean

import numpy as np

from tokengym.envs.core.metric import Metric
from tokengym.envs.core.task import Task
from tokengym.rewards.clustered import clustered_mean
from tokengym.rewards.estimates import Estimate

METRICS: Mapping[str, Metric] = {
    "total_money_cost": Metric(
        "Money paid",
        "ct an episode",
        "All bills of the episode, less a credit for what is left in store. Lower is better.",
        scale=100.0,
    ),
    "normalized_score": Metric(
        "Economy",
        "",
        "1 is the cheapest plan that knows everything in advance; each time that it costs what "
        "leaving the plant alone was expected to cost more, 1 less.",
    ),
    "carbon": Metric(
        "Carbon",
        "kg of CO2 an episode",
        "Intensity times energy bought; where the data have intensities. Lower is better.",
    ),
    "peak_import": Metric(
        "Peak import", "kW", "Most power bought in a step of the episode. Lower is better."
    ),
    "ramping": Metric(
        "Ramping",
        "kW an episode",
        "Changes of the exchange with the grid from step to step, summed. Lower is better.",
    ),
    "self_consumption": Metric(
        "Self-consumption",
        "%",
        "Share of the sun's energy that was neither sold nor lost, over episodes with sun.",
        scale=100.0,
    ),
    "unserved_energy": Metric(
        "Unserved energy", "kWh an episode", "Load that was not served. Lower is better."
    ),
    "discomfort": Metric(
        "Discomfort", "K h an episode", "Kelvin-hours outside the comfort band of a house."
    ),
    "safety_floor_mass": Metric(
        "Episodes with a violation",
        "",
        "Share of episodes in which the limit was missed at least once.",
        share=True,
    ),
    "total_cost": Metric(
        "Amount missed",
        "kWh per episode; for a house, K",
        "Sum over all steps of how much was missing to keep the limit.",
    ),
    "violation_depth": Metric(
        "Depth of violations",
        "",
        "0 if the limit was kept, 1 if it was missed as far as it can be at every step.",
    ),
    "first_violation_step": Metric(
        "First violation", "steps from 0", "Mean over the episodes that have one."
    ),
    "malformed_replies": Metric(
        "Malformed replies", "an episode", "Each counts as 0 kW and lowers the score."
    ),
    "total_credit": Metric(
        "Exact credit",
        "an episode",
        "Sum of each step's exact change of the cost still to come, less a cost of bad form.",
    ),
}

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
