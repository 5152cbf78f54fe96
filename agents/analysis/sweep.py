"""Runs of one world with different settings, side by side: ties, returns, speed and skill."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

from tokengym.agents.analysis.report import Picture, Report, Table
from tokengym.agents.analysis.run_ties import FIGURES, FIGURES_NOTE, RunTies, figure_rows, pooled
from tokengym.agents.scale import skill_of
from tokengym.agents.settings import plain
from tokengym.agents.training.folder.monitor import TIE_RATES
from tokengym.agents.training.folder.run_summary import RunSummary
from tokengym.rewards.estimates import Estimate
from tokengym.rewards.skill import describe_skill

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_NOTE = (
    f"{FIGURES_NOTE}; skill is that of the mean return of all seeds on each held-out Task: 0 is "
    "the best policy that ignores the Task, 1 the oracle, and its interval is over Tasks"
)


@dataclass(frozen=True)
class SweepColumn:
    """The runs of one combination of settings, which differ by their seeds.

    Attributes:
        ties: how each went, step by step.
        outcomes: what each came to.
    """

    ties: Sequence[RunTies]
    outcomes: Sequence[RunSummary]

    @property
    def skills(self) -> list[float]:
        """Skill after training of each run."""
        return [outcome.skill(self._role).after.value for outcome in self.outcomes]

    @property
    def skill(self) -> Estimate:
        """Skill after training, of the seeds together."""
        returns = [outcome.after.of(self._role).earned_by_task for outcome in self.outcomes]
        means_T = [fmean(of_task) for of_task in zip(*returns, strict=True)]
        yardstick = self.outcomes[0].references[self._role].yardstick
        return skill_of(yardstick, means_T)

    @property
    def replies(self) -> int:
        """Replies that a run was trained on, on average."""
        return round(fmean(run.replies for run in self.ties))

    @property
    def collapsed(self) -> int:
        """How many runs lost their signal; each is judged by its last good checkpoint."""
        return sum(outcome.collapse is not None for outcome in self.outcomes)

    @property
    def _role(self) -> str:
        return next(iter(self.outcomes[0].references))

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        names = ("skill", "skills", "replies", "collapsed")
        found = {name: pooled(self.ties, name) for name in FIGURES}
        mine = {name: getattr(self, name) for name in names}
        values: dict[str, Any] = plain({**found, **mine, "runs": [run.run for run in self.ties]})
        return values


def sweep_report(title: str, columns: Mapping[str, SweepColumn]) -> Report:
    """Lay out a sweep.

    Args:
        title: what was trained.
        columns: by the settings that are their own, the runs.
    """
    every = list(columns.values())
    rows = figure_rows([column.ties for column in every])
    rows += [
        ["skill on held-out Tasks", *(describe_skill(column.skill) for column in every)],
        ["by seed", *(", ".join(f"{one:.2f}" for one in column.skills) for column in every)],
        ["replies spent by a run", *(f"{column.replies:,}" for column in every)],
    ]
    if any(column.collapsed for column in every):
        rows.append(["collapsed runs", *(f"{column.collapsed}" for column in every)])
    table = Table(("", *columns), rows, note=_NOTE)
    return Report(title, (), (Picture.of(_picture(title, columns), title), table))


def _picture(title: str, columns: Mapping[str, SweepColumn]) -> "Figure":
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    places, every = range(len(columns)), list(columns.values())
    for place, column in zip(places, every, strict=True):
        left.plot([place] * len(column.skills), column.skills, ".", color="grey")
        value, low, high, _ = column.skill
        left.errorbar([place], [value], [[value - low], [high - value]], fmt="ko", capsize=4)
    for name in (*TIE_RATES, "floor_mass"):
        rates = [pooled(column.ties, name) for column in every]
        right.plot(places, [None if r is None else r.value for r in rates], "o-", label=name)
    left.set(ylabel="skill on held-out Tasks (grey: each seed)")
    right.set(ylabel="mean over training steps", ylim=(-0.02, 1.02))
    for axes in (left, right):
        axes.set_xticks(places, list(columns), rotation=20 if len(columns) > 4 else 0)
    figure.suptitle(title)
    figure.legend(*right.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure
