"""Meanings of an episode's metrics, for reports."""

from collections.abc import Mapping

from tokengym.envs.core.metric import Metric

METRICS: Mapping[str, Metric] = {
    "objective": Metric(
        "Value less costs",
        "$ per episode; for stock, expected",
        "Value of the plan: orders shipped, less walking and stock. Higher is better.",
    ),
    "normalized_score": Metric(
        "Score",
        "",
        "0 is the reference (one order at a time, in order), 1 the optimum or its bound.",
    ),
    "walked": Metric("Steps walked", "an episode", "Each step costs money and time."),
    "fined": Metric("Fines", "$ an episode", "Fines of the clauses of `pick_clauses`."),
    "unshipped": Metric("Orders not shipped", "an episode", "Open at the end; they earn nothing."),
    "on_time": Metric("Orders on time", "", "Share of the orders shipped by the time due."),
    "tardiness": Metric("Tardiness", "an episode", "Lateness of shipped orders, summed."),
    "fill_rate": Metric("Fill rate", "", "Share of the demand that was met from stock."),
    "bullwhip": Metric(
        "Bullwhip", "", "Variance of orders over that of demand; 1 passes demand on."
    ),
    "earned": Metric("Earned", "$ an episode", "Revenue of the contracts as it came; luck counts."),
    "occupancy": Metric("Occupancy", "", "Share of the bays and months that were leased."),
    "signed": Metric("Contracts", "a month", "Share of the customers who signed."),
    "total_cost": Metric(
        "Realised cost", "an episode", "Holding, lost sales and orders as it came; luck counts."
    ),
    "turns": Metric("Replies", "an episode", "Replies until the shift was over."),
    "refused": Metric("Replies refused", "an episode", "Well-formed, but against a rule."),
    "malformed_replies": Metric("Malformed replies", "an episode", "Each counts as doing nothing."),
}
