"""Laws of Tasks: reproducible, serialisable, in disjoint splits; bad requests are refused."""

import pickle
from dataclasses import replace

import numpy as np

from tokengym.envs.core.errors import OptionError, TaskError
from tokengym.envs.core.seeding import SPLITS
from tokengym.envs.core.task import Task, canonical_json
from tokengym.envs.testing.law import Violation, describe, law, quoted, refused, require
from tokengym.envs.testing.subject import Subject


@law()
def an_index_is_one_task(subject: Subject) -> None:
    """An index gives the same Task in every instance of a world."""
    for task in subject.tasks("train", 2):
        for index in (task.index, np.int32(task.index)):
            again = subject.make().task(task.split, index)  # type: ignore[arg-type]
            require(again == task, difference(task, again), task)


@law()
def tasks_survive_json_and_pickle(subject: Subject) -> None:
    """A Task read from its JSON or pickle equals the original, hash and fingerprint included."""
    for task in subject.tasks("validation", 4)[-1:] + subject.tasks("train", 1):
        read, unpickled = Task.from_json(task.to_json()), pickle.loads(pickle.dumps(task))
        require(read == task, f"JSON: {difference(task, read)}", task)
        require(read.fingerprint == task.fingerprint, "JSON changes the fingerprint", task)
        require(unpickled == task, f"pickle: {difference(task, unpickled)}", task)
        require(hash(unpickled) == hash(task), "pickle changes the hash", task)


@law()
def an_instance_lies_in_one_split(subject: Subject) -> None:
    """Every Task lies in its own split, and no instance lies in two."""
    tasks: dict[str, Task] = {}
    for split in SPLITS:
        for task in subject.tasks(split, 2):
            require(task.split == split, f"{task.split!r} was drawn for {split!r}", task)
            other = tasks.setdefault(task.fingerprint, task)
            require(other.split == split, f"the instance lies in {other.split!r} too", task)
            if (world := subject.make()).generates:
                named = world.split_of(task.instance)
                require(named == split, f"what it shows first belongs to {named!r}", task)


@law(needs_id=True)
def neighbouring_tasks_differ(subject: Subject) -> None:
    """Neighbouring indices give different instances.

    Worlds over a user's data are exempt: there may be little of it.
    """
    tasks: dict[str, Task] = {}
    for task in subject.tasks("train", 7):
        other = tasks.setdefault(task.fingerprint, task)
        require(other is task, f"Task {other.index} is the same instance", task)


@law()
def unknown_splits_are_refused(subject: Subject) -> None:
    """An unknown split is refused by name."""
    for split in ("training", "", "TEST"):
        _refuses(subject, split, 0, "split must be one of")


@law()
def wrong_indices_are_refused(subject: Subject) -> None:
    """An index that is not a natural number, or is past the end of a split, is refused."""
    for index in (-1, 1.5, True, "0", None):
        _refuses(subject, "train", index, "index must be an integer >= 0")
    for split in SPLITS:
        if (size := subject.make().size(split)) is not None:
            _refuses(subject, split, size, "")


@law()
def foreign_tasks_are_refused(subject: Subject) -> None:
    """A Task of another world is refused, naming that world."""
    for task in subject.tasks("train", 1):
        foreign = replace(task, world="other/World-v0", options_json="{}")
        with refused(TaskError, foreign.world, f"a Task of {foreign.world!r}", task):
            subject.make().start(foreign)


@law()
def damaged_tasks_are_refused(subject: Subject) -> None:
    """A damaged Task that cannot be played raises a TaskError and nothing else."""
    for task in subject.tasks("train", 1):
        for part in ("instance", "answer"):
            for name, value in getattr(task, part).items():
                for damage in (None, [], {}, "x", -1, [value], {"": value}):
                    _start_damaged(subject, task, part, name, damage)


def _start_damaged(subject: Subject, task: Task, part: str, name: str, damage: object) -> None:
    """Start a Task with `damage` as a field's value, or without the field if it is `None`."""
    fields = {**getattr(task, part), name: damage}
    if damage is None:
        del fields[name]
    damaged = replace(task, **{f"{part}_json": canonical_json(fields)})  # type: ignore[arg-type]
    try:
        subject.make().start(damaged)
    except TaskError:
        return
    except Exception as error:
        what = "missing" if damage is None else quoted(str(damage))
        raise Violation(f"with {part}[{name!r}] {what}: {describe(error)}", task) from error


def _refuses(subject: Subject, split: str, index: object, message: str) -> None:
    with refused(OptionError, message, f"task({split!r}, {index!r})"):
        subject.make().task(split, index)  # type: ignore[arg-type]


def difference(expected: Task, drawn: Task) -> str:
    """Name the fields in which two Tasks differ."""
    names = [
        name
        for name in Task.__dataclass_fields__
        if getattr(expected, name) != getattr(drawn, name)
    ]
    return f"{', '.join(names) or 'nothing'} differ{'s' * (len(names) < 2)} when drawn again"
