"""A World: the rules of one text environment as a pure, seeded state machine.

It knows no tokens, no files, no clock and no global randomness. A subclass draws instances, solves
them, compiles Tasks, opens an episode and answers replies; this base keeps the order of calls, the
splits and indices of Tasks, the compiled Tasks, the reward grid and the declared ranges.
"""

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Generic, Self, cast

import numpy as np
from typing_extensions import TypeVar

from tokengym.envs.core.errors import (
    EpisodeStateError,
    OptionError,
    RoleError,
    TaskError,
    TokengymError,
    require_one_of,
)
from tokengym.envs.core.form import ReplyForm
from tokengym.envs.core.optimum import Optimum
from tokengym.envs.core.reward_checks import pay_terms
from tokengym.envs.core.seeding import SPLITS, generator, split_of
from tokengym.envs.core.spec import WorldSpec
from tokengym.envs.core.split_windows import Windows
from tokengym.envs.core.task import Task, canonical_json, fingerprint, to_plain_json
from tokengym.envs.core.task_drawing import Unusable, draw_usable
from tokengym.envs.core.tools import Tool
from tokengym.envs.core.turn import NOTHING, StopReason, Turn, sum_rewards

PROMPTS = ("full", "direct", "terse")
"""Prompts for models that may think before they answer; the same, but asking for the answer alone;
and short ones, for tiny models that were trained on them."""

_COMPILED_TASKS_KEPT = 1024
_DRAWN_TASKS = 2**31

Compiled = TypeVar("Compiled", default=Any)
"""The type a world compiles its Tasks to."""


class World(ABC, Generic[Compiled]):
    """One text environment at one level.

    Args:
        spec: the world's declaration.
        level: one of `spec.levels`; the first one if `None`.
        prompt: one of `PROMPTS`, for worlds that write several.

    Attributes:
        spec: the world's declaration.
        level: the level.
        prompt: which of its prompts the world writes.

    Raises:
        OptionError: if the level or the prompt is unknown.
    """

    expected_form: ClassVar[str]
    """An example of a well-formed reply, for tests: no Turn shows it, a policy would copy it."""

    made_with: Mapping[str, Any] | None = None
    """The options that `make_world` was given; `None` for a world that was made otherwise."""

    windows: Windows | None = None
    """Windows of a user's time series, on which Tasks are drawn; set by the constructor."""

    def __init__(self, spec: WorldSpec, level: str | None = None, *, prompt: str = "full") -> None:
        level = spec.levels[0] if level is None else level
        spec.require_level(level)
        require_one_of("prompt", prompt, PROMPTS)
        self.spec = spec
        self.level = level
        self.prompt = prompt
        self._compiled: Compiled | None = None
        self._role: str | None = None
        self._returns: dict[str, float] = {}

    def __repr__(self) -> str:
        """Show class, id and level, and whose turn it is."""
        now = "no episode under way" if self._role is None else f"{self._role} to reply"
        return f"<{type(self).__name__} {self.spec.id} {self.level}: {now}>"

    @classmethod
    def cast(cls, world: "World") -> Self:
        """Return `world` itself, checked to be of this class: for policies that need its members.

        Raises:
            TypeError: if it is another world.
        """
        if not isinstance(world, cls):
            raise TypeError(f"expected a {cls.__name__}, got {type(world).__name__}")
        return world

    @property
    def turn_limit(self) -> int:
        """The most turns that one role can have at this level."""
        return self.spec.turn_limits[self.level]

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools of the world at its level, fixed before the first Turn; usually none.

        A reply calls one by a line of `tokengym.envs.core.tools`.
        """
        return ()

    @property
    def declared_tools(self) -> tuple[Tool, ...]:
        """The tools that a chat format declares: none beside a terse prompt, which says it all.

        Their schemas would be longer than what tiny models read.
        """
        return () if self.prompt == "terse" else self.tools

    @property
    def returns(self) -> Mapping[str, float]:
        """The return of each role so far in this episode."""
        return dict(self._returns)

    @property
    def reply_form(self) -> ReplyForm:
        """The form of a well-formed reply of the current role; by default, the example."""
        return ReplyForm(self.expected_form, "\n" not in self.expected_form)

    @property
    def options(self) -> Mapping[str, Any]:
        """The options by which this world scores replies, where they are not the defaults."""
        return self._scoring_options()

    def size(self, split: str = "train") -> int | None:
        """Return the number of Tasks in `split`; `None` where Tasks are drawn and never run out.

        Raises:
            OptionError: if the split is unknown.
        """
        require_one_of("split", split, SPLITS)
        sizes = self._sizes()
        return None if sizes is None else sizes[split]

    def task_count(self, split: str = "train") -> int:
        """Return the number of Tasks in `split`; 2³¹ where Tasks are drawn and never run out.

        Raises:
            OptionError: if the split is unknown.
        """
        size = self.size(split)
        return _DRAWN_TASKS if size is None else size

    def draw_index(self, split: str, rng: np.random.Generator) -> int:
        """Draw the index of a Task in `split`; an empty one, which `task` refuses, gives 0.

        Raises:
            OptionError: if the split is unknown.
        """
        return int(rng.integers(max(self.task_count(split), 1)))

    @property
    def generates(self) -> bool:
        """Whether the world makes its Tasks up, rather than from a user's data."""
        return self.windows is None and self._sizes() is None

    @property
    def draws_as_usual(self) -> bool:
        """Whether its Tasks are those of the level without options, which may score them."""
        return self.generates and not self._drawing_options()

    def task(self, split: str = "train", index: int = 0) -> Task:
        """Return the Task at `index` of `split`, always and everywhere the same.

        Args:
            split: `train`, `validation` or `test`. No instance occurs in two of them.
            index: an integer >= 0, below `size(split)` if that is a number.

        Raises:
            OptionError: if the split is unknown or the index out of range.
        """
        size = self.size(split)
        if isinstance(index, bool) or not isinstance(index, int | np.integer) or index < 0:
            raise OptionError(f"index must be an integer >= 0, got {index!r}")
        if size is not None and index >= size:
            raise OptionError(f"{split!r} holds {size} Tasks, got index {index}")
        make = self._draw_task if size is None else self._task_of_record
        return make(split, int(index))

    def _new_task(
        self, split: str, index: int, instance: Mapping[str, Any], answer: Mapping[str, Any]
    ) -> Task:
        """Return the Task of this world and level with the given plain values."""
        return Task.create(
            world=self.spec.id,
            level=self.level,
            split=split,
            index=index,
            instance=instance,
            answer=answer,
            options=self.options,
        )

    def _draw_task(self, split: str, index: int) -> Task:
        """Draw instances until one belongs to `split` and has an answer; return its Task."""
        rng, windows = self._task_generator(split, index), self.windows

        def draw() -> tuple[Mapping[str, Any], str]:
            if windows is None:
                instance = to_plain_json(self._draw(rng))
                return instance, self.split_of(instance)
            start = windows.starts[int(rng.integers(len(windows)))]
            return to_plain_json(self._draw_window(rng, start)), windows[start]

        where = f"{self.spec.id} at level {self.level!r}"
        usable = draw_usable(draw, lambda instance: self._solve(instance, rng), split, where)
        return self._new_task(split, index, *usable)

    def _task_generator(self, split: str, index: int) -> np.random.Generator:
        """Return the generator of the Task at `index`: a stream of its own for each revision."""
        revision = self.spec.revisions.get(self.level, 0)
        revised = (f"revision {revision}",) if revision else ()
        return generator(
            self.spec.seed, split, self.level, index, *revised, *self._drawing_options()
        )

    def split_of(self, instance: Mapping[str, Any]) -> str:
        """Return the split that owns an instance of drawn Tasks, by its `_split_key`."""
        return split_of(fingerprint(self.spec.seed, canonical_json(self._split_key(instance))))

    def first_tasks(self, split: str, count: int) -> list[Task]:
        """Return the first `count` Tasks of `split`, or all it has.

        Raises:
            OptionError: if the split is unknown.
        """
        size = self.size(split)
        return [self.task(split, i) for i in range(count if size is None else min(size, count))]

    def _split_key(self, instance: Mapping[str, Any]) -> object:
        """Return plain JSON that is equal for instances that must lie in one split.

        Splits are disjoint by what a policy sees first: the key leaves out whatever only later
        turns reveal, and is the same for twins, whose answers follow from each other (a question
        and its negation). It must not depend on the world's options. Few keys distort what a split
        holds: a level needs at least 10⁶ effective ones, 1 / Σ p².
        """
        return instance

    def adopt(self, task: Task) -> Task:
        """Return `task` as this world scores it, to compare options on the same Task."""
        return replace(task, options_json=self._options_json)

    @cached_property
    def _options_json(self) -> str:
        return canonical_json(dict(self.options))

    def _scoring_options(self) -> Mapping[str, Any]:
        """Return the options that differ from the defaults and change the reward of a reply."""
        return {}

    def _drawing_options(self) -> tuple[object, ...]:
        """Options that change which Tasks are drawn; each combination has its own streams."""
        return ()

    def _sizes(self) -> Mapping[str, int] | None:
        """Return by split the number of records of a user's data; `None` if Tasks are drawn."""
        return None

    def _task_of_record(self, split: str, index: int) -> Task:
        """Return the Task of a record that `_sizes` counts."""
        raise NotImplementedError(f"{type(self).__name__} counts records and makes no Task of one")

    def _draw_window(self, rng: np.random.Generator, start: int) -> Mapping[str, Any]:
        """Draw an instance on the window of `windows` that begins at entry `start`."""
        raise NotImplementedError(f"{type(self).__name__} has windows and draws none")

    @abstractmethod
    def _draw(self, rng: np.random.Generator) -> Mapping[str, Any]:
        """Draw an instance: the values that define the problem. Must be cheap."""

    @abstractmethod
    def _solve(
        self, instance: Mapping[str, Any], rng: np.random.Generator
    ) -> Mapping[str, Any] | Unusable | None:
        """Return the hidden answer (optimum, outcomes); else another instance is drawn."""

    @abstractmethod
    def optimum(self, task: Task) -> Mapping[str, Optimum]:
        """Return by role the best expected return of `task`."""

    def compile(self, task: Task) -> Compiled:
        """Return the compiled form of `task`, computed once and shared by all its episodes.

        Raises:
            TaskError: if the Task belongs to another world, is scored by other options, or its
                contents are damaged.
        """
        if task.options_json != self._options_json and task.world == self.spec.id:
            raise TaskError(
                f"{self.spec.id}: the Task is scored by the options {task.options_json}, this world"
                f" by {self._options_json}; `adopt(task)` returns the Task as this world scores it"
            )
        compiled: Compiled = _compile(self._compiler, task)
        return compiled

    @cached_property
    def _compiler(self) -> tuple[type["World"], str, tuple[object, ...]]:
        """Class, id and options, by which equal worlds share compiled Tasks."""
        return type(self), self.spec.id, self._compile_options()

    @property
    def compiled(self) -> Compiled:
        """The compiled Task being played.

        Raises:
            EpisodeStateError: before the first `start`.
        """
        if self._compiled is None:
            raise EpisodeStateError(f"{self.spec.id}: no episode is under way; call start(task)")
        return self._compiled

    def _compile_options(self) -> tuple[object, ...]:
        """Options that `_compile` takes after the Task, all hashable."""
        return ()

    @classmethod
    def _compile(cls, task: Task, *args: Any, **kwargs: Any) -> Compiled:
        """Compile a Task: by default, to the Task itself.

        A class method, so that all it can depend on is its arguments. The result must be immutable:
        worlds with equal options and all their forks share it. Any error for a damaged Task
        (a missing field, a wrong type) becomes a `TaskError`.
        """
        return cast(Compiled, task)

    def start(self, task: Task) -> Turn:
        """Open an episode of `task`; any episode in progress is dropped.

        Raises:
            TaskError: as `compile` does.
        """
        self._compiled = self.compile(task)
        self._returns = dict.fromkeys(self.spec.roles, 0.0)
        turn = self._begin(task)
        self._role = turn.role
        return turn

    def reply(self, text: str, *, complete: bool = True, role: str | None = None) -> Turn:
        """Answer the reply of the role whose turn it is. No text raises an error.

        Args:
            text: the reply.
            complete: `False` if it was cut off: then only lines that had ended count.
            role: the role that replies, checked if given.

        Raises:
            EpisodeStateError: before `start` or after the end.
            RoleError: if it is another role's turn.
        """
        if self._role is None:
            raise EpisodeStateError(f"{self.spec.id}: no episode is under way; call start(task)")
        if role is not None and role != self._role:
            raise RoleError(f"{self.spec.id}: it is the turn of {self._role!r}, not of {role!r}")
        turn = self._respond(text, complete)
        self._role = None if turn.terminated or turn.truncated else turn.role
        return turn

    def stop(
        self, reason: StopReason = StopReason.TOKEN_BUDGET, *, after: Turn | None = None
    ) -> Turn:
        """Truncate the episode: play the rest as empty replies and return one last Turn.

        Args:
            reason: the reason for cutting it short.
            after: the Turn that would have been answered next; its rewards move to the last Turn.

        Raises:
            EpisodeStateError: if no episode is under way.
        """
        paid = [] if after is None else [after]
        while not paid or not paid[-1].done:
            paid.append(self.reply("", complete=False))
        rewards, terms = sum_rewards(paid)
        return paid[-1]._replace(
            rewards=rewards, terms=terms, terminated=False, truncated=True, stop_reason=reason
        )

    def fork(self) -> Self:
        """Return an independent copy in the same state that behaves identically."""
        return copy.deepcopy(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Copy the state; the spec and the compiled Task are immutable and shared."""
        twin = copy.copy(self)
        shared = {id(self.spec): self.spec, id(self._compiled): self._compiled}
        for name, value in copy.deepcopy(vars(self), memo | shared).items():
            setattr(twin, name, value)
        return twin

    @abstractmethod
    def _begin(self, task: Task) -> Turn:
        """Open an episode of the Task that `self.compiled` was compiled from: the first Turn."""

    @abstractmethod
    def _respond(self, text: str, complete: bool) -> Turn:
        """Answer a reply; pass rewards through `_pay`."""

    def _pay(
        self, terms: Mapping[str, Mapping[str, float]], *, final: bool
    ) -> tuple[dict[str, float], dict[str, dict[str, float]]]:
        """Return this step's rewards and rounded terms by role, in range; see `pay_terms`."""
        return pay_terms(self.spec, self._returns, terms, final=final)

    def _end(
        self,
        role: str,
        text: str,
        terms: Mapping[str, Mapping[str, float]],
        reason: StopReason,
        metrics: Mapping[str, float] = NOTHING,
    ) -> Turn:
        """Build the Turn that ends an episode by the world's own rules."""
        rewards, rounded = self._pay(terms, final=True)
        return Turn(role, text, rewards, rounded, True, False, reason, metrics)


@lru_cache(maxsize=_COMPILED_TASKS_KEPT)
def _compile(compiler: tuple[type[World], str, tuple[object, ...]], task: Task) -> Any:
    """Compile a Task once for all worlds of a class that have equal options.

    Raises:
        TaskError: if the Task belongs to another world or its contents are damaged.
    """
    world, world_id, options = compiler
    if task.world != world_id:
        raise TaskError(f"{world_id} cannot play a Task of {task.world!r}")
    try:
        return world._compile(task, *options)
    except TokengymError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise TaskError(f"damaged Task of {task.world}: {error!r}") from error
