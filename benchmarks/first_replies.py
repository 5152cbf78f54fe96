"""Where a model stands before any training: its first replies at every level, as Markdown.

    python -m benchmarks.first_replies smollm2
    python -m benchmarks.first_replies Qwen/Qwen3-4B-Instruct-2507 --minutes 10 --level energy:day

The model, any that `tokengym evaluate` can name, plays groups at temperature 1 on the first test
Tasks of each level. The time is shared out evenly over the levels; a Task counts once its group is
complete, and a level once it has two. On a GPU the local service runs there.
"""

import argparse
import signal
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from tokengym.agents.evaluation.config import EvaluationConfig
from tokengym.agents.evaluation.folder import EvaluationFolder
from tokengym.agents.evaluation.play_missing import PolicyRollouts
from tokengym.agents.evaluation.policies import resolve_policy
from tokengym.agents.evaluation.results import policy_result
from tokengym.agents.evaluation.rollout_table import RolloutTable
from tokengym.agents.evaluation.run import Evaluation
from tokengym.agents.evaluation.ties import fallen_of, study_of
from tokengym.agents.reports.markdown import markdown_table
from tokengym.agents.training.connection import Connection, ServiceTarget
from tokengym.agents.training.presets import preset
from tokengym.envs.registry import specs

HEADER = (
    *("level", "Tasks x rollouts", "malformed", "mean return", "best constant", "best known"),
    *("tied pairs", "dead groups", "place on the ladder"),
)


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Interrupt what takes longer, as a user does who stops an evaluation."""
    late: list[int] = []

    def interrupt(_signal: int, _frame: object) -> None:
        late.append(1)
        signal.raise_signal(signal.SIGINT)

    # A shell's background jobs are started with interrupts ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 1.0))
    try:
        yield
    except KeyboardInterrupt:
        if not late:
            raise
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)


def first_replies(
    config: EvaluationConfig, folder: EvaluationFolder, seconds: float
) -> Sequence[str]:
    """Play one level with one model for so long; returns the row of the table.

    Raises:
        OptionError, ModelError: as `run_evaluation` does.
    """
    plan = config.plan
    (name,), (place,), size = plan.policies, plan.places, plan.rollouts
    (world,) = Evaluation.resolve(plan, folder).worlds
    policy = resolve_policy(name, plan, [world], config)
    with limited(seconds):
        policy.play([world], PolicyRollouts(name, plan, folder.rollouts, lambda *_: None))
    records = sorted(folder.records(plan, place, name), key=lambda record: record.origin.place)
    groups = [
        group
        for at in range(len(world.tasks))
        if len(group := [record for record in records if record.origin.group == at]) == size
    ]
    if len(groups) < 2:
        return (place.name, f"{len(groups)} x {size}", *("",) * (len(HEADER) - 2))
    played = replace(world, tasks=[world.tasks[group[0].origin.group] for group in groups])
    kept = (record for group in groups for record in group)
    table = RolloutTable.read(kept, world.world.spec.violation)
    found = policy_result(table, played, place.name, name, plan)
    ends = played.scale.ends
    fallen = fallen_of([[record.metrics for record in group] for group in groups])
    rewards = [[record.total for record in group] for group in groups]
    (row,) = study_of(world.world, name, rewards, (size,), fallen=fallen).sizes
    return (
        *(place.name, f"{len(groups)} x {size}", f"{found.malformed.value:.0%}"),
        *(f"{mean:.3f}" for mean in (found.earned.value, ends.blind, ends.oracle)),
        f"{row.rates['reward_tie_pair_rate'].value:.3f}",
        f"{1.0 - row.useful.value:.3f}",
        found.standing,
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table, each row as soon as it is known."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model")
    parser.add_argument("--level", action="append", help="such as energy:day; all if not given")
    parser.add_argument("--minutes", type=float, default=8.0, help="for all levels together")
    parser.add_argument("--tasks", type=int, default=4, help="at most, of each level")
    parser.add_argument("--rollouts", type=int, default=8, help="of each Task")
    options = parser.parse_args(arguments)
    until = time.monotonic() + 60.0 * options.minutes
    every = [f"{spec.short_name}:{level}" for spec in specs().values() for level in spec.levels]
    levels, lines = options.level or every, 0
    target = ServiceTarget.resolve(preset(levels[0].partition(":")[0], model=options.model))
    with Connection.open(target) as connection, tempfile.TemporaryDirectory() as scratch:
        for done, level in enumerate(levels):
            config = EvaluationConfig(
                worlds=(level,),
                policies=(connection.model,),
                tasks=options.tasks,
                rollouts=options.rollouts,
                temperature=1.0,
                base_url=connection.base_url,
            )
            seconds = (until - time.monotonic()) / (len(levels) - done)
            row = first_replies(config, EvaluationFolder(Path(scratch) / str(done)), seconds)
            text = markdown_table(HEADER, [row]).splitlines()
            print("\n".join(text[lines:]), flush=True)
            lines = len(text) - 1


if __name__ == "__main__":
    main()
