"""Verifying an evaluation or a training run offline: replayed, each rollout must earn the same."""

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

from tokengym.agents.evaluation.folder import EvaluationFolder
from tokengym.agents.evaluation.run import Evaluation
from tokengym.agents.evaluation.worlds import EvaluatedWorld
from tokengym.agents.rollouts import RolloutOrigin, RolloutRecord, record_episode
from tokengym.agents.settings import plain
from tokengym.agents.training.folder.run import RunFolder
from tokengym.envs.core.episode import DecodedReply, TurnExchange
from tokengym.envs.core.errors import TokengymError
from tokengym.envs.core.task import Task, canonical_json
from tokengym.envs.core.turn import StopReason
from tokengym.envs.core.world import World
from tokengym.envs.registry import make_world


class VerifiedRollouts(NamedTuple):
    """Result of verifying.

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
    each number that is not is named. No model is asked: its replies are those on record, and the
    ends of skill against opponents that are models are taken as recorded.

    Raises:
        DataError: if the folder is damaged.
    """
    data = folder.read()
    # Results are compared as they stand there, whatever is missing or too much.
    saved = folder.saved({**data, "results": None})
    plan, replays, count = saved.plan, Replays(), 0
    differences: list[str] = []
    worlds: list[EvaluatedWorld] = []
    for title, place, scale, recorded in zip(
        plan.titles, plan.places, saved.scales, data["worlds"], strict=True
    ):
        world = EvaluatedWorld.resolve(place, plan.seed)
        tasks = world.tasks
        if [task.fingerprint for task in tasks] != recorded["fingerprints"]:
            differences.append(f"{title}: the Tasks have changed")
            continue
        again = scale
        if world.scripted:
            again = replace(world.measure(scale.returns), replies=scale.replies)
        worlds.append(replace(world, measured=again))
        differences += changes(f"{title}: scale.", plain(again), recorded["scale"])
        for policy in plan.policies:
            records = list(folder.records(plan, place, policy))
            count += len(records)
            groups = range(len(tasks))[: plan.first_tasks.get(policy)]
            places = [(group, member) for group in groups for member in range(plan.rollouts)]
            if [row.origin.place for row in records] != places:
                differences.append(f"{title} {policy}: rollouts are missing or repeated")
            for record in records:
                where = f"{title} {policy}, Task {record.index}, {record.origin.member}"
                if not record.origin.group < len(tasks):
                    differences.append(f"{where}: there is no Task {record.origin.group}")
                    continue
                notes = replays.differences(record, tasks[record.origin.group])
                differences += [f"{where}: {what}" for what in notes]
    if data["results"] is None:
        differences.append("the evaluation is not finished: it has no results")
    elif not differences:
        results = Evaluation(plan, folder, worlds).results()
        differences += changes("results.", plain(results), data["results"])
    return VerifiedRollouts(count, differences)


def verify_run(run: RunFolder) -> VerifiedRollouts:
    """Verify the evaluation of a run, and replay the saved rollouts of its training.

    Raises:
        DataError: if the folder is damaged.
    """
    differences: list[str] = []
    count, evaluation, replays = 0, EvaluationFolder(run.folder), Replays()
    if evaluation.exists:
        count, differences = verify_evaluation(evaluation)
    for segment in run.rollouts.segments():
        verified = segment.step is None and evaluation.exists
        for record in () if verified else run.rollouts.read(segment.name):
            count += 1
            where = f"{segment.name} {record.role}, Task {record.origin.group}, "
            notes = replays.differences(record, replays.task(record))
            differences += [f"{where}{record.origin.member}: {what}" for what in notes]
    return VerifiedRollouts(count, differences)


def changes(where: str, now: Any, recorded: Any) -> Iterator[str]:
    """Yield in which fields JSON values differ from those on record.

    Numbers, in cells of tables too, are the same but for rounding: processors add in other orders.
    """
    if isinstance(now, dict) and isinstance(recorded, dict):
        for name in dict.fromkeys((*now, *recorded)):
            yield from changes(f"{where}{name}.", now.get(name), recorded.get(name))
    elif isinstance(now, list) and isinstance(recorded, list) and len(now) == len(recorded):
        for place, pair in enumerate(zip(now, recorded, strict=True)):
            yield from changes(f"{where}{place}.", *pair)
    elif not _same(now, recorded):
        new, old = json.dumps(now), json.dumps(recorded)
        yield f"{where[:-1]} is {new[:60]}, recorded {old[:60]}"


def _same(now: Any, recorded: Any) -> bool:
    if now == recorded:
        return True
    try:
        return math.isclose(float(now), float(recorded), rel_tol=1e-9, abs_tol=1e-12)
    except (TypeError, ValueError):
        return False


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
            if not _same(getattr(again, name), getattr(record, name)):
                yield f"{name} is {getattr(again, name)!r}, recorded {getattr(record, name)!r}"
        if len(again.turns) != len(record.turns):
            yield f"it has {len(again.turns)} turns, recorded {len(record.turns)}"
        for number, (now, then) in enumerate(zip(again.turns, record.turns, strict=False)):
            # A later version may report more metrics; those on record must be the same.
            known = replace(now, metrics={name: now.metrics.get(name) for name in then.metrics})
            for name in ("role", "read", "malformed", "reward", "terms", "metrics"):
                if any(changes("", plain(getattr(known, name)), plain(getattr(then, name)))):
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
