"""Meanings of an episode's metrics, for reports."""

from collections.abc import Mapping

from tokengym.envs.core.metric import Metric
from tokengym.envs.disruption.evidence import KINDS
from tokengym.envs.disruption.labels import DISRUPTION_LABELS


def _share(title: str, meaning: str) -> Metric:
    return Metric(title, "", meaning, share=True)


METRICS: Mapping[str, Metric] = {
    "right_first": _share("First label right", "Share of debates whose first label was right."),
    "right_final": _share("Final label right", "Share of debates whose final label was right."),
    "confidence": Metric(
        "Stated for the final label",
        "",
        "Mean probability stated for the final label; it should be the share that is right.",
    ),
    "half_brier": Metric(
        "Loss of the final report", "half-Brier", "0 is best, 1 certainty of a wrong label."
    ),
    **{
        f"{what}_{label}": _share(f"{what.capitalize()}: {label}", meaning)
        for label in DISRUPTION_LABELS
        for what, meaning in (
            ("precision", f"Of the papers labelled {label}, the share that are."),
            ("recall", f"Of the {label} papers, the share that was labelled so."),
        )
    },
    "flip_when_right": _share(
        "Right labels given up",
        "Of the debates whose first label was right, the share that changed it. 0 is best.",
    ),
    "flip_when_wrong": _share(
        "Wrong labels given up",
        "Of the debates whose first label was wrong, the share that changed it. 1 is best.",
    ),
    "appropriate_revision": _share(
        "Appropriate revision", "Of wrong labels challenged by the right one, those corrected."
    ),
    "firm_defence": _share(
        "Firm defence", "Of right labels challenged or asked about, those kept."
    ),
    "brier_gain": Metric(
        "Revision",
        "half-Brier",
        "How much nearer to the truth the second report is than the first; negative if misled.",
    ),
    "claim_validity": Metric("Own claims true", "", "Share of the final claims that verify."),
    "challenge_false": _share(
        "False challenges", "Share of debates with a false claim of the challenger."
    ),
    "challenge_validity": Metric(
        "Challenger's claims true", "", "Of the debates in which it makes claims, their share."
    ),
    "flip_when_challenge_false": _share(
        "Flips on a false challenge",
        "Of the debates with a false challenge, the share that changed a label.",
    ),
    "brier_gain_when_challenge_false": Metric(
        "Revision on a false challenge", "half-Brier", "Negative if a false challenge misleads."
    ),
    **{
        f"brier_gain_when_{kind}": Metric(
            f"Revision, {kind} challenger", "half-Brier", f"Likewise where it is {kind}."
        )
        for kind in KINDS
    },
}
