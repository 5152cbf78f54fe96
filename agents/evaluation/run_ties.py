"""How the groups of a run tied as it learned, read step by step from its log."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from statistics import fmean

from tokengym.agents.reports.report import Cell, Report, Table
from tokengym.agents.training.folder.monitor import TIE_RATES, StepRow, named
from tokengym.agents.training.folder.run import RunFolder
from tokengym.envs.core.errors import OptionError
from tokengym.rewards.estimates import Estimate, mean_estimate, share_estimate

_RETURN, _SPEED = "mean_reward", "tokens_per_second"
SERIES: Mapping[str, str] = {
    _RETURN: "mean return",
    "correct_rate": "rollouts above the middle of the range",
    "reward_uniform_group_rate": "groups without advantage",
    "reward_tie_pair_rate": "tied pairs",
    "reward_tie_group_rate": "groups with a tie",
    "reward_unique_fraction_mean": "distinct rewards / size",
    "floor_mass": "rollouts below the flat floor's threshold",
    "safety_floor_mass": "rollouts that missed the safety floor",
    "floor_tie_pair_rate": "tied pairs of those",
    "interior_tie_pair_rate": "tied pairs of the others",
    "malformed": "malformed replies",
    _SPEED: "tokens read and sampled, or trained on, a second",
}
"""Metrics of the log, and what they are; those that it has are shown."""
FIGURES = (_RETURN, "correct_rate", *TIE_RATES, "floor_mass", _SPEED)
"""Those that set runs side by side."""

_TENTH = 10
_NOTE = (
    "Means over the first and last tenth of the steps and over all of them, with 95 % intervals: "
    "of return and speed over steps (Student's t), of rates Clopper and Pearson's over the groups "
    "of these steps, which is wider than necessary for rates that are not shares of groups."
)
FIGURES_NOTE = "means over all training steps with 95 % intervals, as of `tokengym ties RUN`"


@dataclass(frozen=True)
class RunTies:
    """How a run's groups tied as it learned.

    Attributes:
        run: name of the folder.
        world: id of the world.
        level: the level.
        group_size: rollouts of a group.
        groups: groups of a step.
        steps: the completed steps, by the trainer's number, ascending.
        series: values at these steps by the keys of `SERIES`; `None` where a step has none.
        replies: replies of all rollouts that steps trained on.
        collapse: how it lost its signal, if it did.
    """

    run: str
    world: str
    level: str
    group_size: int
    groups: int
    steps: tuple[int, ...]
    series: Mapping[str, tuple[float | None, ...]]
    replies: int
    collapse: str | None

    def estimate(self, name: str, part: slice = slice(None)) -> Estimate | None:
        """Return the mean of a series over part of the steps with its 95 % interval.

        Returns:
            `None` if none of the steps has it. Rates are those of `groups` groups a step; the steps
            of a part are taken as alike.
        """
        values = [value for value in self.series.get(name, ())[part] if value is not None]
        if name in (_RETURN, _SPEED) or not values:
            return mean_estimate(values) if values else None
        total = len(values) * self.groups
        return share_estimate(min(max(fmean(values), 0.0), 1.0) * total, total)

    @property
    def tenth(self) -> int:
        """Steps of a tenth of the run, at least one."""
        return max(1, len(self.steps) // _TENTH)

    @property
    def summary(self) -> str:
        """The share of the groups that taught nothing, in words."""
        dead = self.estimate("reward_uniform_group_rate")
        return f"{0.0 if dead is None else dead.value:.1%} of the groups had no advantage."

    def report(self) -> Report:
        """Lay it out."""
        steps = f"{len(self.steps)} steps, groups of {self.group_size}"
        title = f"{self.run}: {self.world} {self.level}, {steps}"
        lines = [f"Collapsed: {self.collapse}."] * (self.collapse is not None) + [self.summary]
        return Report(title, lines, (self.table(),))

    def table(self) -> Table:
        """Lay out the means over parts of the run."""
        parts = (slice(self.tenth), slice(-self.tenth, None), slice(None))
        rows: list[list[Cell]] = [
            [(name, SERIES[name]), *(shown(name, self.estimate(name, part)) for part in parts)]
            for name in self.series
        ]
        header = ("", "first tenth", "last tenth", "all steps")
        return Table(header, rows, "Ties and returns as it learned", _NOTE)


def run_ties(run: RunFolder) -> RunTies:
    """Read how a run's groups tied.

    Raises:
        OptionError: if the run has not completed a step.
    """
    config, outcome = run.config, run.outcome
    rows = run.step_log(replies=False).current()
    if not rows:
        raise OptionError(f"{run.folder} has no completed step")
    series = {name: tuple(_value(row, name) for row in rows) for name in SERIES}
    collapse = None if outcome is None else outcome.collapse
    return RunTies(
        run=run.name,
        world=config.world,
        level=config.level,
        group_size=config.group_size,
        groups=config.groups_per_batch,
        steps=tuple(row.step for row in rows),
        series={name: rates for name, rates in series.items() if any(v is not None for v in rates)},
        replies=sum(int(row.metrics.get("env/all/total_turns", 0)) for row in rows),
        collapse=None if collapse is None else collapse.reason,
    )


def shown(name: str, found: Estimate | None) -> str:
    """Return a figure as tables show it; empty where there is none."""
    if found is None:
        return ""
    interval = found.interval("{:,.0f}".format)
    speed = f"{found.value:,.0f}" + (f" ({interval})" if interval else "")
    return speed if name == _SPEED else found.shown


def figure_rows(columns: Sequence[Sequence[RunTies]]) -> list[list[str]]:
    """Return the figures of runs side by side, each a mean over all steps of a column's runs.

    Args:
        columns: runs that belong together, such as those of several seeds.
    """
    return [
        [name, *(shown(name, pooled(runs, name)) for runs in columns)]
        for name in FIGURES
        if any(name in run.series for runs in columns for run in runs)
    ]


def pooled(runs: Sequence[RunTies], name: str) -> Estimate | None:
    """Return the mean of a figure over all steps of some runs; `None` if none has it."""
    found = [one for run in runs if (one := run.estimate(name)) is not None]
    if len(found) < 2:
        return found[0] if found else None
    if name in (_RETURN, _SPEED):
        values = [value for run in runs for value in run.series.get(name, ()) if value is not None]
        return mean_estimate(values)
    total = sum(one.samples for one in found)
    return share_estimate(sum(one.value * one.samples for one in found), total)


def _value(row: StepRow, name: str) -> float | None:
    logged = row.metrics
    value = named(logged).get(name, logged.get(name, logged.get(f"env/all/{name}")))
    return float(value) if isinstance(value, int | float) and isfinite(value) else None
