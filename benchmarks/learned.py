"""What models learned: return by step in each world, between the reference policies of its ladder.

    python -m benchmarks.learned energy --picture docs/learned-energy.png
    python -m benchmarks.learned forecast energy warehouse disruption --picture docs/learned.png
    python -m benchmarks.learned energy:small --model NAME --base-url URL --seeds 0 --steps 40

One run for each seed by `tokengym train`, with its defaults: the small policy at the level that it
learns first. Of a model at a Tinker service it states the tokens and asks before anything is spent.
Called again, the script resumes interrupted runs and only reads finished ones. Further words are
options of `tokengym train`.
"""

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tokengym.agents.evaluation.trained import Trained, read_trained
from tokengym.agents.reports.markdown import markdown_table
from tokengym.agents.scale.level_scale import ladder_of
from tokengym.agents.training.folder.run import RunFolder
from tokengym.envs.registry import spec
from tokengym.rewards.estimates import Estimate, mean_estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HEADER = (
    *("level", "seed", "steps, groups, size", "return before", "after", "best constant"),
    *("above best constant", "skill", "training"),
)
_SMOOTHING = 5
"""Steps over which a curve of training rollouts is averaged."""
_INK, _COLOURS = "#7d828a", ("#3987d0", "#d07f39", "#4a9d5b")


class LearnedRun(NamedTuple):
    """A finished run.

    Attributes:
        run: its folder.
        trained: what its first role came to.
    """

    run: RunFolder
    trained: Trained

    @property
    def above_blind(self) -> Estimate:
        """Gain over the best input-independent baseline after training, paired by held-out Task."""
        blind_T = np.array(self.trained.scale.used.blind_T)
        return mean_estimate(np.array(self.trained.after.earned_T) - blind_T)

    @property
    def held_out(self) -> list[Estimate]:
        """Its return on held-out Tasks before and after training."""
        policies = self.trained.before, self.trained.after
        return [mean_estimate(policy.earned_T) for policy in policies]

    def row(self) -> tuple[str, ...]:
        """Return its row of the table."""
        config = self.run.config
        sizes = self.run.steps_done, config.groups_per_batch, config.group_size
        seconds = sum(step.seconds for step in self.run.steps())
        return (
            f"`{spec(config.world).short_name}:{config.level}`",
            str(config.seed),
            ", ".join(map(str, sizes)),
            *map(str, self.held_out),
            f"{self.trained.scale.ends.blind:.3f}",
            str(self.above_blind),
            str(self.trained.skill().after),
            f"{seconds:.0f} s",
        )


def learn(folder: Path, world: str, seed: int, options: Sequence[str]) -> LearnedRun:
    """Train in a world, unless that is done; returns the run.

    Raises:
        RuntimeError: if the run did not finish.
    """
    run = RunFolder(folder / f"{world.replace(':', '-')}-seed{seed}")
    if run.outcome is None:
        new = ("train", world, "--run", str(run.folder), "--seed", str(seed), *options)
        words = ("resume", str(run.folder)) if run.exists else new
        # A run that collapses ends with an error and still counts.
        subprocess.run([sys.executable, "-m", "tokengym.agents", *words], check=False)
    if run.outcome is None:
        raise RuntimeError(f"{run.folder} did not finish: run this command again")
    return LearnedRun(run, next(iter(read_trained(run).values())))


def references(runs: Sequence[LearnedRun]) -> dict[str, float]:
    """Return the lines of a picture: mean returns of reference policies on the held-out Tasks."""
    config, scales = runs[0].run.config, [each.trained.scale for each in runs]
    ladder = ladder_of(spec(config.world), config.level, config.trained_roles[0])
    textbook = [rung for rung in ladder.rungs if rung.kind == "textbook"] if ladder else []
    lines = {
        "optimum": [scale.ends.oracle for scale in scales],
        **{
            rung.name: [fmean(s.returns[rung.policy].used_T) for s in scales]
            for rung in textbook[-1:]
        },
        "best constant": [scale.ends.blind for scale in scales],
    }
    return {name: float(np.mean(means)) for name, means in lines.items()}


def draw(axes: "Axes", runs: Sequence[LearnedRun]) -> None:
    """Draw runs of one level; as grey on nothing legible on a white and on a dark page."""
    for colour, each in zip(_COLOURS * len(runs), runs, strict=False):
        rewards = np.array([step.reward for step in each.run.steps()])
        means = [rewards[max(0, k + 1 - _SMOOTHING) : k + 1].mean() for k in range(len(rewards))]
        axes.plot(range(1, len(means) + 1), means, color=colour, lw=0.9, alpha=0.7)
        held = each.held_out
        ends = np.abs(np.array([[h.low, h.high] for h in held]).T - [h.value for h in held])
        places = [0, len(rewards)]
        means = [h.value for h in held]
        axes.errorbar(places, means, ends, color=colour, fmt="o", ms=4, capsize=2, lw=1.5)
    steps = max(each.run.steps_done for each in runs)
    for place, (name, mean) in enumerate(references(runs).items()):
        axes.axhline(mean, color=_INK, ls="--", lw=1)
        side, above = ("right", "top") if place else ("left", "bottom")
        axes.annotate(
            name, (steps if place else 0, mean), color=_INK, fontsize=8, ha=side, va=above
        )
    config = runs[0].run.config
    axes.set_title(f"{spec(config.world).short_name}, {config.level}", color=_INK, fontsize=10)
    axes.set_xlabel("step", color=_INK, fontsize=9)
    axes.set_ylabel("mean return", color=_INK, fontsize=9)
    axes.tick_params(labelsize=8, labelcolor=_INK, color=_INK)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(_INK)


def main(arguments: Sequence[str] | None = None) -> None:
    """Train what is missing, print the table and draw the picture."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("worlds", nargs="+", help="such as energy, or energy:small")
    parser.add_argument("--seeds", default="0,1,2", help="a run in each world for each")
    parser.add_argument("--runs", type=Path, default=Path("runs/learned"), help="their folder")
    parser.add_argument("--picture", type=Path, help="the picture to write, a panel a world")
    given, options = parser.parse_known_args(arguments)
    seeds = [int(seed) for seed in given.seeds.split(",")]
    found = [[learn(given.runs, world, n, options) for n in seeds] for world in given.worlds]
    print(markdown_table(HEADER, [each.row() for runs in found for each in runs]))
    if given.picture is not None:
        from matplotlib.figure import Figure

        rows, columns = (2, 2) if len(found) == 4 else (1, len(found))
        figure = Figure(figsize=(4.2 * columns, 2.9 * rows), layout="tight")
        for axes, runs in zip(
            figure.subplots(rows, columns, squeeze=False).flat, found, strict=True
        ):
            draw(axes, runs)
        figure.savefig(given.picture, dpi=160, transparent=True)


if __name__ == "__main__":
    main()
