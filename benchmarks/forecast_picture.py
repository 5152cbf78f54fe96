"""What training on forecasts changed: a table of runs, and the learning curve of the first.

    tokengym train forecast --seed 0 --run runs/forecast-0
    python benchmarks/forecast_picture.py runs/forecast-0 --figure docs/forecast.png

The correlation is that of the stated with the exact probability, which each held-out Task knows.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tokengym.agents.evaluation.trained import read_trained
from tokengym.agents.reports.markdown import markdown_table
from tokengym.agents.training.folder.run import RunFolder
from tokengym.envs.registry import make_world

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    Forecasts = dict[str, NDArray[np.float64]]

HEADER = (
    *("seed", "return before", "after", "skill before", "after"),
    "correlation of stated and exact probability",
)
ROLE = "forecaster"
WHEN = ("before", "after")
_SMOOTHING = 10
"""Steps over which the curve is averaged."""
_INK = "#7d828a"


def forecasts(run: RunFolder, when: str) -> "NDArray[np.float64]":
    """Return the exact and the stated probability of each held-out Task, shape (tasks, 2)."""
    found = [
        (record, stated)
        for record in run.rollouts.read(f"evaluation_{when}")
        if (stated := record.metrics.get("probability")) is not None
    ]
    if not found:
        raise ValueError(f"{run.folder} must hold the forecasts of an evaluation {when} training")
    first = found[0][0]
    world = make_world(first.world, first.level, **first.origin.options)
    tasks = [world.task(record.split, record.index) for record, _ in found]
    exact = [task.answer["p_bayes"][1] for task in tasks]
    return np.array([exact, [stated for _, stated in found]]).T


def row(run: RunFolder, found: "Forecasts") -> tuple[str, ...]:
    """Return the run's row of the table."""
    one = read_trained(run)[ROLE]
    skill = one.skill_on_outcomes() or one.skill()
    related = [float(np.corrcoef(*found[when].T)[0, 1]) for when in WHEN]
    return (
        str(run.config.seed),
        *(str(each.result.mean_return) for each in (one.before, one.after)),
        *(str(skill.before), str(skill.after)),
        " → ".join(f"{value:.2f}" for value in related),
    )


def draw(run: RunFolder) -> "Figure":
    """Draw training and held-out returns between what blind forecasts and exact posteriors earn.

    Legible at 400 pixels, and as grey on nothing both on a white and on a dark page.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.0, 2.6), layout="tight")
    axes = figure.subplots()
    rewards = np.array([step.reward for step in run.steps()])
    means = [rewards[max(0, k + 1 - _SMOOTHING) : k + 1].mean() for k in range(len(rewards))]
    axes.plot(rewards, color=_INK, lw=0.5, alpha=0.45)
    axes.plot(means, color=_INK, lw=1.2)
    trained = read_trained(run)[ROLE]
    held = [each.result.mean_return for each in (trained.before, trained.after)]
    ends = np.abs(np.array([[one.low, one.high] for one in held]).T - [one.value for one in held])
    axes.errorbar(
        [0, len(rewards)],
        [one.value for one in held],
        ends,
        color="#3987d0",
        lw=2.5,
        marker="o",
        ms=5,
        capsize=2,
    )
    yardstick = trained.scale.used
    lines = (("best constant", yardstick.blind_T, "top"), ("optimum", yardstick.oracle_T, "bottom"))
    for name, earned, place in lines:
        mean = float(np.mean(earned))
        axes.axhline(mean, color=_INK, ls="--", lw=1)
        axes.annotate(name, (len(rewards), mean), ha="right", va=place, color=_INK, fontsize=9)
    axes.set_xlabel("step", color=_INK, fontsize=9)
    axes.set_ylabel("mean return", color=_INK, fontsize=9)
    axes.tick_params(labelsize=8.5, labelcolor=_INK, color=_INK)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(_INK)
    return figure


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table and draw the picture."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", type=Path, nargs="+", help="finished run folders of forecast")
    parser.add_argument("--figure", type=Path, help="a picture of the first run to write")
    given = parser.parse_args(arguments)
    runs = [RunFolder(folder) for folder in given.runs]
    found = [{when: forecasts(run, when) for when in WHEN} for run in runs]
    print(markdown_table(HEADER, list(map(row, runs, found))))
    if given.figure is not None:
        draw(runs[0]).savefig(given.figure, dpi=220, transparent=True)


if __name__ == "__main__":
    main()
