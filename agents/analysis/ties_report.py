"""The report of the group-size study: its table, its picture, its conclusion."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tokengym.agents.analysis.report import Picture, Report, Table
from tokengym.agents.analysis.ties import TieStudy
from tokengym.rewards.control import SAFE_RETURN
from tokengym.rewards.estimates import Estimate, mean_estimate, share_estimate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_INTERVALS = (
    "95 % intervals over groups: Clopper and Pearson's for shares of groups and where few groups "
    "differ, else of the bootstrap."
)
_SIZED = f"{_INTERVALS} The chance of a tie in a group grows with its size by itself."


def ties_report(study: TieStudy) -> Report:
    """Lay out a study."""
    effort = study.effort
    title = f"{study.world} {study.level}, {study.policy}, {study.groups} groups"
    lines = (
        study.verdict,
        _recommendation(study),
        _means(study),
        f"{study.rollouts_per_second:,.1f} rollouts/s, {study.tokens_per_second:,.0f} tokens/s "
        f"({effort.codec}): {effort.tokens_per_rollout:,.1f} tokens a rollout, "
        f"{effort.written_per_rollout:,.1f} of them written by the policy.",
    )
    header = ("", *(f"size {row.size}" for row in study.sizes))
    parts = (
        Picture.of(_picture(study), title),
        Table(header, _sized_rows(study), "By group size", _SIZED),
        Table(("", "rate"), _rows(study), "At any group size", _INTERVALS),
    )
    return Report(title, lines, parts)


def _means(study: TieStudy) -> str:
    """State the mean reward and the share of correct rollouts, with intervals over groups."""
    rewards = np.array(study.rewards)
    mean = mean_estimate(rewards.mean(axis=1).tolist())
    correct = (rewards > study.threshold).mean(axis=1)
    share = mean_estimate(correct.tolist())
    if share.low < 0.0 or share.high > 1.0 or share.low == share.high:
        share = share_estimate(float(correct.sum()), len(correct))
    return (
        f"Mean reward {mean.value:.4f} ({mean.low:.4f} to {mean.high:.4f}), correct (above "
        f"{study.threshold:g}) {share.value:.1%} ({share.low:.1%} to {share.high:.1%})."
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
    rows = [("groups with an advantage", *(_shown(row.useful) for row in study.sizes))]
    for label, name in labels.items():
        rows.append((label, *(_shown(row.rates[name]) for row in study.sizes)))
    return rows


def _rows(study: TieStudy) -> Sequence[Sequence[str]]:
    """Rates of single rewards and pairs, from the largest size."""
    labels = {"tied pairs": "reward_tie_pair_rate"}
    if study.fallen is not None:
        labels |= {
            "rollouts that missed the floor": "floor_mass",
            "tied pairs of those": "floor_tie_pair_rate",
            "tied pairs of the others": "interior_tie_pair_rate",
        }
    rates = study.sizes[-1].rates
    return [(label, _shown(rates[name])) for label, name in labels.items()]


def _shown(at: Estimate) -> str:
    return f"{at.value:.3f} ({at.low:.3f} to {at.high:.3f})"


def _picture(study: TieStudy) -> "Figure":
    """Rates by size, and where the rewards lie."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    sizes = [row.size for row in study.sizes]
    for label, estimates in _curves(study).items():
        middle = [interval.value for interval in estimates]
        below = [max(interval.value - interval.low, 0.0) for interval in estimates]
        above = [max(interval.high - interval.value, 0.0) for interval in estimates]
        left.errorbar(sizes, middle, yerr=[below, above], marker="o", capsize=3, label=label)
    pairs = study.sizes[-1].rates["reward_tie_pair_rate"]
    left.axhspan(pairs.low, pairs.high, color="#777777", alpha=0.15, lw=0)
    left.axhline(pairs.value, color="#777777", ls="--", lw=1.2, label="tied pairs, at any size")
    left.set(xlabel="group size", ylabel="rate", ylim=(-0.02, 1.02), xticks=sizes)
    right.hist(np.ravel(study.rewards), bins=40)
    if study.fallen is not None:
        right.axvline(SAFE_RETURN, color="black", linestyle="--", label="safety floor")
    right.set(xlabel="reward", ylabel="rollouts")
    figure.suptitle(f"{study.world} {study.level}, {study.policy}, {study.groups} groups")
    figure.legend(loc="outside lower center", ncols=4)
    return figure


def _curves(study: TieStudy) -> Mapping[str, Sequence[Estimate]]:
    return {
        "groups without advantage": [
            Estimate(1 - row.useful.value, 1 - row.useful.high, 1 - row.useful.low)
            for row in study.sizes
        ],
        "groups with any tie": [row.rates["reward_tie_group_rate"] for row in study.sizes],
    }
