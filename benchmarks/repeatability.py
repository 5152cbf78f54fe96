"""Whether the same command twice leaves the same files, also after kill -9 and a resume.

    python -m benchmarks.repeatability [--kind energy ...] [--markdown docs/reliability.md]

Every kind of job is run with `--deterministic` and one seed: twice to its end, and then killed with
SIGKILL (the trainer, its service or both, in turn) at random moments and resumed, or begun anew
where nothing was written yet. Printed is, for each kind, which files differ from the first run's
but for the times and addresses that docs/reliability.md lists; with `--markdown` the rows are put
into that page's table. All kinds take a quarter of an hour on two idle cores. Run it from the
project's folder; it exits with 1 if anything differs.
"""

import argparse
import contextlib
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import psutil
from filelock import FileLock

from benchmarks.pages import read_block, table_rows, write_block
from tests.training.folders import differences, drop_unfinished
from tokengym.agents.reports.markdown import markdown_table
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
    "self-play": ["train", "disruption", "--self-play", "--max-tokens", "32"],
}
NOT_PROMISED = {"async"}
"""What trains on samples of earlier weights, which no state holds: not repeated after a kill."""
VICTIMS = ("trainer", "service", "both")
BLOCK = "repeatability.py"
HEADER = ["job", "run again", "killed and resumed"]


def start(home: Path, arguments: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start a training command in a folder."""
    home.mkdir(parents=True, exist_ok=True)
    with (home / "printed.txt").open("ab") as printed:
        command = [sys.executable, "-m", "tokengym.agents", *arguments]
        return subprocess.Popen(command, cwd=home, stdout=printed, stderr=printed)


def train(home: Path, arguments: Sequence[str]) -> float:
    """Run a training command in a folder to its end; returns its seconds."""
    begun = time.monotonic()
    if status := start(home, arguments).wait():
        shown = (home / "printed.txt").read_text()
        sys.exit(f"{' '.join(arguments)} ended with {status}:\n{shown}")
    return time.monotonic() - begun


def kill(home: Path, arguments: Sequence[str], victim: str, after: float) -> None:
    """Run a training command, and send SIGKILL to a member of `VICTIMS` after some seconds."""
    running = start(home, arguments)
    with contextlib.suppress(subprocess.TimeoutExpired):
        running.wait(after)
    with contextlib.suppress(psutil.NoSuchProcess):  # it may have ended meanwhile
        trainer = psutil.Process(running.pid)
        services = trainer.children(recursive=True)
        victims = {"trainer": [trainer], "service": services, "both": [*services, trainer]}
        for one in victims[victim]:
            one.kill()
    running.wait()
    if (home / "run").exists():
        # A service notices within a second that its trainer has ended, and holds what it locked.
        with FileLock(home / "run" / "run.lock"):
            pass


def measure(kind: str, home: Path, kills: int) -> list[list[str]]:
    """Run a job again and again; returns which files differ when run again, and when killed."""
    first, rng = home / "first", random.Random(kind)
    words = [str(first) if word == "first" else word for word in KINDS[kind]]
    words += [*SMALL, *SEEDED, "--run", "run"]
    if str(first) in words:
        train(home, ["train", "forecast", *SMALL, *SEEDED, "--run", first.name])
    lasted = train(home / "one", words)
    train(home / "two", words)
    one = home / "one" / "run"
    found = [differences(one, home / "two" / "run")]
    if kind in NOT_PROMISED:
        return found
    different: set[str] = set()
    for number in range(kills):
        folder = home / f"killed {number}"
        kill(folder, words, VICTIMS[number % len(VICTIMS)], rng.uniform(0, lasted))
        run = RunFolder(folder / "run")
        train(folder, ["resume", "run"] if run.exists else words)
        drop_unfinished(run.folder)
        different.update(differences(one, run.folder))
    return [*found, sorted(different)]


def write_row(page: Path, row: list[str]) -> None:
    """Put a kind's row into the table of a page, instead of the one that is there."""
    rows = {found[0]: found for found in table_rows(read_block(page, BLOCK))[1:]}
    rows[row[0]] = row
    table = markdown_table(HEADER, [rows[kind] for kind in KINDS if kind in rows])
    write_block(page, BLOCK, table)


def main() -> None:
    """Print a row for every kind of job."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--kind", action="append", choices=KINDS, help="what to run (all)")
    parser.add_argument("--kills", type=int, default=3, help="of each kind (3)")
    parser.add_argument("--markdown", type=Path, help="a page to put the rows into")
    arguments = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    different = False
    for kind in arguments.kind or KINDS:
        home = Path(tempfile.mkdtemp())
        found = measure(kind, home, arguments.kills)
        different = different or any(found)
        cells = [", ".join(names) or "equal" for names in found]
        row = [kind, *cells, *["not promised"] * (len(HEADER) - 1 - len(cells))]
        print(" | ".join(row), flush=True)
        if arguments.markdown:
            write_row(arguments.markdown, row)
        if not any(found):
            shutil.rmtree(home)
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
