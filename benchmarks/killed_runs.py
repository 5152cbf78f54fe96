"""Whether runs killed at random instants, once resumed, end like those that were not.

    python -m benchmarks.killed_runs [--runs 300] [--seed 0]

Small runs of five kinds, all with `--deterministic`. Each is killed with SIGKILL: the trainer, its
service, or both; at a random moment, or as it is about to open a file for writing, rename or remove
one. Then it is resumed, or begun anew where nothing was written yet. What is left must equal the
folder of a run that was not killed, but for the times and addresses that docs/reliability.md lists.
300 runs take half an hour on two idle cores. It exits with 1 and names what differs, and where.
"""

import argparse
import contextlib
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from itertools import count, cycle, islice, product
from pathlib import Path
from typing import Any

import psutil
from filelock import FileLock

from benchmarks.repeatability import KINDS, SEEDED, SMALL, train
from tests import warm
from tests.training.folders import differences, drop_unfinished
from tokengym.agents.reports.markdown import markdown_table
from tokengym.agents.training.folder.run import RunFolder

VICTIMS = ("trainer", "service", "both")
MOMENTS = ("a moment", "a file operation")
TRIED = ("forecast", "own loop", "sft", "self-play", "warm start")
_CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.truncate", "shutil.rmtree"}
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


def trainer(
    number: int, victim: str, counts: Path, arguments: list[str], folder: Path, variables: Any
) -> None:
    """Run a command that kills itself, its service or both before a file operation.

    Args:
        number: which of the victim's operations it does not live to see; 0 for none.
        victim: a member of `VICTIMS`; of both, the trainer's operations count.
        counts: a folder of a file for each process, which grows by a byte with each operation.
        arguments: what is typed after `tokengym`.
        folder: where it is typed.
        variables: of the environment.
    """
    own, done = os.getpid(), count(1)
    opened = {
        name: os.open(counts / name, os.O_CREAT | os.O_WRONLY | os.O_APPEND) for name in VICTIMS
    }

    def watch(event: str, given: tuple[Any, ...]) -> None:
        if not (event in _CHANGES or (event == "open" and given[2] & _WRITES)):
            return
        here = "trainer" if os.getpid() == own else "service"
        os.write(opened[here], b".")
        if here == ("service" if victim == "service" else "trainer") and next(done) == number:
            if victim == "both":
                kill(psutil.Process(own), "service")
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)
    warm._tokengym(arguments, folder, variables, folder / "printed.txt")


def kill(process: psutil.Process, victim: str) -> None:
    """Send SIGKILL to a trainer, to its service, or to both."""
    services = process.children(recursive=True)
    for one in [
        *(services if victim != "trainer" else []),
        *([process] if victim != "service" else []),
    ]:
        one.kill()


def run_and_kill(home: Path, words: list[str], victim: str, after: float, operation: int) -> int:
    """Run a command and kill it; returns its exit status.

    Args:
        home: where it is typed.
        words: of the command.
        victim: a member of `VICTIMS`.
        after: seconds after which it is killed; infinite for never.
        operation: the file operation it is killed at; 0 for none.
    """
    counts = home / "counts"
    counts.mkdir()
    process = warm.CONTEXT.Process(
        target=trainer, args=(operation, victim, counts, words, home, dict(os.environ))
    )
    process.start()
    process.join(None if operation or after == float("inf") else after)
    if process.is_alive() and process.pid is not None:
        with contextlib.suppress(psutil.NoSuchProcess):  # it may have ended meanwhile
            kill(psutil.Process(process.pid), victim)
    process.join()
    run = home / "run"
    if run.exists():
        # A service notices within a second that its trainer has ended, and holds what it locked.
        with FileLock(run / "run.lock"):
            pass
    assert process.exitcode is not None
    return process.exitcode


def main(arguments: Sequence[str] | None = None) -> None:
    """Kill runs and print how many ended like the others."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=300, help="how many (300)")
    parser.add_argument("--seed", type=int, default=0, help="of the kills (0)")
    given = parser.parse_args(arguments)
    os.environ["OMP_NUM_THREADS"] = "1"
    rng, base = random.Random(given.seed), Path(tempfile.mkdtemp())
    words = {kind: [*KINDS[kind], *SMALL, *SEEDED, "--run", "run"] for kind in TRIED}
    lasted, operations = {}, {}
    train(base, ["worlds"])  # what forks commands is started: moments are of the run itself
    for kind in TRIED:
        (base / kind).mkdir()
        begun = time.monotonic()
        assert run_and_kill(base / kind, words[kind], "trainer", float("inf"), 0) == 0
        lasted[kind] = time.monotonic() - begun
        sizes = {file.name: file.stat().st_size for file in (base / kind / "counts").iterdir()}
        operations[kind] = sizes
        print(f"{kind}: {lasted[kind]:.1f} s, file operations {sizes}", flush=True)
    results: Counter[tuple[str, str, str]] = Counter()
    different: list[str] = []
    cases = islice(cycle(product(MOMENTS, VICTIMS, TRIED)), given.runs)
    for number, (moment, victim, kind) in enumerate(cases):
        home = base / str(number)
        home.mkdir()
        after, operation = rng.uniform(0, lasted[kind]), 0
        if moment == MOMENTS[1]:
            most = operations[kind]["service" if victim == "service" else "trainer"]
            operation = rng.randint(1, most)
        status = run_and_kill(home, words[kind], victim, after, operation)
        killed = home / "run"
        again = ["resume", "run"] if RunFolder(killed).exists else words[kind]
        if ended := warm.run_tokengym(again, home, os.environ, home / "resumed.txt"):
            apart = [f"{again} ended with {ended}"]
        else:
            drop_unfinished(killed)
            apart = differences(base / kind / "run", killed)
        results[moment, victim, "killed" if status else "ended before"] += 1
        results[moment, victim, "different" if apart else "equal"] += 1
        if apart:
            different.append(f"{home}: {kind}, {victim} at {moment} {operation or after}: {apart}")
            print(different[-1], flush=True)
        else:
            shutil.rmtree(home)
        if number % 20 == 19:
            print(f"{number + 1} runs, {len(different)} different", flush=True)
    columns = ("killed", "ended before", "equal", "different")
    rows = [
        (moment, victim, *(str(results[moment, victim, column]) for column in columns))
        for moment, victim in product(MOMENTS, VICTIMS)
    ]
    print(markdown_table(("killed at", "victim", *columns), rows))
    sys.exit("\n".join(different) if different else 0)


if __name__ == "__main__":
    main()
