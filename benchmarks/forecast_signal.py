"""How much of a forecast's advantage is signal: by outcomes of the label, group size and grid.

    python benchmarks/forecast_signal.py                 the levels easy, hard and expert
    python benchmarks/forecast_signal.py --tasks 2000 --scatter 0.35

Groups of forecasts scatter around the exact probability, by a normal on the log-odds. The first
table shows the correlation of their group-centred advantages under K outcomes a question with
those under the exact probabilities, with the 95 % interval of a bootstrap over questions; the
second the share of pairs in a group that earn the same, and of groups that all do, by the grid that
the answers lie on; the third, on a grid of .05, how many questions a step needs so that its
gradient makes an underconfident policy bolder in 95 % of steps.
"""

import argparse
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tokengym.agents.reports.markdown import markdown_table
from tokengym.envs.registry import make_world
from tokengym.rewards.ties import tie_statistics

OUTCOMES = (1, 4, 16, 64)
SIZES = (4, 8, 16)
GRIDS = (0.1, 0.05, 0.01, 0.001)
COARSE = 0.05
"""The grid that language models answer on when they are not asked for more."""
BOLDNESS = (0.5, 0.9)
"""Sizes of an underconfident policy's log-odds, relative to the exact ones."""
ENOUGH = 1.6449
"""Standard errors above 0 that a normal mean must lie to be positive in 95 % of samples."""

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


def exact_odds(level: str, tasks: int) -> tuple[Floats, list[int]]:
    """Return the exact log-odds of yes of yes/no questions, and the indices of their Tasks."""
    world = make_world("forecast", level)
    chances: list[float] = []
    indices: list[int] = []
    index = 0
    while len(chances) < tasks:
        answer = world.task("train", index).answer
        if len(answer["p_bayes"]) == 2:
            chances.append(min(0.98, max(0.02, answer["p_bayes"][1])))
            indices.append(index)
        index += 1
    return np.log(np.array(chances) / (1.0 - np.array(chances))), indices


def state(logits_TG: Floats, grid: float) -> Floats:
    """Return the probabilities of log-odds, rounded to a grid."""
    rounded_TG: Floats = np.round(1.0 / (1.0 + np.exp(-logits_TG)) / grid) * grid
    return rounded_TG.clip(0.0, 1.0)


def correlate(first_TG: Floats, second_TG: Floats, rng: np.random.Generator) -> str:
    """Return the correlation of group-centred advantages with its bootstrap interval."""
    a, b = (of - of.mean(axis=1, keepdims=True) for of in (first_TG, second_TG))
    sums_T3 = np.stack([(a * b).sum(axis=1), (a * a).sum(axis=1), (b * b).sum(axis=1)], axis=1)

    def of(sums_3: Floats) -> float:
        return float(sums_3[0] / np.sqrt(sums_3[1] * sums_3[2]))

    picks_DT = rng.integers(len(sums_T3), size=(_DRAWS, len(sums_T3)))
    low, high = np.quantile([of(sums_T3[picks].sum(axis=0)) for picks in picks_DT], (0.025, 0.975))
    return f"{of(sums_T3.sum(axis=0)):.3f} ({low:.2f} to {high:.2f})"


def questions_needed(returns_TG: Floats, noise_TG: Floats, logits_T: Floats) -> str:
    """Return how many questions a step needs for a gradient of the right sign in 95 % of steps.

    The parameter is the boldness of a policy that scatters normally around a multiple of the exact
    log-odds; its score function is the noise times these.
    """
    advantages_TG = returns_TG - returns_TG.mean(axis=1, keepdims=True)
    slopes_T = (advantages_TG * noise_TG).mean(axis=1) * logits_T
    mean, error = slopes_T.mean(), slopes_T.std(ddof=1)
    if mean <= ENOUGH * error / np.sqrt(len(slopes_T)):
        return f"over {len(slopes_T)}"
    return f"{np.ceil((ENOUGH * error / mean) ** 2):.0f}"


def main() -> None:
    """Print the three tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--levels", default="easy,hard,expert", help="names of levels")
    parser.add_argument("--tasks", type=int, default=500, help="yes/no questions of each level")
    parser.add_argument(
        "--scatter", type=float, default=0.7, help="standard deviation of the forecasts' log-odds"
    )
    given = parser.parse_args()
    labels = [*map(label_of, OUTCOMES), "expected"]
    correlations, ties, needed = [], [], []
    for level in given.levels.split(","):
        rng = np.random.default_rng(0)
        logits_T, indices = exact_odds(level, given.tasks)
        noise_TG = rng.normal(size=(given.tasks, max(SIZES)))
        around_TG = logits_T[:, None] + given.scatter * noise_TG
        for grid in GRIDS:
            stated_TG = state(around_TG, grid)
            under = [returns_of(level, label, stated_TG, indices) for label in labels]
            rates = [tie_statistics(of[:, :8]) for of in under]
            uniform = [tie_statistics(under[0][:, :size]) for size in SIZES]
            pairs = [f"{rate['reward_tie_pair_rate']:.3f}" for rate in rates]
            groups = [f"{rate['reward_uniform_group_rate']:.3f}" for rate in uniform]
            ties.append((f"`{level}`", f"{grid:g}", *pairs, *groups))
        *noisy, exact_TG = under
        for size in SIZES:
            cells = (correlate(of[:, :size], exact_TG[:, :size], rng) for of in noisy)
            correlations.append((f"`{level}`", str(size), *cells))
        for boldness in BOLDNESS:
            stated_TG = state(boldness * logits_T[:, None] + given.scatter * noise_TG, COARSE)
            under = [returns_of(level, label, stated_TG, indices) for label in labels]
            for size in SIZES:
                few = (questions_needed(of[:, :size], noise_TG[:, :size], logits_T) for of in under)
                needed.append((f"`{level}`", f"{boldness:g}", str(size), *few))
    by_label = [*(f"K = {k}" for k in OUTCOMES), "exact"]
    print(markdown_table(("level", "G", *by_label[:-1]), correlations))
    print()
    print(markdown_table(("level", "grid", *by_label, *(f"all tie, G = {g}" for g in SIZES)), ties))
    print()
    print(markdown_table(("level", "boldness", "G", *by_label), needed))


if __name__ == "__main__":
    main()
