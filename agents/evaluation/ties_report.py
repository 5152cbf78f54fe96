"""The report of the group-size study: its tables and its chart."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tokengym.agents.evaluation.ties import TieStudy
from tokengym.agents.reports.report import Chart, Report, Series, Table
from tokengym.rewards.clustered import mean_over_clusters
from tokengym.rewards.estimates import share_estimate

if TYPE_CHECKING:
    from tokengym.agents.evaluation.first_play import FirstPlay

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
    lines = [_means(study)]
    if study.malformed and study.first is None:
        lines.append(f"{study.malformed:.1%} of the replies were malformed.")
    if study.first is not None:
        lines += study.first.lines()
    if study.left_out:
        lines.append(f"Left out: {study.left_out} groups of fewer than {study.seen.size} rollouts.")
    header = ("", *(f"size {row.size}{'' if row.rates else ' (predicted)'}" for row in study.sizes))
    predicted = any(not row.rates for row in study.sizes)
    note = f"{_SIZED}{_PREDICTED if predicted else ''}"
    parts = (
        _rates(study),
        Table(header, _sized_rows(study), "By group size", note),
        Table(("", "rate"), _rows(study), "At any group size", _INTERVALS),
    )
    best = [] if study.first is None else [_best_of(study.first)]
    return Report(study.title, lines, (*parts, *best))


def _best_of(first: "FirstPlay") -> Table:
    """Lay out what the best of k rollouts earns among the policies of the scale."""
    rows = {f"the best of {k}" if k > 1 else "the model": one for k, one in first.best_of.items()}
    rows |= first.references
    cells = [
        (name, str(mean)) for name, mean in sorted(rows.items(), key=lambda row: -row[1].value)
    ]
    note = "Groups teach where their best rollouts earn more than the model does on average."
    return Table(("policy", "mean return"), cells, "The best of k beside scripted policies", note)


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
            "their share of all tied pairs": "floor_tie_share",
            "tied pairs of those": "floor_tie_pair_rate",
            "tied pairs of the others": "interior_tie_pair_rate",
        }
    rates = study.seen.rates
    return [(label, rates[name].shown) for label, name in labels.items()]


def _rates(study: TieStudy) -> Chart:
    """Chart the rates by size."""
    of_size = [(row.size, row.useful.rest) for row in study.sizes]
    tied = [(row.size, row.rates["reward_tie_group_rate"]) for row in study.sizes if row.rates]
    pairs = study.seen.rates["reward_tie_pair_rate"]
    series = [
        Series(
            name,
            [size for size, _ in points],
            [rate.value for _, rate in points],
            [rate.low for _, rate in points],
            [rate.high for _, rate in points],
        )
        for name, points in (("without advantage", of_size), ("with any tie", tied))
    ]
    levels, predicted = {"tied pairs": pairs.value}, study.seen.size < study.sizes[-1].size
    note = f"Sizes above {study.seen.size} are predicted." if predicted else ""
    return Chart("Groups by size", "group size", "rate", series, levels, share=True, note=note)
