"""Learning curves of the three labels: what training on noisier outcomes costs.

    python benchmarks/label_curves.py                              both worlds, two seeds
    python benchmarks/label_curves.py --worlds forecast --seeds 0,1,2 --figure docs/labels.png

Each run trains the starting policy on one label: `outcome`, `replay:8` (the mean of eight outcomes)
or `expected` (the exact probabilities). Whatever the label, a curve shows the expected return of
each step's rollouts, and the table the skill on held-out Tasks, by outcomes and by the exact
probabilities. Runs are kept in `--folder`: called again, the script resumes the interrupted ones
and only reads the finished ones.
"""

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tokengym.agents.analysis.markdown import markdown_table
from tokengym.agents.evaluation.trained import read_trained
from tokengym.agents.training.folder.run import RunFolder
from tokengym.envs.core.turn import expected_return
from tokengym.envs.registry import spec

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LABELS = ("outcome", "replay:8", "expected")
COLOURS = ("#c4562a", "#8a8a8a", "#1f5f99")
HEADER = (
    *("world", "label", "seeds", "return of the last ten steps, expected"),
    *("skill after, on outcomes", "skill after, given the exact probabilities"),
)
_SMOOTHING = 5
"""Steps over which a curve is averaged."""


class Budget(NamedTuple):
    """What every run of a world may use, whatever its label."""

    steps: int
    evaluation_tasks: int


BUDGETS = {"forecast": Budget(60, 256), "disruption": Budget(30, 128)}


def train(folder: Path, world: str, label: str, seed: int) -> RunFolder:
    """Train the starting policy on a label, unless that is done.

    Raises:
        RuntimeError: if the run did not finish.
    """
    run = RunFolder(folder / f"{world}-{label.replace(':', '')}-seed{seed}")
    if run.outcome is None:
        budget = BUDGETS[world]
        new = (
            *(world, "--run", run.folder, "--seed", seed, "--option", f"label={label}"),
            *("--steps", budget.steps, "--evaluation-tasks", budget.evaluation_tasks),
        )
        words = ("resume", run.folder) if run.exists else ("train", *new)
        # A run that collapses ends with an error and still counts.
        subprocess.run([sys.executable, "-m", "tokengym.agents", *map(str, words)], check=False)
    if run.outcome is None:
        raise RuntimeError(f"{run.folder} did not finish: run this command again")
    return run


def curve(run: RunFolder, world: str) -> np.ndarray:
    """Return the mean expected return of each step's rollouts, shape (steps,)."""
    name = f"env/all/{expected_return(spec(world).roles[0])}"
    return np.array([float(row.metrics[name]) for row in run.steps()])


def smooth(values: np.ndarray) -> np.ndarray:
    """Average each step with those before it, fewer at the start."""
    return np.array([values[max(0, k + 1 - _SMOOTHING) : k + 1].mean() for k in range(len(values))])


def row(world: str, label: str, runs: Sequence[RunFolder]) -> tuple[str, ...]:
    """Return a row of the table: the seeds' values side by side."""
    found = [next(iter(read_trained(run).values())) if run.outcome else None for run in runs]
    paid = [one and one.skill_on_outcomes() for one in found]
    return (
        *(world, f"`{label}`", str(len(runs))),
        ", ".join(f"{curve(run, world)[-10:].mean():.3f}" for run in runs),
        ", ".join(str(skill.after) if skill else "not measured" for skill in paid),
        ", ".join(str(one.skill().after) if one else "not measured" for one in found),
    )


def draw(found: dict[str, dict[str, list[RunFolder]]]) -> "Figure":
    """Draw one panel a world: each run's curve, thin, and the mean over seeds, thick."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.5 * len(found), 3.8), layout="tight")
    for axes, (world, by_label) in zip(
        figure.subplots(1, len(found), squeeze=False)[0], found.items(), strict=True
    ):
        for colour, (label, runs) in zip(COLOURS, by_label.items(), strict=True):
            curves = [curve(run, world) for run in runs]
            for one in curves:
                axes.plot(smooth(one), color=colour, lw=0.6, alpha=0.5)
            least = min(map(len, curves))
            mean = np.mean([one[:least] for one in curves], axis=0)
            axes.plot(smooth(mean), color=colour, lw=2.0, label=label)
        axes.set(title=world, xlabel="step", ylabel="expected return of the step's rollouts")
        axes.legend(title="trained on", loc="lower right")
    return figure


def main() -> None:
    """Train what is missing, print the table, and draw the curves."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--worlds", default=",".join(BUDGETS), help="short names")
    parser.add_argument("--seeds", default="0,1", help="one run of each label for each")
    parser.add_argument("--folder", type=Path, default=Path("runs/labels"), help="of the runs")
    parser.add_argument("--figure", type=Path, help="a picture of the curves to write")
    given = parser.parse_args()
    seeds = [int(seed) for seed in given.seeds.split(",")]
    found = {
        world: {
            label: [train(given.folder, world, label, seed) for seed in seeds] for label in LABELS
        }
        for world in given.worlds.split(",")
    }
    print(
        markdown_table(
            HEADER,
            [row(world, *pair) for world, by_label in found.items() for pair in by_label.items()],
        )
    )
    if given.figure is not None:
        draw(found).savefig(given.figure, dpi=110)


if __name__ == "__main__":
    main()
