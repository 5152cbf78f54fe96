"""What training on forecasts changed: a table of runs, and a picture of the first.

    tokengym train forecast --seed 0 --run runs/forecast-0
    python benchmarks/forecast_picture.py runs/forecast-0 --figure docs/forecast.png

The correlation is that of the stated with the exact probability, which each held-out Task knows.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tokengym.agents.analysis.markdown import markdown_table
from tokengym.agents.training.run import Run
from tokengym.envs.registry import make_world

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

HEADER = (
    *("seed", "return before", "after", "skill before", "after"),
    "correlation of stated and exact probability",
)
ROLE = "forecaster"
_SMOOTHING = 10
"""Steps over which the curve is averaged."""


def forecasts(run: Run, when: str) -> "NDArray[np.float64]":
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


def row(run: Run) -> tuple[str, ...]:
    """Return the run's row of the table."""
    outcome = run.outcome
    if outcome is None:
        raise ValueError(f"{run.folder} must hold a finished run")
    skill = outcome.skill(ROLE)
    related = [_correlation(forecasts(run, when)) for when in ("before", "after")]
    return (
        str(run.config.seed),
        *(str(outcome.before.returns), str(outcome.after.returns)),
        *(str(skill.before), str(skill.after)),
        " → ".join(f"{value:.2f}" for value in related),
    )


def _correlation(pairs: "NDArray[np.float64]") -> float:
    exact, stated = pairs.T
    return float(np.corrcoef(exact, stated)[0, 1])


def draw(run: Run) -> "Figure":
    """Draw the return of each step, and the forecasts before and after."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 5), layout="tight")
    left, right = figure.subplots(1, 2)
    rewards = np.array([step.reward for step in run.steps()])
    means = [rewards[max(0, k + 1 - _SMOOTHING) : k + 1].mean() for k in range(len(rewards))]
    left.plot(rewards, color="#9db8d2", lw=0.8)
    left.plot(means, color="#1f5f99", lw=2.5)
    if run.outcome is not None:
        yardstick = run.outcome.references[ROLE].yardstick
        for name, earned in (("best constant", yardstick.blind_T), ("oracle", yardstick.oracle_T)):
            left.axhline(float(np.mean(earned)), color="grey", ls="--", lw=1)
            left.annotate(name, (len(rewards), float(np.mean(earned))), ha="right", va="bottom")
    left.set(xlabel="step", ylabel="mean return of the step's rollouts")
    for when, colour in (("before", "#bbbbbb"), ("after", "#1f5f99")):
        exact, stated = forecasts(run, when).T
        right.plot(exact, stated, ".", color=colour, ms=4, alpha=0.7, label=when)
    right.plot([0, 1], [0, 1], color="black", lw=0.8)
    right.set(xlabel="exact probability", ylabel="stated probability")
    right.legend(title="held-out questions", loc="upper left")
    return figure


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table and draw the picture."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", type=Path, nargs="+", help="finished run folders of forecast")
    parser.add_argument("--figure", type=Path, help="a picture of the first run to write")
    given = parser.parse_args(arguments)
    runs = [Run(folder) for folder in given.runs]
    print(markdown_table(HEADER, [row(run) for run in runs]))
    if given.figure is not None:
        draw(runs[0]).savefig(given.figure, dpi=110)


if __name__ == "__main__":
    main()
