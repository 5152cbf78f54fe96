"""How much of a forecast's advantage is signal: by outcomes of the label, group size and decimals.

    python benchmarks/forecast_signal.py                 the levels easy, medium, hard and expert
    python benchmarks/forecast_signal.py --tasks 2000

Groups of forecasts scatter around the exact probability, by a normal on the log-odds. The first
table shows the correlation of their group-centred advantages under K outcomes a question with
those under the exact probabilities, with the 95 % interval of a bootstrap over questions; the
second the share of pairs in a group that earn the same under one outcome, by the decimals stated.
"""

import argparse
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tokengym.agents.analysis.markdown import markdown_table
from tokengym.envs.registry import make_world
from tokengym.rewards.ties import tie_statistics

OUTCOMES = (1, 4, 16, 64)
SIZES = (4, 8, 16)
DECIMALS = (1, 2, 3)
SCATTER = 0.7
"""Standard deviation of the forecasts' log-odds around those of the exact probability."""

_DRAWS = 1000

Floats = npt.NDArray[np.float64]


def label_of(outcomes: int) -> str:
    """Return the label that averages K outcomes."""
    return "outcome" if outcomes == 1 else f"replay:{outcomes}"


def returns_of(level: str, label: str, stated_TG: Floats, indices: Sequence[int]) -> Floats:
    """Return what forecasts of yes earn under a label, shape (tasks, forecasts)."""
    world = make_world("forecast", level, label=label)
    returns_TG = np.empty_like(stated_TG)
    for row, index in enumerate(indices):
        task = world.task("train", index)
        for member, probability in enumerate(stated_TG[row]):
            world.start(task)
            world.reply(f"Probability: {probability:.10g}")
            returns_TG[row, member] = world.returns["forecaster"]
    return returns_TG


def state_forecasts(level: str, tasks: int, rng: np.random.Generator) -> tuple[Floats, list[int]]:
    """Return forecasts around the exact probabilities of yes/no questions, and their indices."""
    world = make_world("forecast", level)
    odds: list[float] = []
    indices: list[int] = []
    index = 0
    while len(odds) < tasks:
        answer = world.task("train", index).answer
        if len(answer["p_bayes"]) == 2:
            odds.append(min(0.98, max(0.02, answer["p_bayes"][1])))
            indices.append(index)
        index += 1
    logits_T = np.log(np.array(odds) / (1.0 - np.array(odds)))
    scattered_TG = logits_T[:, None] + SCATTER * rng.normal(size=(tasks, max(SIZES)))
    return 1.0 / (1.0 + np.exp(-scattered_TG)), indices


def correlate(first_TG: Floats, second_TG: Floats, rng: np.random.Generator) -> str:
    """Return the correlation of group-centred advantages with its bootstrap interval."""
    a, b = (of - of.mean(axis=1, keepdims=True) for of in (first_TG, second_TG))
    sums_T3 = np.stack([(a * b).sum(axis=1), (a * a).sum(axis=1), (b * b).sum(axis=1)], axis=1)

    def of(sums_3: Floats) -> float:
        return float(sums_3[0] / np.sqrt(sums_3[1] * sums_3[2]))

    picks_DT = rng.integers(len(sums_T3), size=(_DRAWS, len(sums_T3)))
    low, high = np.quantile([of(sums_T3[picks].sum(axis=0)) for picks in picks_DT], (0.025, 0.975))
    return f"{of(sums_T3.sum(axis=0)):.3f} ({low:.2f} to {high:.2f})"


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--levels", default="easy,medium,hard,expert", help="names of levels")
    parser.add_argument("--tasks", type=int, default=500, help="yes/no questions of each level")
    given = parser.parse_args()
    correlations, ties = [], []
    for level in given.levels.split(","):
        rng = np.random.default_rng(0)
        stated_TG, indices = state_forecasts(level, given.tasks, rng)
        rounded_TG = stated_TG.round(3)
        labels = ("expected", *map(label_of, OUTCOMES))
        exact_TG, *noisy = (returns_of(level, label, rounded_TG, indices) for label in labels)
        for size in SIZES:
            cells = (correlate(of[:, :size], exact_TG[:, :size], rng) for of in noisy)
            correlations.append((f"`{level}`", str(size), *cells))
        for decimals in DECIMALS:
            under_TG = returns_of(level, "outcome", stated_TG.round(decimals), indices)
            found = [tie_statistics(under_TG[:, :size]) for size in SIZES]
            shares = [one["reward_tie_pair_rate"] for one in found]
            ties.append((f"`{level}`", str(decimals), *(f"{share:.3f}" for share in shares)))
    print(markdown_table(("level", "G", *(f"K = {k}" for k in OUTCOMES)), correlations))
    print()
    print(markdown_table(("level", "decimals", *(f"G = {size}" for size in SIZES)), ties))


if __name__ == "__main__":
    main()
