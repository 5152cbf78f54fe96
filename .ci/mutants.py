"""Plant small bugs in a package, one at a time, and count how many its tests notice.

    .venv/bin/python .ci/mutants.py rewards
    .venv/bin/python .ci/mutants.py envs/core --count 100 --seed 7

Cosmic Ray makes the bugs: another operator, number, comparison or truth value, a loop that never
runs. They are planted in a copy of the tracked files, in a sample drawn from a seed. Prints those
that survive, and fails if the share that is killed lies below the package's floor in
`[tool.tokengym.mutants]`. A few of the survivors change nothing that a caller could see.
"""

import argparse
import math
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

from cosmic_ray.commands import init
from cosmic_ray.mutating import mutate_and_test
from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import TestOutcome, WorkerOutcome, WorkItem, WorkResult

ROOT = Path(__file__).resolve().parent.parent
FLOORS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["tokengym"]["mutants"]
# `X | Y` is a type nearly everywhere, and types are other tools' part.
LEFT_OUT = ("BitOr", "RemoveDecorator")


def main() -> int:
    """Test the tests of one package; returns 1 if too many bugs survive."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("package", choices=sorted(FLOORS), help="folder in which bugs are planted")
    parser.add_argument("--count", type=int, default=40, help="number of bugs (default 40)")
    parser.add_argument("--seed", type=int, default=0, help="of the sample (default 0)")
    chosen = parser.parse_args()
    floor = FLOORS[chosen.package]
    with tempfile.TemporaryDirectory() as folder:
        copy_tracked_files(Path(folder))
        os.chdir(folder)
        os.environ["CI"] = "true"  # property tests draw the same examples each time
        os.environ["PYTHONPATH"] = str(Path(folder, "src"))
        command = f"{sys.executable} -m pytest -x -q -p no:cacheprovider {' '.join(floor['tests'])}"
        began = time.monotonic()
        subprocess.run(command.split(), check=True, stdout=subprocess.DEVNULL)
        timeout = 30.0 + 3.0 * (time.monotonic() - began)
        with use_db(":memory:", WorkDB.Mode.create) as bugs:
            init(sorted(Path(chosen.package).rglob("*.py")), bugs, {})
            everything = [bug.mutations for bug in bugs.work_items if not left_out(bug)]
        sample = random.Random(chosen.seed).sample(everything, min(chosen.count, len(everything)))
        results = [mutate_and_test(bug, command, timeout) for bug in sample]
    for result in results:
        if not result.is_killed:
            print(result.diff, end="\n\n")
    # Cosmic Ray counts a bug as killed that it could not plant, or whose tests could not be run.
    if failed := [result.output for result in results if not was_tried(result)]:
        sys.exit(f"{len(failed)} bugs were not tried: {failed[0]}")
    killed = sum(result.is_killed for result in results) / len(results)
    late = sum(result.output == "timeout" for result in results)
    error = math.sqrt(killed * (1.0 - killed) / len(results))
    print(
        f"{chosen.package}: the tests notice {killed:.0%} ± {error:.0%} of {len(results)} bugs "
        f"(of {len(everything):,}), {late} of them by running out of time; "
        f"the floor is {floor['killed']:.0%}"
    )
    return int(killed < floor["killed"])


def was_tried(result: WorkResult) -> bool:
    """Return whether a bug was planted and its tests were run."""
    normal = result.worker_outcome is WorkerOutcome.NORMAL
    return normal and result.test_outcome is not TestOutcome.INCOMPETENT


def left_out(bug: WorkItem) -> bool:
    """Return whether a bug is of a kind that says little."""
    return any(part in mutation.operator_name for mutation in bug.mutations for part in LEFT_OUT)


def copy_tracked_files(folder: Path) -> None:
    """Copy the checkout as it is, without what git ignores: bugs must not reach it."""
    listed = subprocess.run(
        ("git", "-C", ROOT, "ls-files", "-z"), check=True, capture_output=True, text=True
    ).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)


if __name__ == "__main__":
    sys.exit(main())
