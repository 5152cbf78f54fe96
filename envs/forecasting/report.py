"""What the numbers of an episode mean, for reports."""

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
        "What the exact probability would have scored more, in expectation. 0 is perfect.",
    ),
    "incoherence": Metric(
        "Incoherence",
        "",
        "Mean breach of the laws of probability between questions on the same facts. 0 is best.",
    ),
    "complement_gap": Metric(
        "Yes and no", "", "How far a question and its opposite are from a sum of 1."
    ),
    "threshold_gap": Metric(
        "Thresholds", "", "How much likelier a higher threshold was rated than a lower one."
    ),
    "conjunction_gap": Metric(
        "Both", "", "How far the probability of both lies outside what those of each allow."
    ),
    "probability": Metric("Probability stated", "", "Mean of the forecasts of yes."),
    "label": Metric("Scored against", "", "Mean of the outcomes, or of the exact probabilities."),
}
