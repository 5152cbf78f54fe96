"""Interfaces of all games: a compiled Task, an episode of it, and its players.

A game is chosen once, where a Task is compiled. A reply then goes from the world to the session of
its game, which has it read by `grammar`, applies it to the state that the game's `rules` keep, and
words the answer by the game's templates.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any, ClassVar, Generic, NamedTuple, Protocol

import numpy as np
from typing_extensions import TypeVar

from tokengym.envs.core.grammar import Reading
from tokengym.envs.core.immutable import Immutable
from tokengym.envs.core.turn import StopReason
from tokengym.envs.warehouse.games.texts import ExampleReplies, macros

P = TypeVar("P", bound="Problem", default=Any)
Play = Callable[[Any, np.random.Generator], str]
"""A scripted policy: from a session and randomness to a reply."""


class Problem(Protocol):
    """A compiled Task, on which episodes are played."""

    @property
    def turns(self) -> int:
        """Replies that the episode takes, or its best plan."""
        ...

    @property
    def exact(self) -> bool:
        """Whether a policy that knows only what is shown can earn the optimum."""
        ...


class Form(NamedTuple):
    """Form of a reply.

    Attributes:
        words: the form in words.
        single_line: whether every well-formed reply is one line.
        read: from a reply to a `Reading` of its command.
        nearness: from a malformed reply to how near it is to the form, in [0, 1].
        nothing: the command that a malformed reply counts as.
    """

    words: str
    single_line: bool
    read: Callable[..., Reading[Any]]
    nearness: Callable[[str], float]
    nothing: Any


@dataclass(frozen=True)
class Game(Immutable):
    """One game: the parts that every folder of games has.

    Attributes:
        folder: where its parts are.
        mode: the name by which instances say what game they are of.
        draw: from randomness and a level to an instance.
        solve: from an instance, randomness and outcomes (`None` to draw them) to the answer of a
            Task; `None` if there is nothing to decide.
        read: from an instance and its answer to the problem; raises `TaskError` if they are
            damaged.
        open: from a compiled Task to an episode.
        policies: scripted policies by name; one that is missing plays as `fcfs` does.
        blind: from a level to policies that ignore the Task: from the number of replies so far to
            a reply.
    """

    folder: str
    mode: str
    draw: Callable[[np.random.Generator, Any], dict[str, Any]]
    solve: Callable[[Mapping[str, Any], np.random.Generator, Any], dict[str, Any] | None]
    read: Callable[[Mapping[str, Any], Mapping[str, Any]], Any]
    open: "Callable[[Compiled[Any]], Session[Any]]"
    policies: Mapping[str, Play]
    blind: Callable[[Any], Mapping[str, Callable[[int], str]]]

    def __reduce__(self) -> tuple[Callable[[str], "Game"], tuple[str]]:
        """Pickle by name: policies are closures."""
        return game_in, (self.folder,)


def game_in(folder: str) -> Game:
    """Return the game of a folder."""
    game: Game = import_module(f"tokengym.envs.warehouse.games.{folder}").GAME
    return game


@dataclass(frozen=True)
class Compiled(Generic[P]):
    """A Task compiled.

    Attributes:
        game: its game.
        problem: what is played on.
        reference: value of the reference policy.
        optimum: value of the best plan, or a bound of it.
        replies: most replies.
        style: the prompt, one of `PROMPTS`.
        seed: the Task's fingerprint, for made-up replies.
    """

    game: Game
    problem: P
    reference: float
    optimum: float
    replies: int
    style: str
    seed: str

    @property
    def texts(self) -> Any:
        """The macros that word the Task."""
        return macros(f"{self.game.folder}/prompt_{self.style}")

    @cached_property
    def opening(self) -> str:
        """The first prompt."""
        text: str = self.texts.opening(self.open(), ExampleReplies(self.seed))
        return text

    def open(self) -> "Session[P]":
        """Open an episode."""
        return self.game.open(self)


class Session(ABC, Generic[P]):
    """An episode under way.

    Args:
        compiled: the Task.

    Attributes:
        compiled: the Task.
        turns: replies so far.
        refused: replies so far that were against a rule.
        malformed: replies so far without a command.
    """

    form: Form
    """Form of the next reply."""
    end: ClassVar[tuple[str, ...]] = ()
    """The last lines of an episode."""

    def __init__(self, compiled: Compiled[P]) -> None:
        self.compiled = compiled
        self.turns = 0
        self.refused = 0
        self.malformed = 0

    @property
    @abstractmethod
    def objective(self) -> float:
        """Value so far."""

    @property
    def within_reach(self) -> float:
        """Value at the end if the decisions to come are the best; of use where that is known."""
        return self.objective

    @property
    def replies(self) -> int:
        """Replies in an episode that has none but malformed ones."""
        return self.compiled.problem.turns

    @abstractmethod
    def play(self, command: Any) -> list[str]:
        """Carry out a command, and return lines on what came of it."""

    def state(self) -> list[str]:
        """Return lines on what the next reply decides on."""
        return [self.compiled.texts.state(self)]

    def over(self) -> StopReason | None:
        """Return why the episode is over, if it is."""
        return StopReason.COMPLETED if self.turns == self.compiled.problem.turns else None

    def metrics(self) -> dict[str, float]:
        """Return the metrics of the episode so far."""
        return {"refused": float(self.refused), "malformed_replies": float(self.malformed)}

    def respond(self, text: str, complete: bool) -> tuple[str, float | None, StopReason | None]:
        """Apply a reply.

        Returns:
            what is new, how near a malformed reply is to the form, in [0, 1] (`None` if it is
            well-formed), and why the episode ended, if it did.
        """
        form, nearness = self.form, None
        command, said = form.read(text, complete=complete)
        if command is None:
            self.malformed += 1
            nearness = form.nearness(text)
            command = form.nothing
        lines = [said, *self.play(command)] if said else self.play(command)
        self.turns += 1
        reason = self.over()
        lines += self.state() if reason is None else self.end
        return "\n".join(lines) or "The shift is over.", nearness, reason
