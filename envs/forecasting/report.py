"""Meanings of an episode's metrics, for reports."""

from collections.abc import Mapping

from tokengym.envs.core.metric import Metric

METRICS: Mapping[str, Metric] = {
    "score": Metric(
        "Score of a forecast",
        "",
        "The proper score in [0, 1] of well-formed forecasts; 0.75 is what one half earns (Brier).",
    ),
    "regret": Metric(
        "Regret",
        "",
        "Expected score lost against the exact probability. 0 is perfect.",
    ),
    "looks": Metric("Notes read", "", "Of the archive, before the answer."),
    "spent": Metric("Points spent", "", "On notes and on replies that were no call."),
    "incoherence": Metric(
        "Incoherence",
        "",
        "Mean breach of the laws of probability between questions on the same facts. 0 is best.",
    ),
    "complement_gap": Metric(
        "Yes and no", "", "How far a question and its opposite are from a sum of 1."
    ),
    "implication_gap": Metric(
        "Implied", "", "How much likelier a question was rated than one that it implies."
    ),
    "union_gap": Metric(
        "Both and either", "", "How far both and either of two are from the sum of the two."
    ),
    "probability": Metric("Probability stated", "", "Mean of the forecasts of yes."),
    "label": Metric("Scored against", "", "Mean of the outcomes, or of the exact probabilities."),
}
