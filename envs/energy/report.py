"""What the numbers of an episode mean, for reports."""

from collections.abc import Mapping

from tokengym.envs.core.metric import Metric

METRICS: Mapping[str, Metric] = {
    "total_money_cost": Metric(
        "Money paid",
        "ct an episode",
        "All bills of the episode, what is left in store at its end credited. Lower is better.",
        scale=100.0,
    ),
    "normalized_score": Metric(
        "Economy",
        "",
        "0 is leaving the plant alone, 1 the cheapest plan that knows everything in advance.",
    ),
    "safety_floor_mass": Metric(
        "Episodes with a violation",
        "",
        "Share of episodes in which the limit was missed at least once.",
        share=True,
    ),
    "total_cost": Metric(
        "Amount missed",
        "kWh an episode; of a house K",
        "Sum over all steps of what was missing to keep the limit.",
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
        "Exact credit", "an episode", "Sum of each step's exact change of the cost still to come."
    ),
}
