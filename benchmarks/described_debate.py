"""Learning curves of the debate as it was first described, beside the same on the default reward.

    tokengym train disruption --as-described --run runs/described
    tokengym train disruption --as-described --option reward=proper --run runs/proper
    python benchmarks/described_debate.py runs/described runs/proper --figure docs/described.png

Returns of two rewards are no measure of each other, so the curves show what both should teach: how
many replies have the form, how many final labels are right, and the loss of the final report.
"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tokengym.agents.analysis.episode_report import mean_figures
from tokengym.agents.analysis.markdown import markdown_table
from tokengym.agents.evaluation.plan import RUN_POLICIES
from tokengym.agents.evaluation.trained import read_trained
from tokengym.agents.training.folder.run import RunFolder

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHOWN = {
    "well_formed": "replies in form",
    "right_final": "final labels right",
    "half_brier": "half-Brier of the final report",
}
FURTHER = {
    "appropriate_revision": "appropriate revision",
    "firm_defence": "firm defence",
}
WHEN = ("before", "after the warm start", "after the rewards")
COLOURS = {"original": "#c4562a", "proper": "#1f5f99"}
_SMOOTHING = 5
"""Steps over which a curve is averaged."""


def smooth(values: np.ndarray) -> np.ndarray:
    """Average each step with those before it, fewer at the start."""
    return np.array([values[max(0, k + 1 - _SMOOTHING) : k + 1].mean() for k in range(len(values))])


def rows(run: RunFolder, reward: str) -> list[tuple[str, ...]]:
    """Return the rows of a run: what its policy did on held-out papers, by when.

    Raises:
        RuntimeError: if the run did not finish.
    """
    if run.outcome is None:
        raise RuntimeError(f"{run.folder} did not finish: resume it")
    made = []
    (found,) = read_trained(run).values()
    for when, name in zip(WHEN, RUN_POLICIES, strict=True):
        evaluation = found.policies[name]
        figures = mean_figures(evaluation.table)
        cells = [f"{figures[name]:.2f}" if name in figures else "" for name in {**SHOWN, **FURTHER}]
        made.append((f"`{reward}`", when, str(evaluation.result.earned), *cells))
    return made


def draw(runs: dict[str, RunFolder]) -> "Figure":
    """Draw one panel for each figure: its mean over a step's rollouts, by reward."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.2 * len(SHOWN), 3.4), layout="tight")
    for axes, (name, title) in zip(figure.subplots(1, len(SHOWN)), SHOWN.items(), strict=True):
        for reward, run in runs.items():
            measured = [row.metrics.get(f"env/all/{name}", np.nan) for row in run.steps()]
            axes.plot(smooth(np.array(measured, float)), color=COLOURS[reward], label=reward)
        axes.set(title=title, xlabel="step after the warm start")
        axes.legend(title="reward")
    return figure


def main() -> None:
    """Print the table and draw the curves."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", nargs="+", type=Path, help="one of each reward")
    parser.add_argument("--figure", type=Path, help="a picture of the curves to write")
    given = parser.parse_args()
    found = [RunFolder.open(folder) for folder in given.runs]
    runs = {run.config.options["reward"]: run for run in found}
    columns = {**SHOWN, **FURTHER, "well_formed": "debates in form to the end"}
    header = ("reward", "on held-out papers", "expected return", *columns.values())
    print(
        markdown_table(header, [row for reward, run in runs.items() for row in rows(run, reward)])
    )
    if given.figure is not None:
        draw(runs).savefig(given.figure, dpi=110)


if __name__ == "__main__":
    main()
