"""One interface to any environment: draw a Task, read its prompt, reply, be rewarded.

A `Source` fills it; every check uses it and nothing else. It knows no tokens and no models. A fault
of an environment is data for a finding: `play` keeps an error that a reply raised, and only a
process that hangs or dies raises `SourceFailure`.
"""

import math
import random
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tokengym.envs.core.errors import TokengymError

_LONGEST = 100_000
"""Most characters of a reply that is played."""


class SourceFailure(TokengymError, RuntimeError):
    """The environment's process hung, ended, or could not start.

    Attributes:
        reply: what was replied when it did; empty if nothing was.
        hung: whether it hung, or wrote where only certify writes: a fault of the environment.
    """

    reply: str = ""
    hung: bool = False


class RemoteError(Exception):
    """Message of an error that was raised in another process."""


@dataclass(frozen=True)
class TaskPlace:
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


class SourceStep(NamedTuple):
    """The answer to a reply.

    Attributes:
        reward: of this reply; as the environment gave it, hence perhaps no number at all.
        done: whether the episode is over.
        text: what the policy reads next.
        seconds: processor time that it took; `None` until it is measured.
        states: of the global generators of Python and numpy that the reply changed.
    """

    reward: Any
    done: bool
    text: str = ""
    seconds: float | None = None
    states: tuple[int, ...] = ()


@dataclass
class SourceEpisode:
    """An episode that has begun.

    Attributes:
        prompt: what the policy reads first.
        reply: plays a reply.
        reference: right replies, one a turn; empty if none is known.
        claim: return that is claimed for the reference; `None` without a claim.
    """

    prompt: str
    reply: Callable[[str], SourceStep]
    reference: tuple[str, ...] = ()
    claim: float | None = None

    def __post_init__(self) -> None:
        """Refuse messages for a prompt, and a text for a sequence of texts."""
        texts = (self.prompt, *self.reference)
        if isinstance(self.reference, str) or not all(isinstance(text, str) for text in texts):
            raise TypeError("an episode takes a prompt that is text, and a sequence of references")
        self.reference = tuple(self.reference)


class Recorded(NamedTuple):
    """A rollout that somebody recorded.

    Attributes:
        prompt: what was read first; empty if it was not recorded.
        reply: what was replied, all turns.
        reward: the return, or the text of what is no number.
        group: rollouts of a group are compared with each other.
        split: the Task's split; empty if not known.
        length: of the reply, in characters or tokens.
        task: what it was played on; the group's own if empty.
    """

    prompt: str
    reply: str
    reward: float | str
    group: str
    split: str = ""
    length: int = 0
    task: str = ""


@dataclass(frozen=True)
class Facts:
    """Description of a source by itself.

    Attributes:
        package: distribution and version, such as `reasoning-gym 0.1.25`.
        splits: splits that are to share no Task; empty if there is no such promise.
        seeded: whether another seed is to give other Tasks.
        size: Tasks of the smallest split; `None` if they never run out.
        declared: lowest and highest return that is declared; `None` if neither is.
        turns: most replies of an episode that are played.
        sessions: episodes that may be under way side by side.
        batched: whether replies to several Tasks are scored in one call, see `Source.batch`.
        form: how a reply gives its answer, a format such as `<answer>{}</answer>`.
        tolerance: by how much an answer may be wrong, relative to it.
    """

    package: str
    splits: tuple[str, ...] = ()
    seeded: bool = False
    size: int | None = None
    declared: tuple[float, float] | None = None
    turns: int = 1
    sessions: int = 64
    batched: bool = False
    form: str = "{}"
    tolerance: float = 0.0


class Source(ABC):
    """An environment.

    Attributes:
        facts: what it says about itself.
        rollouts: what was recorded of it; if there is any, it cannot be played.
        ahead: see `fresh`; from 0 on it may be changed.
    """

    facts: Facts
    rollouts: Sequence[Recorded] = ()
    ahead: float | None = None

    @abstractmethod
    def start(self, place: TaskPlace) -> SourceEpisode:
        """Begin an episode of the Task at a place; episodes may be under way side by side."""

    def batch(self, asked: Sequence[tuple[TaskPlace, str]]) -> Any:
        """Return what one call pays for replies to Tasks: a reward for each, if all goes well."""
        raise NotImplementedError(f"{self.facts.package} scores one reply at a time")

    def memory(self) -> int | None:
        """Return the bytes of memory that its process holds; `None` if it has none of its own."""
        return None

    def spent(self) -> "Spent":
        """Return what processes of its own have used."""
        return Spent(0.0, 0.0)

    def draw_random(self) -> None:
        """Draw from the global generators of its process, so that to seed them changes them."""
        random.random()
        if "numpy" in sys.modules:
            sys.modules["numpy"].random.random()

    def fresh(self, *, hashes: int | None = None, ahead: float | None = None) -> "Source | None":
        """Return the same source in a new process; `None` if it has none of its own.

        Args:
            hashes: seed of Python's hashes, as here if 0; another one if `None`.
            ahead: seconds by which its clock goes ahead; the usual clock if `None`.
        """
        return None

    def close(self) -> None:  # noqa: B027
        """Let go of what the source holds."""


class Spent(NamedTuple):
    """Seconds for which processes worked, and for which they waited for a processor."""

    worked: float
    queued: float


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
        seconds: the processor time that each took.
        states: of the global generators, where one changed it.
        done: whether the environment ended the episode.
        error: what a reply raised, or why a reward is no number; empty if all went well.
    """

    place: TaskPlace
    prompt: str
    replies: tuple[str, ...]
    texts: tuple[str, ...]
    rewards: tuple[Any, ...]
    seconds: tuple[float, ...]
    states: tuple[int, ...]
    done: bool
    error: str

    @property
    def slowest(self) -> float:
        """The longest time that a reply took."""
        return max(self.seconds, default=0.0)

    @property
    def total(self) -> float:
        """The return; NaN where a reply raised or a reward is not a finite number."""
        if self.error:
            return math.nan
        return math.fsum(self.rewards) if all(map(math.isfinite, self.rewards)) else math.nan


def begin(source: Source, place: TaskPlace) -> SourceEpisode:
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


def playing(source: Source, place: TaskPlace, policy: Policy) -> Generator[None, None, Trace]:
    """Play an episode one reply at a time, to its end or to the most replies of the source.

    Yields:
        when it has begun, and after each reply but the last.

    Returns:
        the episode.

    Raises:
        SourceFailure: if its process hangs or dies.
    """
    episode = begin(source, place)
    yield  # trainers begin all episodes before they reply to one
    text, done, error = episode.prompt, False, ""
    replies: list[str] = []
    steps: list[SourceStep] = []
    while (said := policy(text, len(replies))) is not None:
        replies.append(said[:_LONGEST])
        try:
            step = measured(episode.reply, replies[-1])
        except SourceFailure as failure:
            failure.reply = replies[-1]
            raise
        except Exception as raised:
            error = in_words(raised)
            break
        steps.append(step._replace(reward=plain_reward(step.reward)))
        done, text = step.done, step.text
        if isinstance(steps[-1].reward, str):
            error = f"the reward is {steps[-1].reward}, not a number"
        if done or error or len(replies) == source.facts.turns:
            break
        yield
    texts, rewards = (tuple(getattr(step, part) for step in steps) for part in ("text", "reward"))
    seconds = tuple(step.seconds or 0.0 for step in steps)
    states = tuple(state for step in steps for state in step.states)
    parts = tuple(replies), texts, rewards, seconds, states, done, error
    return Trace(place, episode.prompt, *parts)


def play(source: Source, place: TaskPlace, policy: Policy) -> Trace:
    """Play an episode as `playing` does, without a break."""
    return play_together([playing(source, place, policy)])[0]


def play_together(episodes: Sequence[Generator[None, None, Trace]]) -> list[Trace]:
    """Play episodes side by side, turn by turn."""
    traces: dict[int, Trace] = {}
    while len(traces) < len(episodes):
        for number, episode in enumerate(episodes):
            if number not in traces:
                try:
                    next(episode)
                except StopIteration as end:
                    traces[number] = end.value
    return [traces[number] for number in range(len(episodes))]


def measured(reply: Callable[[str], SourceStep], text: str) -> SourceStep:
    """Play a reply, with its processor time and what it did to the global generators."""
    before, begun = _global_states(), time.process_time()
    step = reply(text)
    if step.seconds is not None:  # measured where it was played, in another process
        return step
    seconds, after = time.process_time() - begun, _global_states()
    changed = tuple(state for state in after if state not in before)
    return step._replace(seconds=seconds, states=changed)


def _global_states() -> list[int]:
    states = [hash(random.getstate())]
    if "numpy" in sys.modules:
        name, keys, *rest = sys.modules["numpy"].random.get_state()
        states.append(hash((name, keys.tobytes(), *rest)))
    return states


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
    """Return an error's message, after its type unless the message says enough."""
    enough = isinstance(error, RemoteError | TokengymError | ImportError | SyntaxError)
    return str(error) if enough else f"{type(error).__name__}: {error}"
