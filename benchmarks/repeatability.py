"""Whether the same command twice leaves the same files, also after kill -9 and a resume.

Every kind of job is run three times with `--deterministic` and one seed: twice to its end, and once
killed after its first saved step and resumed. Printed is, for each kind, which files differ from
the first run's but for the times and addresses that docs/reliability.md lists. Run it from the
project's folder with `python -m benchmarks.repeatability`; it exits with 1 if anything differs.
"""

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from filelock import FileLock

from tests.training.folders import differences
from tests.warm import run_tokengym, start_tokengym
from tokengym.agents.training.run import Run

SMALL = ["--steps", "3", "--groups", "2", "--group-size", "2", "--evaluation-tasks", "2"]
SEEDED = ["--seed", "0", "--deterministic"]
KINDS = {
    "forecast": ["forecast"],
    "energy": ["energy"],
    "warehouse": ["warehouse"],
    "disruption": ["disruption"],
    "own loop": ["forecast", "--loop", "own"],
    "async": ["forecast", "--mode", "async"],
    "exact credit": ["energy", "--credit", "exact"],
    "warm start": ["forecast", "--warm-start", "2"],
    "sft": ["forecast", "--sft"],
    "dpo": ["forecast", "--dpo", "first"],
    "distillation": ["forecast", "--teacher", "first"],
    "self-play": ["disruption", "--self-play", "--max-tokens", "32"],
    "separate policies": ["disruption", "--self-play", "--separate", "--max-tokens", "32"],
}
LEFT = ("service/runs/ID+train+", "checkpoints.jsonl")
"""After a kill: states that the first start left behind, and their record."""


def train(home: Path, arguments: Sequence[str]) -> None:
    """Run `tokengym train` in a folder to its end."""
    status = run_tokengym(["train", *arguments], home, os.environ, home / "printed.txt")
    if status:
        sys.exit(
            f"{' '.join(arguments)} ended with {status}:\n{(home / 'printed.txt').read_text()}"
        )


def kill_after_a_step(home: Path, arguments: Sequence[str]) -> None:
    """Run `tokengym train` and kill it once a state is saved; its service dies with it."""
    process = start_tokengym(["train", *arguments], home, os.environ, home / "printed.txt")
    run = Run(home / "run")
    policies = (run, *map(Run, home.glob("run/*/")))
    while process.is_alive() and not any(one.states() for one in policies):
        time.sleep(0.02)
    process.kill()
    process.join()
    # The service, which notices within a second, is a fork and holds what the trainer had locked.
    with FileLock(run.folder / "run.lock"):
        pass


def measure(kind: str, home: Path) -> list[str]:
    """Run a job three times; returns what differs from the first run, with the reason."""
    words = [*KINDS[kind], *SMALL, *SEEDED, "--run", "run"]
    folders = [home / name for name in ("one", "two", "killed")]
    for folder in folders:
        folder.mkdir(parents=True)
        if "first" in words:
            train(folder, ["forecast", *SMALL, *SEEDED, "--run", "first"])
    for folder in folders[:2]:
        train(folder, words)
    kill_after_a_step(folders[2], words)
    train(folders[2], ["--resume", "run"])
    one, two, killed = (folder / "run" for folder in folders)
    again = [f"again: {name}" for name in differences(one, two)]
    resumed = [name for name in differences(one, killed) if not name.startswith(LEFT)]
    return again + [f"killed: {name}" for name in resumed]


def main() -> None:
    """Print a row for every kind of job."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--kind", action="append", choices=KINDS, help="what to run (all)")
    arguments = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    different = False
    print("| job | files that differ, run again and killed |\n|---|---|")
    for kind in arguments.kind or KINDS:
        home = Path(tempfile.mkdtemp())
        found = measure(kind, home)
        different = different or bool(found)
        print(f"| {kind} | {', '.join(found) or 'none'} |", flush=True)
        shutil.rmtree(home)
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
