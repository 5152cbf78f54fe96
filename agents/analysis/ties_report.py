"""The report of the group-size study: its table, its picture, its conclusion."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tokengym.agents.analysis.report import Picture, Report, Table
from tokengym.agents.analysis.ties import TieStudy
from tokengym.rewards.clustered import mean_over_clusters
from tokengym.rewards.control import SAFE_RETURN
from tokengym.rewards.estimates import share_estimate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_INTERVALS = (
    "95 % intervals over Tasks: Clopper and Pearson's for shares of groups and where few Tasks "
    "differ, else of the bootstrap."
)
_SIZED = f"{_INTERVALS} The chance of a tie in a group grows with its size by itself."
_PREDICTED = (
    " Where groups are smaller than a size, its dead groups are predicted: a rollout's chance to "
    "tie with another one has a beta law over those that tie in half a group; tied pairs are as "
    "many at any size."
)


def ties_report(study: TieStudy) -> Report:
    """Lay out a study."""
    lines = [study.verdict, _recommendation(study), _means(study)]
    if study.effort is not None:
        lines.append(str(study.effort))
    if study.left_out:
        lines.append(f"Left out: {study.left_out} groups of fewer than {study.seen.size} rollouts.")
    header = ("", *(f"size {row.size}{'' if row.rates else ' (predicted)'}" for row in study.sizes))
    predicted = any(not row.rates for row in study.sizes)
    note = f"{_SIZED}{_PREDICTED if predicted else ''}"
    parts = (
        Picture.of(_picture(study), study.title),
        Table(header, _sized_rows(study), "By group size", note),
        Table(("", "rate"), _rows(study), "At any group size", _INTERVALS),
    )
    return Report(study.title, lines, parts)


def _means(study: TieStudy) -> str:
    """State the mean reward and the share of correct rollouts, with intervals over Tasks."""
    _, of_group = np.unique(study.tasks, return_inverse=True)
    of_each = np.repeat(of_group, [*map(len, study.rewards)])
    rewards = np.concatenate(study.rewards)
    mean, share = (
        mean_over_clusters(values, of_each) for values in (rewards, rewards > study.threshold)
    )
    if share.low < 0.0 or share.high > 1.0 or share.low == share.high:
        share = share_estimate(share.value * share.samples, share.samples)
    return (
        f"Mean reward {mean.value:.4f} ({mean.interval('{:.4f}'.format)}), correct (above "
        f"{study.threshold:g}) {share.value:.1%} ({share.interval('{:.1%}'.format)})."
    )


def _recommendation(study: TieStudy) -> str:
    size, reason = study.recommended
    low, high = study.recommended_between
    others = "the same" if low == high else f"{low} to {high}"
    return f"Recommended group size {size} (95 % of such studies: {others}): {reason}."


def _sized_rows(study: TieStudy) -> Sequence[Sequence[str]]:
    labels = {
        "groups with a tie": "reward_tie_group_rate",
        "distinct rewards / size": "reward_unique_fraction_mean",
        "effective group size": "effective_group_size",
    }
    return [
        ("groups with an advantage", *(row.useful.shown for row in study.sizes)),
        *(
            (label, *(row.rates[name].shown if row.rates else "" for row in study.sizes))
            for label, name in labels.items()
        ),
    ]


def _rows(study: TieStudy) -> Sequence[Sequence[str]]:
    """Rates of single rewards and pairs, from the largest size."""
    labels = {"tied pairs": "reward_tie_pair_rate"}
    if study.fallen is not None:
        labels |= {
            "rollouts that missed the floor": "floor_mass",
            "tied pairs of those": "floor_tie_pair_rate",
            "tied pairs of the others": "interior_tie_pair_rate",
        }
    rates = study.seen.rates
    return [(label, rates[name].shown) for label, name in labels.items()]


def _picture(study: TieStudy) -> "Figure":
    """Rates by size, and where the rewards lie."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    sizes = [row.size for row in study.sizes]
    curves = {
        "groups without advantage": [row.useful.rest for row in study.sizes],
        "groups with any tie": [r.rates["reward_tie_group_rate"] for r in study.sizes if r.rates],
    }
    for label, estimates in curves.items():
        at = sizes[: len(estimates)]
        middle = [interval.value for interval in estimates]
        below = [max(interval.value - interval.low, 0.0) for interval in estimates]
        above = [max(interval.high - interval.value, 0.0) for interval in estimates]
        left.errorbar(at, middle, yerr=[below, above], marker="o", capsize=3, label=label)
    pairs = study.seen.rates["reward_tie_pair_rate"]
    left.axhspan(pairs.low, pairs.high, color="#777777", alpha=0.15, lw=0)
    left.axhline(pairs.value, color="#777777", ls="--", lw=1.2, label="tied pairs, at any size")
    left.set(xlabel="group size", ylabel="rate", ylim=(-0.02, 1.02), xticks=sizes)
    right.hist(np.concatenate(study.rewards), bins=40)
    if study.fallen is not None:
        right.axvline(SAFE_RETURN, color="black", linestyle="--", label="safety floor")
    right.set(xlabel="reward", ylabel="rollouts")
    if study.seen.size < sizes[-1]:
        left.axvspan(study.seen.size, sizes[-1], color="#777777", alpha=0.1, label="predicted")
    figure.suptitle(study.title)
    figure.legend(loc="outside lower center", ncols=4)
    return figure
