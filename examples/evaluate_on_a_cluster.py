"""Play policies on several levels with all workers of a Ray cluster, or of this machine.

Each level gets a folder of its own with every rollout and the results, as `tokengym evaluate`
writes it; run the script again after an interruption, and it goes on.
"""

import argparse
from pathlib import Path

from tokengym.agents.evaluation.config import EvaluationConfig, WorldLevel
from tokengym.agents.evaluation.folder import EvaluationFolder
from tokengym.agents.evaluation.run import run_evaluation
from tokengym.agents.execution.executors import find_executor


def main() -> None:
    """Evaluate level after level."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("levels", nargs="+", help="such as energy:day")
    parser.add_argument("--policy", action="append", required=True, help="as `evaluate` takes it")
    parser.add_argument("--tasks", type=int, default=1000, help="Tasks of each level")
    parser.add_argument("--rollouts", type=int, default=8, help="rollouts of each Task")
    parser.add_argument("--concurrency", type=int, default=256, help="requests at once, in all")
    parser.add_argument("--engine", choices=["processes", "ray"], default="ray")
    parser.add_argument(
        "--workers", type=int, help="at once; all processors of the cluster if none"
    )
    parser.add_argument("--out", type=Path, required=True, help="a folder that every node shares")
    options = parser.parse_args()
    executor = find_executor(options.workers, options.engine)
    for level in map(WorldLevel.parse, options.levels):
        config = EvaluationConfig(
            (level,), tuple(options.policy), tasks=options.tasks, rollouts=options.rollouts
        )
        folder = EvaluationFolder(options.out / level.name.replace(":", "_"))
        results = run_evaluation(config, folder, executor=executor)
        for row in results.policies:
            print(f"{level.name} {row.policy}: {row.expected or row.mean_return}", flush=True)


if __name__ == "__main__":
    main()
