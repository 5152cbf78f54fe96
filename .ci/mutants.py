"""Plant small bugs in packages, one at a time, and count how many their tests notice.

    .venv/bin/python .ci/mutants.py                           every package, within two hours
    .venv/bin/python .ci/mutants.py rewards --count 100 --seed 7
    .venv/bin/python .ci/mutants.py envs/core --part quick    by the quick tests alone

Cosmic Ray makes the bugs: another operator, number, comparison or truth value, a loop that never
runs. They are planted in copies of the tracked files, one copy a processor, in a sample drawn from
a seed; a bug meets the tests of its package that import its module and the five nearest files of
others, the quick tests before those of the night, until one fails. Prints those that survive, and
fails if no bug was tried, or the share that is noticed lies two standard errors below the package's
floor in `[tool.tokengym.mutants]`. A few of the survivors change nothing that a caller could see.
"""

import argparse
import math
import os
import random
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from multiprocessing import Pool
from multiprocessing import pool as pools
from pathlib import Path
from typing import NamedTuple

import changed
from cosmic_ray.commands import init
from cosmic_ray.mutating import mutate_and_test
from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import TestOutcome, WorkerOutcome, WorkItem, WorkResult

ROOT = Path(__file__).resolve().parent.parent
FLOORS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["tokengym"]["mutants"]
ELSEWHERE = {
    "agents/check": ("check", "testing"),
    "envs/core": ("core", "tokens"),
    "envs/testing": ("testing", "contract"),
    **{
        f"envs/{world}": (world, "contract/test_revisions.py", "contract/test_prompts.py")
        for world in ("disruption", "energy", "forecasting", "warehouse")
    },
}
"""Folders and files of the tests of packages that have another name, or several."""
QUICK = ("-m", "not nightly", "--hypothesis-profile", "quick")
PARTS = {"all": (QUICK, ("-m", "nightly", "--minutes", "4")), "quick": (QUICK,)}
"""Words of the runs of tests that a bug meets, one after the other, until a test fails.

Of those for the night, as many run as begin within four minutes: certify's take fifteen.
"""
NEAREST = 5
"""Files of tests, of any folder, that a bug meets beside its package's."""
LONGEST = 600.0
"""Seconds after which the tests of a bug count as having noticed it: it made them hang."""
FAILED = re.compile(r"^FAILED (\S+?\[.*?\]|\S+)(?= - |$)", re.MULTILINE)
"""Finds the names of tests that fail; values of parameters may have blanks."""
# `X | Y` is a type nearly everywhere, and types are other tools' part.
LEFT_OUT = ("BitOr", "RemoveDecorator")


class PlantedBug(NamedTuple):
    """A bug that tests met.

    Attributes:
        result: whether one of them failed.
        part: words of the run of tests that came last.
        unsteady: a test that failed, and fails without the bug as well.
    """

    result: WorkResult
    part: tuple[str, ...]
    unsteady: str = ""


def main() -> int:
    """Test the tests of packages; returns 1 if too many bugs survive in one."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    names = packages()
    parser.add_argument("packages", nargs="*", metavar="package", help=", ".join(names))
    parser.add_argument("--count", type=int, default=40, help="bugs drawn a package (default 40)")
    parser.add_argument("--seed", type=int, default=0, help="of the sample (default 0)")
    parser.add_argument("--part", choices=PARTS, default="all", help="tests that are run (all)")
    parser.add_argument("--minutes", type=float, default=120.0, help="in all (default 120)")
    chosen = parser.parse_args()
    if unknown := {*chosen.packages} - {*names}:
        parser.error(f"no package is called {', '.join(sorted(unknown))}")
    os.environ["CI"] = "true"  # property tests draw the same examples each time
    asked, below = chosen.packages or names, False
    for package in asked:
        below |= not judge(package, chosen, 60.0 * chosen.minutes / len(asked))
    return int(below)


def packages() -> list[str]:
    """Return the folders in which bugs are planted."""
    folders = (path.parent for top in ("agents", "envs") for path in ROOT.glob(f"{top}/*/*.py"))
    found = sorted({str(folder.relative_to(ROOT)) for folder in folders})
    return ["rewards", *(name for name in found if tests_of(name))]


def tests_of(package: str) -> list[str]:
    """Return the folders of a package's tests, and files of others."""
    names = ELSEWHERE.get(package, (Path(package).name,))
    paths = [ROOT / "tests" / name for name in names]
    return [f"{path.relative_to(ROOT)}{'/' * path.is_dir()}" for path in paths if path.exists()]


def judge(package: str, chosen: argparse.Namespace, seconds: float) -> bool:
    """Plant bugs in a package until the time is over; returns whether it reaches its floor.

    A package whose tests fail without a bug does not.
    """
    began = time.monotonic()
    folders = tests_of(package)
    bugs, possible = drawn(package, chosen.count, chosen.seed)
    with copies() as pool:
        plant = partial(planted, folders, PARTS[chosen.part], began + seconds)
        met = [one for one in pool.imap_unordered(plant, bugs, chunksize=1) if one is not None]
    unsteady = {one.unsteady for one in met if one.unsteady}
    for test in unsteady:
        print(f"not counted: {test} fails without a bug")
    tried = [one for one in met if not one.unsteady]
    results = [one.result for one in tried]
    for result in results:
        if not result.is_killed:
            print(result.diff, end="\n\n")
    # Cosmic Ray counts a bug as killed that it could not plant, or whose tests could not be run.
    if failed := [result.output for result in results if not was_tried(result)]:
        sys.exit(f"{package}: {len(failed)} bugs were not tried: {failed[0]}")
    killed = sum(result.is_killed for result in results)
    quickly = sum(one.result.is_killed and one.part == QUICK for one in tried)
    late = sum(result.output == "timeout" for result in results)
    minutes = (time.monotonic() - began) / 60.0
    floor = FLOORS.get(package)
    print(
        f"{package}: the tests ({chosen.part}) notice {killed} of {len(results)} bugs tried"
        f"{f', {killed / len(results):.0%}' if results else ''}, {quickly} of them by the quick "
        f"tests, {late} by running out of time; "
        f"{len(bugs)} were drawn of {possible:,}, in {minutes:.1f} minutes; "
        f"{'no floor is set' if floor is None else f'the floor is {floor:.0%}'}",
        flush=True,
    )
    if floor is None or not results or unsteady:
        return bool(results) and not unsteady
    error = math.sqrt(floor * (1.0 - floor) / len(results))
    return killed / len(results) >= floor - 2.0 * error


@contextmanager
def copies() -> Iterator[pools.Pool]:
    """Yield a pool whose processes have a copy of the checkout each, as their working directory."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Pool(initializer=enter_a_copy, initargs=(folder,)) as pool,
    ):
        yield pool


def enter_a_copy(folder: str) -> None:
    """Copy the checkout as it is, without what git ignores: bugs must not reach it."""
    mine = Path(folder, str(os.getpid()))
    subprocess.run(("git", "clone", "-q", ROOT, mine), check=True)  # tests ask for its commit
    listed = subprocess.run(
        ("git", "-C", ROOT, "ls-files", "-z"), check=True, capture_output=True, text=True
    ).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (mine / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, mine / name)
    os.chdir(mine)
    os.environ["PYTHONPATH"] = str(mine / "src")


def pytest() -> list[str]:
    """Return the words that run tests until one fails."""
    return [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]


def drawn(package: str, count: int, seed: int) -> tuple[list[WorkItem], int]:
    """Return a sample of the bugs of a package, and how many there are."""
    with use_db(":memory:", WorkDB.Mode.create) as database:
        os.chdir(ROOT)
        init(sorted(Path(package).rglob("*.py")), database, {})
        every = [bug.mutations for bug in database.work_items if not left_out(bug)]
    return random.Random(seed).sample(every, min(count, len(every))), len(every)


def planted(
    folders: list[str], parts: Iterable[tuple[str, ...]], until: float, bug: list[object]
) -> PlantedBug | None:
    """Plant a bug in this process's copy and run the tests it meets; None if it is too late."""
    if time.monotonic() > until:
        return None
    near = changed.concerned([str(bug[0].module_path)])
    own = tuple(folders)
    tests = [path for n, path in enumerate(near) if n < NEAREST or path.startswith(own)] or folders
    for part in parts:
        result = mutate_and_test(bug, shlex.join([*pytest(), *part, *tests]), LONGEST)
        if re.search(r"^(no tests ran|\d+ deselected) in ", result.output or "", re.MULTILINE):
            survived = TestOutcome.SURVIVED  # for no test met it
            result = WorkResult(result.worker_outcome, result.output, survived, result.diff)
        if result.is_killed:
            break
    for test in FAILED.findall(result.output or ""):
        if subprocess.run([*pytest(), test], stdout=subprocess.DEVNULL).returncode:
            return PlantedBug(result, part, test)
    return PlantedBug(result, part)


def was_tried(result: WorkResult) -> bool:
    """Return whether a bug was planted and its tests were run."""
    normal = result.worker_outcome is WorkerOutcome.NORMAL
    return normal and result.test_outcome is not TestOutcome.INCOMPETENT


def left_out(bug: WorkItem) -> bool:
    """Return whether a bug is of a kind that says little."""
    return any(part in mutation.operator_name for mutation in bug.mutations for part in LEFT_OUT)


if __name__ == "__main__":
    sys.exit(main())
