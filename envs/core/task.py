"""A Task: one problem as frozen data, JSON both ways, hashable and picklable.

The problem itself (`instance`) is kept apart from facts about it that are never shown
(`answer`: drawn outcomes, optimum, reference values), and each has a fingerprint.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, Self

from tokengym.envs.core.errors import TaskError
from tokengym.envs.core.immutable import Immutable

_NO_OPTIONS: Mapping[str, Any] = MappingProxyType({})
_FOR_BASELINES = ("plan", "base_rate")
_FIELDS = ("world", "level", "split", "index", "options", "instance", "answer")


def canonical_json(value: object) -> str:
    """Return `value` as JSON with sorted keys and no blanks; floats round-trip, NaN is refused."""
    try:
        return json.dumps(
            value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
        )
    except (TypeError, ValueError) as error:
        raise TaskError(f"a Task holds plain finite JSON values only: {error}") from error


@dataclass(frozen=True)
class Task(Immutable):
    """One problem of one world.

    Attributes:
        world: id of the world, such as `tokengym/Forecast-v1`.
        level: level it was drawn at.
        split: `train`, `validation` or `test`.
        index: position within (world, level, split), `>= 0`.
        instance_json: canonical JSON of what defines the problem.
        answer_json: canonical JSON of what is known but never shown to a policy.
        options_json: canonical JSON of the options by which replies to it are scored, where they
            are not the world's defaults. A world with other ones refuses the Task.
    """

    world: str
    level: str
    split: str
    index: int
    instance_json: str
    answer_json: str
    options_json: str = "{}"

    def __hash__(self) -> int:
        """Hash the instance alone: faster, and seldom shared by different Tasks."""
        return hash(self.instance_json)

    @classmethod
    def create(
        cls,
        *,
        world: str,
        level: str,
        split: str,
        index: int,
        instance: Mapping[str, Any],
        answer: Mapping[str, Any],
        options: Mapping[str, Any] = _NO_OPTIONS,
    ) -> Self:
        """Build a Task from plain JSON mappings.

        Raises:
            TaskError: if a value is not finite plain JSON.
        """
        parts = (canonical_json(dict(part)) for part in (instance, answer, options))
        return cls(world, level, split, index, *parts)

    @cached_property
    def instance(self) -> Mapping[str, Any]:
        """The values that define the problem. Treat as read-only."""
        return _mapping(json.loads(self.instance_json), "instance")

    @cached_property
    def answer(self) -> Mapping[str, Any]:
        """The values that are known about the problem and never shown. Treat as read-only."""
        return _mapping(json.loads(self.answer_json), "answer")

    @cached_property
    def options(self) -> Mapping[str, Any]:
        """Options by which replies are scored, other than the defaults. Treat as read-only."""
        return _mapping(json.loads(self.options_json), "options")

    @cached_property
    def fingerprint(self) -> str:
        """32 hexadecimal digits that name the instance, whatever its split, level or index."""
        return fingerprint(self.world, self.instance_json)

    @cached_property
    def answer_fingerprint(self) -> str:
        """32 hexadecimal digits that name the answer and the options that decide the reward.

        A `plan` and a `base_rate`, which are for baselines, do not count. Numbers with a point
        count to seven digits: the last ones differ between processors.
        """
        answer = json.loads(self.answer_json, parse_float=lambda text: f"{float(text):.7g}")
        answer = {name: value for name, value in answer.items() if name not in _FOR_BASELINES}
        return fingerprint(self.world, canonical_json([answer, self.options]))

    def to_json(self) -> str:
        """Return the Task as one line of JSON; `from_json` gives an equal Task back."""
        head = {"world": self.world, "level": self.level, "split": self.split, "index": self.index}
        parts = {"options": self.options, "instance": self.instance, "answer": self.answer}
        return canonical_json({**head, **parts})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read a Task written by `to_json`.

        Raises:
            TaskError: if the text is not JSON or a field is missing, unknown or of the wrong type.
        """
        try:
            data = json.loads(text, parse_constant=_refuse_constant)
        except ValueError as error:
            raise TaskError(f"a Task must be JSON: {error}") from error
        fields = _mapping(data, "Task")
        if set(fields) != set(_FIELDS):
            raise TaskError(f"a Task has the fields {list(_FIELDS)}, got {sorted(fields)}")
        for name in ("world", "level", "split"):
            if not isinstance(fields[name], str):
                raise TaskError(f"Task field {name!r} must be a string, got {fields[name]!r}")
        index = fields["index"]
        if not isinstance(index, int) or isinstance(index, bool) or index < 0:
            raise TaskError(f"Task field 'index' must be an integer >= 0, got {index!r}")
        return cls.create(
            world=fields["world"],
            level=fields["level"],
            split=fields["split"],
            index=index,
            instance=_mapping(fields["instance"], "instance"),
            answer=_mapping(fields["answer"], "answer"),
            options=_mapping(fields["options"], "options"),
        )

    def __repr__(self) -> str:
        """Name the Task; its contents are in `instance` and `answer`."""
        options = f", options={dict(self.options)}" if self.options else ""
        return (
            f"Task({self.world!r}, level={self.level!r}, split={self.split!r}, "
            f"index={self.index}, fingerprint={self.fingerprint!r}{options})"
        )

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the fields only; the receiving process parses them again."""
        return {name: self.__dict__[name] for name in self.__dataclass_fields__}


def fingerprint(world: str, instance_json: str) -> str:
    """Return the 32 hexadecimal digits that name an instance of `world`."""
    return hashlib.sha256(f"{world}\n{instance_json}".encode()).hexdigest()[:32]


def _mapping(value: object, what: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise TaskError(f"{what} must be a JSON object, got {type(value).__name__}")
    return value


def _refuse_constant(name: str) -> float:
    raise TaskError(f"a Task holds finite numbers only, got {name}")


def to_plain_json(value: Any) -> Any:
    """Turn numpy scalars and arrays inside `value` into plain JSON values.

    Raises:
        TaskError: if a number is not finite.
    """
    kind = type(value)
    if kind is int or kind is str or (kind is float and math.isfinite(value)):
        return value
    if isinstance(value, (list, tuple)):
        return [to_plain_json(item) for item in value]
    if kind is dict or isinstance(value, Mapping):
        return {str(key): to_plain_json(item) for key, item in value.items()}
    if hasattr(value, "tolist"):
        return to_plain_json(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        raise TaskError(f"a Task holds finite numbers only, got {value!r}")
    return value
