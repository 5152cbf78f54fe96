"""An evaluation of an endpoint that fails now and then, whose command is killed again and again.

Of 200 conversations the endpoint refuses two for ever, drops two and never answers two. The command
is killed with `SIGKILL` after a random number of answers, twenty times, in one process or in two at
random, and then ends. Its rollouts and results must be those of a command that nobody killed. Run
it with `python -m benchmarks.endpoint_faults`; it takes about two minutes and exits with 1 if
anything differs.
"""

import argparse
import random
import sys
import tempfile
from pathlib import Path
from time import perf_counter

from tests.evaluation.endpoint_runs import HASTY, digest, faulty, kill, results, run
from tests.evaluation.endpoint_server import serving

TASKS = 200
COUNTED = {"no connection": 2, "refused (status 400)": 2, "time-out": 2}


def main() -> int:
    """Run the benchmark; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as scratch, serving(faulty(TASKS)) as endpoint:
        whole, killed = Path(scratch) / "whole", Path(scratch) / "killed"
        begun = perf_counter()
        run(endpoint, whole, 16, **HASTY, tasks=TASKS)
        seconds, asked = perf_counter() - begun, len(endpoint.asked)
        words = ["evaluate", "forecast", "--policy", f"openai:some/model@{endpoint.url}"]
        words += ["--tasks", str(TASKS), "--timeout", "1", "--retries", "1", "--out", "killed"]
        most = 3 * TASKS // (2 * options.kills)  # so that there is something left at the last one
        for _ in range(options.kills):
            workers = ["--workers", chance.choice("12")]
            kill(endpoint, [*words, *workers], Path(scratch), chance.randrange(1, most))
        run(endpoint, killed, 16, **HASTY, tasks=TASKS)
        again = len(endpoint.asked) - 2 * asked
        counted, same = results(whole)["failures"], digest(killed) == digest(whole)
    print(
        f"{TASKS} conversations in {seconds:.1f} s, failed: {counted}; killed {options.kills} "
        f"times: {'the same' if same else 'ANOTHER'} digest, {again} answers asked for again"
    )
    return int(not same or counted != COUNTED)


if __name__ == "__main__":
    sys.exit(main())
