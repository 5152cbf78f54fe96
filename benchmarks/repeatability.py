"""Whether the same command twice leaves the same files, also after kill -9 and a resume.

    python -m benchmarks.repeatability [--kind energy ...] [--markdown docs/reliability.md]

Every kind of job is run three times with `--deterministic` and one seed: twice to its end, and once
killed after its first saved step and resumed. Printed is, for each kind, which files differ from
the first run's but for the times and addresses that docs/reliability.md lists; with `--markdown`
the rows are put into that page's table. All kinds take ten minutes on two idle cores. Run it from
the project's folder; it exits with 1 if anything differs.
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

from benchmarks.pages import read_block, table_rows
from tests.training.folders import differences, drop_unfinished
from tests.warm import run_tokengym, start_tokengym
from tokengym.agents.reports.markdown import markdown_table, write_block
from tokengym.agents.training.folder.run import RunFolder

SMALL = ["--steps", "3", "--groups", "2", "--group-size", "2", "--evaluation-tasks", "2"]
SEEDED = ["--seed", "0", "--deterministic"]
KINDS = {
    "forecast": ["train", "forecast"],
    "energy": ["train", "energy"],
    "warehouse": ["train", "warehouse"],
    "disruption": ["train", "disruption"],
    "own loop": ["train", "forecast"],
    "async": ["train", "forecast", "--mode", "async"],
    "exact credit": ["train", "energy", "--credit", "exact"],
    "warm start": ["train", "forecast", "--warm-start", "2"],
    "sft": ["sft", "forecast"],
    "dpo": ["dpo", "forecast", "--preferences", "first"],
    "distillation": ["distil", "forecast", "--teacher", "first"],
    "self-play": ["train", "disruption", "--self-play", "--max-tokens", "32"],
    "separate policies": ["train", "disruption", "--self-play", "--separate", "--max-tokens", "32"],
}
NOT_PROMISED = {"async"}
"""What trains on samples of earlier weights, which no state holds: not repeated after a kill."""
BLOCK = "repeatability.py"
HEADER = ["job", "run again", "killed and resumed"]


def train(home: Path, arguments: Sequence[str]) -> None:
    """Run a training command in a folder to its end."""
    status = run_tokengym(arguments, home, os.environ, home / "printed.txt")
    if status:
        sys.exit(
            f"{' '.join(arguments)} ended with {status}:\n{(home / 'printed.txt').read_text()}"
        )


def kill_after_a_step(home: Path, arguments: Sequence[str]) -> None:
    """Run a training command and kill it once a state is saved; its service dies with it."""
    process = start_tokengym(arguments, home, os.environ, home / "printed.txt")
    run = RunFolder(home / "run")
    policies = (run, *map(RunFolder, home.glob("run/*/")))
    while process.is_alive() and not any(one.states() for one in policies):
        time.sleep(0.02)
    process.kill()
    process.join()
    # The service, which notices within a second, is a fork and holds what the trainer had locked.
    with FileLock(run.folder / "run.lock"):
        pass


def measure(kind: str, home: Path) -> list[list[str]]:
    """Run a job three times; returns which files differ when run again, and when killed."""
    first = home / "first"
    words = [str(first) if word == "first" else word for word in KINDS[kind]]
    words += [*SMALL, *SEEDED, "--run", "run"]
    folders = [home / name for name in ("one", "two", "killed")]
    for folder in folders:
        folder.mkdir(parents=True)
    if str(first) in words:
        train(home, ["train", "forecast", *SMALL, *SEEDED, "--run", first.name])
    for folder in folders[:2]:
        train(folder, words)
    one, two, killed = (folder / "run" for folder in folders)
    if kind in NOT_PROMISED:
        return [differences(one, two)]
    kill_after_a_step(folders[2], words)
    train(folders[2], ["resume", "run"])
    drop_unfinished(killed)
    return [differences(one, two), differences(one, killed)]


def write_row(page: Path, row: list[str]) -> None:
    """Put a kind's row into the table of a page, in place of the one that is there."""
    rows = {found[0]: found for found in table_rows(read_block(page, BLOCK))[1:]}
    rows[row[0]] = row
    table = markdown_table(HEADER, [rows[kind] for kind in KINDS if kind in rows])
    write_block(page, BLOCK, table)


def main() -> None:
    """Print a row for every kind of job."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--kind", action="append", choices=KINDS, help="what to run (all)")
    parser.add_argument("--markdown", type=Path, help="a page to put the rows into")
    arguments = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    different = False
    for kind in arguments.kind or KINDS:
        home = Path(tempfile.mkdtemp())
        found = measure(kind, home)
        different = different or any(found)
        cells = [", ".join(names) or "equal" for names in found]
        row = [kind, *cells, *["not promised"] * (len(HEADER) - 1 - len(cells))]
        print(" | ".join(row), flush=True)
        if arguments.markdown:
            write_row(arguments.markdown, row)
        shutil.rmtree(home)
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
