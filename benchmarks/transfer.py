"""Training on forecast, on energy and on both: what one world's training does for the other.

    python benchmarks/transfer.py --seeds 0,1,2

For each seed the starting policy is trained on either world alone and on both mixed, with as many
groups of a world wherever it is trained on. All four policies then play the held-out Tasks of both
worlds, and are compared paired by Task. Runs and evaluations are kept in `--folder`: called again,
the script resumes the interrupted ones and only reads the finished ones.
"""

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tokengym.agents.evaluation.config import EvaluationConfig, WorldLevel
from tokengym.agents.evaluation.folder import EvaluationFolder
from tokengym.agents.evaluation.results import Results
from tokengym.agents.evaluation.run import run_evaluation
from tokengym.agents.reports.markdown import markdown_table
from tokengym.agents.toy_model import TOY_MODEL
from tokengym.agents.training.folder.run import RunFolder

HELD_OUT = {"forecast:easy": 256, "energy:evening": 128}
"""By world the number of held-out Tasks."""
STEPS = 12
GROUPS = {"forecast:easy": 12, "energy:evening": 3}
"""Groups a step of each world that is trained on."""
MIXED = ",".join(HELD_OUT)
TRAINED = (MIXED, *HELD_OUT)
MAX_TOKENS = 12
"""Of a reply, in both worlds: an untrained form must not be cut off where a trained one is not."""
SETTINGS = ("--steps", STEPS, "--group-size", 8, "--learning-rate", 0.0015)
HEADER = (
    *("evaluated on", "trained on", "return, by seed"),
    *("less the initial policy's", "less that of training on this world alone"),
)


def train(folder: Path, worlds: str, seed: int) -> Path:
    """Train the starting policy on one or more worlds, unless that is done; returns its folder.

    Raises:
        RuntimeError: if the run did not finish.
    """
    run = RunFolder(folder / f"{worlds.replace(',', '-').replace(':', '-')}-seed{seed}")
    if run.outcome is None:
        groups = [GROUPS[world] for world in worlds.split(",")]
        new = (
            *(worlds, "--run", run.folder, "--seed", seed, "--groups", sum(groups)),
            *(*SETTINGS, "--max-tokens", MAX_TOKENS, "--evaluation-tasks", 2),
            *(("--mix", ",".join(map(str, groups))) if len(groups) > 1 else ()),
        )
        words = ("resume", run.folder) if run.exists else ("train", *new)
        # A run that collapses ends with an error and still counts.
        subprocess.run([sys.executable, "-m", "tokengym.agents", *map(str, words)], check=False)
    if run.outcome is None:
        raise RuntimeError(f"{run.folder} did not finish: run this command again")
    return run.folder


def evaluate(folder: Path, world: str, runs: Sequence[Path], seed: int) -> Results:
    """Play a world's held-out Tasks with the runs' policies, and with the starting policy last."""
    config = EvaluationConfig(
        (WorldLevel.parse(world),),
        (*map(str, runs), TOY_MODEL),
        tasks=HELD_OUT[world],
        max_tokens=MAX_TOKENS,
        seed=seed,
    )
    kept = EvaluationFolder(folder / f"evaluated-{world.replace(':', '-')}-seed{seed}")
    return run_evaluation(config, kept)


def rows(world: str, found: Sequence[Results]) -> list[tuple[str, ...]]:
    """Return the table's rows of one world: the seeds' values side by side."""
    both, untrained = TRAINED.index(MIXED), len(TRAINED)

    def less(first: int, second: int) -> str:
        """Return the mean return of a policy less that of one named after it."""
        names = [[results.policies[one].policy for one in (first, second)] for results in found]
        pairs = [
            next(str(one.difference) for one in results.pairs if [one.first, one.second] == pair)
            for results, pair in zip(found, names, strict=True)
        ]
        return ", ".join(pairs)

    return [
        (
            *(world, "both" if name == MIXED else name),
            ", ".join(str(results.policies[place].mean_return) for results in found),
            less(place, untrained) if place != untrained else "",
            less(place, TRAINED.index(world)) if place == both else "",
        )
        for place, name in enumerate((*TRAINED, "neither"))
    ]


def main() -> None:
    """Train and evaluate what is missing, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", default="0,1,2", help="one run of each kind for each")
    parser.add_argument("--folder", type=Path, default=Path("runs/transfer"), help="of the runs")
    given = parser.parse_args()
    found: dict[str, list[Results]] = {world: [] for world in HELD_OUT}
    for seed in map(int, given.seeds.split(",")):
        runs = [train(given.folder, worlds, seed) for worlds in TRAINED]
        for world, results in found.items():
            results.append(evaluate(given.folder, world, runs, seed))
    print(markdown_table(HEADER, [row for pair in found.items() for row in rows(*pair)]))


if __name__ == "__main__":
    main()
