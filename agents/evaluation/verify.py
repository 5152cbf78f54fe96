"""Verifying an evaluation or a training run offline: replayed, each rollout must agree exactly."""

import csv
import json
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from tokengym.agents.evaluation.folder import EvaluationFolder
from tokengym.agents.evaluation.report import write_tables
from tokengym.agents.evaluation.results import Results
from tokengym.agents.evaluation.run import results_of
from tokengym.agents.evaluation.worlds import EvaluatedWorld
from tokengym.agents.rollouts import (
    RolloutOrigin,
    RolloutRecord,
    TurnExchange,
    evaluation_segment,
    record_episode,
)
from tokengym.agents.settings import plain
from tokengym.agents.training.folder.run import RunFolder
from tokengym.agents.training.folder.run_summary import Evaluation
from tokengym.envs.core.episode import DecodedReply
from tokengym.envs.core.errors import TokengymError
from tokengym.envs.core.task import Task, canonical_json
from tokengym.envs.core.turn import StopReason
from tokengym.envs.core.world import World
from tokengym.envs.registry import make_world, spec


class VerifiedRollouts(NamedTuple):
    """What verifying found.

    Attributes:
        rollouts: how many were played again.
        differences: what did not agree, for people; empty if all did.
    """

    rollouts: int
    differences: list[str]


def verify_evaluation(folder: EvaluationFolder) -> VerifiedRollouts:
    """Replay every rollout of an evaluation, and recompute its results.

    Texts read, rewards, terms, metrics, stop reasons and returns of each rollout, the fingerprints
    of all Tasks, the ends of skill and all results must be as recorded, here and in the tables:
    each number that is not is named.

    Raises:
        DataError: if the folder is damaged.
    """
    data, config = folder.read(), folder.config()
    differences: list[str] = []
    worlds: list[EvaluatedWorld] = []
    replays = Replays()
    count = 0
    for place, recorded in zip(config.worlds, data["worlds"], strict=True):
        world = EvaluatedWorld.resolve(place, config)
        tasks = world.tasks
        if [task.fingerprint for task in tasks] != recorded["fingerprints"]:
            differences.append(f"{place.name}: the Tasks have changed")
            continue
        worlds.append(world)
        ends = world.scale.to_dict()
        differences += changes(f"{place.name}: ", ends, {one: recorded.get(one) for one in ends})
        for policy in config.policies:
            records = list(folder.rollouts.read(folder.segment(place, policy, config)))
            count += len(records)
            places = [(g, m) for g in range(len(tasks)) for m in range(config.rollouts)]
            if [row.origin.place for row in records] != places:
                differences.append(f"{place.name} {policy}: rollouts are missing or repeated")
            for record in records:
                where = f"{place.name} {policy}, Task {record.index}, {record.origin.member}"
                if not record.origin.group < len(tasks):
                    differences.append(f"{where}: there is no Task {record.origin.group}")
                    continue
                notes = replays.differences(record, tasks[record.origin.group])
                differences += [f"{where}: {what}" for what in notes]
    recorded_results = data["results"]
    if recorded_results is None:
        differences.append("the evaluation is not finished: it has no results")
    elif not differences:
        results = results_of(config, folder, worlds)
        differences += changes("results.", results.to_dict(), recorded_results)
        differences += _changed_cells(folder.folder, results)
    return VerifiedRollouts(count, differences)


def changes(where: str, now: Any, recorded: Any) -> Iterator[str]:
    """Yield in which places JSON values differ from those on record; numbers do by any bit."""
    if isinstance(now, dict) and isinstance(recorded, dict):
        for name in dict.fromkeys((*now, *recorded)):
            if name not in recorded and now[name] in ({}, []):
                continue  # earlier versions did not write it
            yield from changes(f"{where}{name}.", now.get(name), recorded.get(name))
    elif isinstance(now, list) and isinstance(recorded, list) and len(now) == len(recorded):
        for place, pair in enumerate(zip(now, recorded, strict=True)):
            yield from changes(f"{where}{place}.", *pair)
    elif (new := json.dumps(now)) != (old := json.dumps(recorded)):
        yield f"{where[:-1]} is {new[:60]}, recorded {old[:60]}"


def _changed_cells(folder: Path, results: Results) -> Iterator[str]:
    """Yield which cells of the tables, where there are any, are not those of the results."""
    with TemporaryDirectory() as again:
        write_tables(Path(again), results)
        for file in sorted(Path(again).iterdir()):
            if (kept := folder / file.name).is_file():
                lines = (one.read_text(encoding="utf-8").splitlines(True) for one in (file, kept))
                yield from changes(f"{file.name}.", *(list(csv.DictReader(one)) for one in lines))


def verify_run(run: RunFolder) -> VerifiedRollouts:
    """Replay the rollouts of a run, of those of training the saved ones; recompute its evaluations.

    Texts read, rewards, terms, metrics, stop reasons and returns of each rollout, the fingerprints
    of the Tasks, and all figures of the held-out evaluations must be as recorded: each number that
    is not is named. No model is asked: its replies are those on record.

    Raises:
        DataError: if the folder is damaged.
    """
    differences: list[str] = []
    count = 0
    replays = Replays()
    for segment in run.rollouts.segments():
        for record in run.rollouts.read(segment.name):
            count += 1
            where = f"{segment.name} {record.role}, Task {record.origin.group}, "
            notes = replays.differences(record, replays.task(record))
            differences += [f"{where}{record.origin.member}: {what}" for what in notes]
    outcome = run.outcome
    stated = [(name, run.evaluation(name)) for name in ("before", "warm")]
    if outcome is not None:
        stated += [(name, getattr(outcome, name)) for name in ("before", "warm", "after")]
    for number, (name, evaluation) in enumerate(stated):
        # What both files say is replayed once.
        if evaluation is not None and (name, evaluation) not in stated[:number]:
            differences += _changed_evaluation(run, name, evaluation)
    return VerifiedRollouts(count, list(dict.fromkeys(differences)))


def _changed_evaluation(run: RunFolder, name: str, stated: Evaluation) -> Iterator[str]:
    """Yield which figures of a run's evaluation do not follow from its rollouts."""
    segments = [list(run.rollouts.read(evaluation_segment(one))) for one in (name, f"{name}_low")]
    for trained, (part, role) in run.config.trained.items():
        world = spec(part.world)
        mine = world.id, part.level, role
        usual = stated.of(trained)
        for at, recorded, rows in zip(("", "low."), (usual, usual.low), segments, strict=True):
            if recorded is None:
                continue
            played = [one for one in rows if (one.world, one.level, one.role) == mine]
            now = Evaluation.of_rollouts(played, world) if played else Evaluation(())
            # Earlier versions named the model, too, or no conditions at all.
            known = {
                one: recorded.conditions.get(one, now.conditions[one]) for one in now.conditions
            }
            alone = replace(recorded, conditions=known, low=None, others={})
            yield from changes(f"{name} {trained}: {at}", plain(now), plain(alone))


class Replays:
    """Replays rollouts from their records; the worlds and Tasks they name are made once."""

    def __init__(self) -> None:
        self._made = cache(
            lambda world, level, options: make_world(world, level, **json.loads(options))
        )
        self._drawn = cache(lambda world, split, index: world.task(split, index))

    def world(self, record: RolloutRecord) -> World:
        """Return the world that a record names.

        Raises:
            UnknownWorldError, OptionError: if there is none.
        """
        options = canonical_json(dict(record.origin.options))
        world: World = self._made(record.world, record.level, options)
        return world

    def task(self, record: RolloutRecord) -> Task:
        """Return the Task that a record names.

        Raises:
            UnknownWorldError, OptionError: if there is none.
        """
        task: Task = self._drawn(self.world(record), record.split, record.index)
        return task

    def differences(self, record: RolloutRecord, task: Task) -> Iterator[str]:
        """Yield how a rollout of a Task differs from its record when it is replayed."""
        if (task.fingerprint, task.index) != (record.fingerprint, record.index):
            yield "it is of another Task"
            return
        if not record.is_of(task):
            yield "the Task's answer, or an option that decides the reward, has changed"
        try:
            again = replay(self.world(record), task, record)
        except TokengymError as error:
            yield f"it cannot be replayed: {error}"
            return
        for name in ("stop_reason", "total"):
            if getattr(again, name) != getattr(record, name):
                yield f"{name} is {getattr(again, name)!r}, recorded {getattr(record, name)!r}"
        if len(again.turns) != len(record.turns):
            yield f"it has {len(again.turns)} turns, recorded {len(record.turns)}"
        for number, (now, then) in enumerate(zip(again.turns, record.turns, strict=False)):
            # A later version may report more metrics; those on record must be the same.
            known = replace(now, metrics={name: now.metrics.get(name) for name in then.metrics})
            for name in ("role", "read", "malformed", "reward", "terms", "metrics"):
                if getattr(known, name) != getattr(then, name):
                    yield f"turn {number}: {name} is {getattr(known, name)!r}, recorded differently"


def replay(world: World, task: Task, record: RolloutRecord) -> RolloutRecord:
    """Replay the replies of a record.

    Args:
        world: made with the record's options.
        task: its Task.
        record: the rollout.

    Raises:
        EpisodeStateError: if the record has replies after the end.
    """
    turn = world.start(task)
    exchanges: list[TurnExchange] = []
    for recorded in record.turns:
        if recorded.said is None:
            last = world.stop(StopReason(record.stop_reason))
            exchanges.append(TurnExchange(turn, None, last, last))
            break
        reply = DecodedReply(recorded.said, recorded.complete)
        answer = world.reply(reply.text, complete=reply.complete)
        paid = answer
        if recorded is record.turns[-1] and not answer.done:
            paid = world.stop(StopReason(record.stop_reason), after=answer)
        exchanges.append(TurnExchange(turn, reply, answer, paid))
        turn = answer
    return record_episode(RolloutOrigin(record.origin.kind), task, record.role, exchanges)
