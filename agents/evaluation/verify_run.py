"""Verifying a training run offline: every saved rollout is replayed and must agree exactly."""

from collections.abc import Iterator

from tokengym.agents.evaluation.verify import Replays, VerifiedRollouts
from tokengym.agents.rollouts import evaluation_segment
from tokengym.agents.training.folder.run import RunFolder
from tokengym.agents.training.folder.run_summary import Evaluation

Returns = tuple[float, ...]


def verify_run(run: RunFolder) -> VerifiedRollouts:
    """Replay the rollouts of a run; of those of training, the saved ones.

    Texts read, rewards, terms, metrics, stop reasons and returns of each rollout and the
    fingerprints of the Tasks must be as recorded, and the held-out evaluations must follow from
    their rollouts. No model is asked: its replies are those on record.

    Raises:
        DataError: if the folder is damaged.
    """
    differences: list[str] = []
    count = 0
    replays = Replays()
    returns: dict[str, list[Returns]] = {}
    for segment in run.rollouts.segments():
        by_role: dict[tuple[str, str, str], dict[tuple[int, int], float]] = {}
        for record in run.rollouts.read(segment.name):
            count += 1
            origin = record.origin
            where = f"{segment.name} {record.role}, Task {origin.group}, {origin.member}"
            found = replays.differences(record, replays.task(record))
            differences += [f"{where}: {what}" for what in found]
            place = origin.group, origin.member
            by_role.setdefault((record.world, record.level, record.role), {})[place] = record.total
        returns[segment.name] = [
            tuple(found[place] for place in sorted(found)) for found in by_role.values()
        ]
    outcome = run.outcome
    for name, evaluation in (
        ("before", run.evaluation_before),
        ("after", None if outcome is None else outcome.after),
    ):
        if evaluation is None:
            continue
        prefix = evaluation_segment(name)
        played = [one for of, listed in returns.items() if of.startswith(prefix) for one in listed]
        differences += [
            f"the evaluation {name} does not follow from its rollouts"
            for stated in _evaluations(evaluation)
            if tuple(stated.returns_by_task) not in played
        ]
    return VerifiedRollouts(count, differences)


def _evaluations(evaluation: Evaluation) -> Iterator[Evaluation]:
    """Yield an evaluation, its low-temperature one, and those of other roles and worlds."""
    yield evaluation
    if evaluation.low is not None:
        yield from _evaluations(evaluation.low)
    for other in evaluation.others.values():
        yield from _evaluations(other)
