"""One interface to any environment: draw a Task, read its prompt, reply, be rewarded.

A `Source` fills it; every check uses it and nothing else. It knows no tokens and no models. What an
environment does wrong is data for a finding: `play` keeps an error that a reply raised, and only a
process that hangs or dies raises `SourceFailure`.
"""

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tokengym.envs.core.errors import TokengymError

_LONGEST = 100_000
"""Most characters of a reply that is played."""


class SourceFailure(TokengymError, RuntimeError):
    """The environment's process hung, ended, or could not start."""


class RemoteError(Exception):
    """What was raised in another process, in words."""


@dataclass(frozen=True)
class Place:
    """Where a Task is found.

    Attributes:
        split: one of the source's splits; empty where it has none.
        seed: of the data set or the reset; ignored where Tasks are fixed.
        index: position, `>= 0`.
    """

    split: str
    seed: int
    index: int

    def __str__(self) -> str:
        """Name the place in a message."""
        return f"Task {self.index} of {self.split or 'the source'}, seed {self.seed}"


class Step(NamedTuple):
    """The answer to a reply.

    Attributes:
        reward: of this reply; as the environment gave it, hence perhaps no number at all.
        done: whether the episode is over.
        text: what the policy reads next.
    """

    reward: Any
    done: bool
    text: str = ""


@dataclass
class Episode:
    """An episode that has begun.

    Attributes:
        prompt: what the policy reads first.
        reply: plays a reply.
        reference: replies that are said to be right, one a turn; empty if none is known.
        claim: return that the reference is said to earn; `None` if nothing is said.
    """

    prompt: str
    reply: Callable[[str], Step]
    reference: Sequence[str] = ()
    claim: float | None = None

    def __post_init__(self) -> None:
        """Refuse messages for a prompt, and a text for a sequence of texts."""
        if isinstance(self.reference, str) or not all(
            isinstance(text, str) for text in (self.prompt, *self.reference)
        ):
            raise TypeError("an Episode takes a prompt that is text, and a sequence of references")


class Recorded(NamedTuple):
    """A rollout that somebody recorded.

    Attributes:
        prompt: what was read first; empty if it was not recorded.
        reply: what was replied, all turns.
        reward: the return, or the text of what is no number.
        group: rollouts of a group are compared with each other.
        split: the Task's split; empty if not known.
        length: of the reply, in characters or tokens.
    """

    prompt: str
    reply: str
    reward: float | str
    group: str
    split: str = ""
    length: int = 0


@dataclass(frozen=True)
class Facts:
    """What a source says about itself.

    Attributes:
        package: distribution and version, such as `reasoning-gym 0.1.25`.
        splits: splits that are to share no Task; empty if there is no such promise.
        seeded: whether another seed is to give other Tasks.
        size: Tasks of the smallest split; `None` if they never run out.
        declared: lowest and highest return that is declared; `None` if neither is.
        turns: most replies of an episode that are played.
        sessions: episodes that may be under way side by side.
    """

    package: str
    splits: tuple[str, ...] = ()
    seeded: bool = False
    size: int | None = None
    declared: tuple[float, float] | None = None
    turns: int = 1
    sessions: int = 64


class Source(ABC):
    """An environment.

    Attributes:
        facts: what it says about itself.
        rollouts: what was recorded of it; if there is any, it cannot be played.
    """

    facts: Facts
    rollouts: Sequence[Recorded] = ()

    @abstractmethod
    def start(self, place: Place) -> Episode:
        """Begin an episode of the Task at a place; episodes may be under way side by side."""

    def memory(self) -> int | None:
        """Return the bytes of memory that its process holds; `None` if it has none of its own."""
        return None

    def fresh(self) -> "Source | None":
        """Return the same source in a new process; `None` if it has none of its own."""
        return None

    def close(self) -> None:  # noqa: B027
        """Let go of what the source holds."""


Policy = Callable[[str, int], str | None]
"""From the text to answer and the number of the turn to a reply; `None` ends the episode."""


def say(*replies: str) -> Policy:
    """Return the policy that gives these replies in order, and then the last one for ever."""
    return lambda text, turn: replies[min(turn, len(replies) - 1)] if replies else ""


@dataclass(frozen=True)
class Trace:
    """An episode that was played.

    Attributes:
        place: where its Task is.
        prompt: what was read first.
        replies: the replies.
        texts: the answer to each.
        rewards: the reward of each, or the text of what is no number.
        seconds: the time that each took.
        done: whether the environment ended the episode.
        error: what a reply raised, or why a reward is no number; empty if all went well.
    """

    place: Place
    prompt: str
    replies: tuple[str, ...]
    texts: tuple[str, ...]
    rewards: tuple[Any, ...]
    seconds: tuple[float, ...]
    done: bool
    error: str

    @property
    def total(self) -> float:
        """The return; NaN where a reply raised or a reward is not a finite number."""
        if self.error:
            return math.nan
        return math.fsum(self.rewards) if all(map(math.isfinite, self.rewards)) else math.nan


def begin(source: Source, place: Place) -> Episode:
    """Begin an episode.

    Raises:
        SourceFailure: if the source raises, or its process hangs or dies.
    """
    try:
        return source.start(place)
    except SourceFailure:
        raise
    except Exception as error:
        raise SourceFailure(f"starting {place} raised {in_words(error)}") from error


class Play:
    """An episode under way, one reply at a time.

    Args:
        source: the environment.
        place: where the Task is.
        policy: who replies.
    """

    def __init__(self, source: Source, place: Place, policy: Policy) -> None:
        self._place, self._policy, self._most = place, policy, source.facts.turns
        self._episode = begin(source, place)
        self._text, self._done, self._error = self._episode.prompt, False, ""
        self._replies: list[str] = []
        self._steps: list[Step] = []
        self._seconds: list[float] = []

    def advance(self) -> bool:
        """Play one reply; returns whether there is another one to play."""
        said = self._policy(self._text, len(self._replies))
        if said is None:
            return False
        said = said[:_LONGEST]
        begun = time.perf_counter()
        self._replies.append(said)
        try:
            step = self._episode.reply(said)
        except SourceFailure:
            raise
        except Exception as error:
            self._error = in_words(error)
            return False
        self._seconds.append(time.perf_counter() - begun)
        step = step._replace(reward=plain_reward(step.reward))
        self._steps.append(step)
        if isinstance(step.reward, str):
            self._error = f"the reward is {step.reward}, not a number"
        self._text, self._done = step.text, step.done
        return not (self._done or self._error or len(self._replies) == self._most)

    def trace(self) -> Trace:
        """Return what was played so far."""
        rewards, _, texts = zip(*self._steps, strict=True) if self._steps else ((), (), ())
        parts = tuple(self._replies), tuple(texts), tuple(rewards), tuple(self._seconds)
        return Trace(self._place, self._episode.prompt, *parts, self._done, self._error)


def play(source: Source, place: Place, policy: Policy) -> Trace:
    """Play an episode to its end, or to the most replies of the source.

    Raises:
        SourceFailure: if its process hangs or dies.
    """
    playing = Play(source, place, policy)
    while playing.advance():
        pass
    return playing.trace()


def plain_reward(reward: Any) -> float | str:
    """Return a reward as a plain number, or the text of what is none."""
    try:
        value = reward.item() if hasattr(reward, "item") else reward
        return float(value) if isinstance(value, int | float) else repr(value)
    except OverflowError:
        return math.inf if reward > 0 else -math.inf
    except (RuntimeError, ValueError):  # of a tensor or an array with several items
        return repr(reward)


def in_words(error: Exception) -> str:
    """Return an error's type and message; those of another process are in words already."""
    return str(error) if isinstance(error, RemoteError) else f"{type(error).__name__}: {error}"
