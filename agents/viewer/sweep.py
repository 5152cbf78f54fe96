"""Runs of one world with different settings, side by side: ties, returns, speed and skill."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from tokengym.agents.evaluation.run_ties import (
    FIGURES,
    FIGURES_NOTE,
    RunTies,
    figure_rows,
    pooled,
    run_ties,
)
from tokengym.agents.evaluation.trained import Trained, read_trained
from tokengym.agents.models.files import read_object
from tokengym.agents.reports.report import Chart, Report, Series, Table
from tokengym.agents.scale.level_scale import skill_of
from tokengym.agents.settings import plain
from tokengym.agents.training.folder.run import RunFolder
from tokengym.envs.core.errors import OptionError
from tokengym.envs.core.spec import short_name
from tokengym.rewards.estimates import Estimate
from tokengym.rewards.skill import describe_skill

_NOTE = (
    f"{FIGURES_NOTE}; skill is that of the mean return of all seeds on each held-out Task: 0 is "
    "the best policy that ignores the Task, 1 the oracle, and its interval is over Tasks"
)


@dataclass(frozen=True)
class SweepColumn:
    """The runs of one combination of settings, which differ by their seeds.

    Attributes:
        ties: how each went, step by step.
        found: what each came to in what it trained first.
    """

    ties: Sequence[RunTies]
    found: Sequence[Trained]

    @property
    def skills(self) -> list[float]:
        """Skill after training of each run."""
        return [run.after.result.skill.value for run in self.found]

    @property
    def skill(self) -> Estimate:
        """Skill after training, of the seeds together."""
        returns = [run.after.earned_T for run in self.found]
        means_T = [fmean(of_task) for of_task in zip(*returns, strict=True)]
        return skill_of(self.found[0].scale.used, means_T)

    @property
    def replies(self) -> int:
        """Replies that a run was trained on, on average."""
        return round(fmean(run.replies for run in self.ties))

    @property
    def collapsed(self) -> int:
        """How many runs lost their signal; each is judged by its last good checkpoint."""
        return sum(run.collapse is not None for run in self.ties)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        names = ("skill", "skills", "replies", "collapsed")
        found = {name: pooled(self.ties, name) for name in FIGURES}
        mine = {name: getattr(self, name) for name in names}
        values: dict[str, Any] = plain({**found, **mine, "runs": [run.run for run in self.ties]})
        return values


def saved_sweep(folder: Path) -> Report:
    """Lay out the sweep whose runs a folder holds; its `sweep.json` says which belong together.

    Raises:
        OptionError: if that file is damaged, or one of the runs is unfinished.
    """
    found = read_object(folder / "sweep.json", OptionError)
    runs = {label: [RunFolder(folder / run) for run in one["runs"]] for label, one in found.items()}
    first = next(iter(runs.values()))[0].config
    seeds = max(map(len, runs.values()))
    place = f"{short_name(first.world)} {first.level}"
    title = f"{place}, {first.steps} steps, {seeds} seed{'s' * (seeds > 1)} each"
    return sweep_report(title, sweep_columns(runs))


def sweep_columns(runs: Mapping[str, Sequence[RunFolder]]) -> dict[str, SweepColumn]:
    """Return by label the columns of finished runs.

    Raises:
        OptionError: if one is unfinished.
    """
    return {
        label: SweepColumn(
            [*map(run_ties, several)], [next(iter(read_trained(run).values())) for run in several]
        )
        for label, several in runs.items()
    }


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
        ["by seed", *(", ".join(f"{skill:.2f}" for skill in column.skills) for column in every)],
        ["replies spent by a run", *(f"{column.replies:,}" for column in every)],
    ]
    if any(column.collapsed for column in every):
        rows.append(["collapsed runs", *(f"{column.collapsed}" for column in every)])
    table = Table(("", *columns), rows, note=_NOTE)
    return Report(title, (), (_skills(columns), table))


def _skills(columns: Mapping[str, SweepColumn]) -> Chart:
    each = [(at, skill) for at, column in enumerate(columns.values()) for skill in column.skills]
    skills = [column.skill for column in columns.values()]
    value, low, high, _ = ([*part] for part in zip(*skills, strict=True))
    places, seeds = ([*part] for part in zip(*each, strict=True))
    series = [
        Series("each seed", places, seeds, kind="dots"),
        Series("seeds together", [*range(len(skills))], value, low, high, kind="dots"),
    ]
    return Chart("Skill on held-out Tasks", "", "skill", series, ticks=list(columns))
