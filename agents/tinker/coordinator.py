"""A Coordinator: one Episode that several members play at once, each for one role.

Members are awaited side by side, by whoever runs them, and may end in any way: return, raise, be
cancelled, hang, or never begin. Whatever one of them does, every other one gets its turn or the
episode's end in bounded time.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, runtime_checkable

import numpy as np
from tinker_cookbook.rl.rollout_limits import RolloutLimits
from tinker_cookbook.rl.types import Trajectory

from tokengym.agents.tinker.codec import as_codec
from tokengym.envs.core.errors import EpisodeStateError, OptionError, RoleError
from tokengym.envs.core.seeding import generator
from tokengym.envs.core.task import Task
from tokengym.envs.core.turn import NOTHING, StopReason, Turn
from tokengym.envs.core.world import World
from tokengym.envs.tokens.codec import Codec, Reply
from tokengym.envs.tokens.episode import Episode

Speaker = Callable[[World, Turn, np.random.Generator], str | Reply | Awaitable[str | Reply]]
"""Answers a Turn: a baseline of the world, or anything awaitable. A `Reply` may be cut off."""


@runtime_checkable
class Remembering(Protocol):
    """An agent that needs to know what was said before: it is opened anew for every episode."""

    def begin(self) -> Speaker:
        """Return who speaks in one episode."""
        ...


Opponent = Speaker | Remembering
"""Who speaks for a role that is not trained."""

PATIENCE = 1800.0
"""Seconds that a reply may take before the others go on without it. Only a sampler that hangs takes
so long; a member that fails or is cancelled is noticed at once."""
START_SECONDS = 30.0
"""Seconds after which a member that has not begun will not: groups begin all at once."""
_NOTHING_FITS = 2
"""Room below which no useful reply fits; the cookbook's own runner draws the line there too."""


Move = tuple[Reply, Turn]
"""A reply as it was read, and the Turn with which the world answered it."""


class Coordinator:
    """One episode of one Task, played by a member for each role in `roles` and by opponents.

    A role that leaves (the task that plays it raises, is cancelled, or ends its rollout early),
    that does not begin, or that takes longer than `patience` abandons the episode when its turn
    comes: what is left is played as empty replies and paid, and all members get the end, with the
    stop reason `abandoned`. An agent's error is raised in every member.

    All members must be awaited in one event loop. A single member is waited for by nobody, so it
    may take its time and be awaited from anywhere.

    Args:
        world: a world of its own; the coordinator drives it.
        task: what to play.
        codec: a codec or its name, see `codec_named`.
        roles: who reads and writes tokens, at least one.
        opponents: who speaks for the other roles. Their randomness depends on the Task and the role
            alone, so that it is the same for all episodes of a group.
        max_trajectory_tokens: budget of one role's observations and replies together.
        max_turn_tokens: longest reply; kept free in the trajectory budget.
        patience: seconds a reply may take, that of an agent included, before the others go on.

    Attributes:
        rollout_limits: the budgets, as the cookbook's runner reads them from an env.
        abandoned: whether the episode ended because a role did not speak.

    Raises:
        RoleError: if a role is unknown or has nobody, or more than one, to speak for it.
        OptionError: if the codec's name is unknown, a budget leaves no room for a reply, or the
            patience is not positive.
    """

    def __init__(
        self,
        world: World,
        task: Task,
        codec: Codec | str,
        *,
        roles: Sequence[str],
        opponents: Mapping[str, Opponent] | None = None,
        max_trajectory_tokens: int | None = None,
        max_turn_tokens: int | None = None,
        patience: float = PATIENCE,
    ) -> None:
        opponents = dict(opponents or {})
        known = world.spec.roles
        if not roles or sorted([*roles, *opponents]) != sorted(known):
            raise RoleError(
                f"{world.spec.id} has the roles {list(known)}: with {list(roles)} trained, "
                f"opponents must speak for {sorted(set(known) - set(roles))}, "
                f"got {sorted(opponents)}"
            )
        reply = _NOTHING_FITS if max_turn_tokens is None else max_turn_tokens
        if reply < 1 or (max_trajectory_tokens is not None and max_trajectory_tokens <= reply):
            raise OptionError(
                f"a reply must fit in the budgets, got max_trajectory_tokens="
                f"{max_trajectory_tokens} and max_turn_tokens={max_turn_tokens}"
            )
        if not patience > 0:
            raise OptionError(f"patience must be positive, got {patience}")
        self.world = world
        self.task = task
        self.codec = as_codec(codec)
        self.roles = tuple(roles)
        self.patience = patience
        self.abandoned = False
        self.rollout_limits = RolloutLimits(
            max_trajectory_tokens=max_trajectory_tokens, max_turn_tokens=max_turn_tokens
        )
        self._max_observation = (
            None if max_trajectory_tokens is None else max_trajectory_tokens - reply
        )
        self._speakers = {role: _speaker(agent) for role, agent in opponents.items()}
        self._alone = len(known) == 1
        self._draws = {role: generator(task.fingerprint, role) for role in opponents}
        self._turns: list[Turn] = []
        self._collected = dict.fromkeys(self.roles, 0)
        self._episode: Episode | None = None
        self._joined: set[str] = set()
        self._left: set[str] = set()
        self._watched: set[tuple[str, asyncio.Task[Any]]] = set()
        self._speech: asyncio.Task[None] | None = None
        self._error: Exception | None = None
        self._change = asyncio.Event()
        self._deadline = 0.0

    @property
    def episode(self) -> Episode:
        """The episode.

        Raises:
            EpisodeStateError: before a role has joined.
        """
        if self._episode is None:
            raise EpisodeStateError("call initial_observation() before step()")
        return self._episode

    async def join(self, role: str) -> None:
        """Take part: open the episode if nobody has, and wait for the role's first turn or the end.

        Raises:
            EpisodeStateError: if the role has joined before.
        """
        if role in self._joined:
            raise EpisodeStateError("a member plays one episode; make another one")
        self._joined.add(role)
        self._watch(role)
        if self._episode is None:
            self._episode = Episode(
                self.world,
                self.task,
                self.codec,
                roles=self.roles,
                max_tokens=self._max_observation,
            )
            self._turns.append(self._episode.turn)
            self._pass_on(self._episode)
        elif self._episode.role == role:
            self._tell(self._episode)  # the time to reply begins now
        await self._turn_of(role)

    async def play(self, role: str, tokens: list[int], why: str | None) -> Move | None:
        """Play a reply, and wait for the role's next turn or the end.

        Args:
            role: who speaks.
            tokens: as sampled; the list is kept.
            why: why sampling stopped, if known.

        Returns:
            what the reply came to; `None` if it came after the others had gone on without it.

        Raises:
            EpisodeStateError: before `join`.
            RoleError: if it is another role's turn.
        """
        episode = self.episode
        asked = episode.turn
        if asked.done:
            return None
        if asked.role != role:
            raise RoleError(f"it is {asked.role!r} who speaks now, not {role!r}")
        self._turns.append(episode.play(tokens, why))
        move = episode.reply, episode.answer
        if not self._alone:
            self._watch(role)
            self._pass_on(episode)
            await self._turn_of(role)
        return move

    def collect(self, role: str) -> tuple[float, dict[str, float]]:
        """Return a role's reward since the last call: the sum, and each part as `term/NAME`."""
        turns = self._turns[self._collected[role] :]
        self._collected[role] += len(turns)
        earned = 0.0
        terms: dict[str, float] = {}
        for turn in turns:
            earned += turn.rewards.get(role, 0.0)
            for name, value in turn.terms.get(role, NOTHING).items():
                key = f"term/{name}"
                terms[key] = terms.get(key, 0.0) + value
        return earned, terms

    def _pass_on(self, episode: Episode) -> None:
        """Let opponents speak as far as they can at once, then wake the members."""
        try:
            while not episode.done and episode.role in self._speakers:
                role = episode.role
                said = self._speakers[role](self.world, episode.turn, self._draws[role])
                if not isinstance(said, str | Reply):
                    # A task of its own: the member whose reply led here may be cancelled.
                    self._speech = asyncio.ensure_future(self._hear(episode, said))
                    break
                self._say(episode, said)
        except Exception as error:  # raised in every member, see _turn_of
            self._error = error
        self._tell(episode)

    async def _hear(self, episode: Episode, said: Awaitable[str | Reply]) -> None:
        try:
            self._say(episode, await said)
        except Exception as error:  # raised in every member, see _turn_of
            self._error = error
            self._tell(episode)
        else:
            self._pass_on(episode)

    def _say(self, episode: Episode, said: str | Reply) -> None:
        reply = Reply(said, complete=True) if isinstance(said, str) else said
        self._turns.append(episode.say(reply.text, complete=reply.complete))

    def _tell(self, episode: Episode) -> None:
        """Wake all members: the turn has passed, or a role has come or gone."""
        if not episode.done and episode.role in self._left:
            self._abandon(episode)
        if not self._alone:
            absent = not episode.done and episode.role not in {*self._joined, *self._speakers}
            seconds = min(START_SECONDS, self.patience) if absent else self.patience
            self._deadline = asyncio.get_running_loop().time() + seconds
        self._change.set()
        self._change = asyncio.Event()

    async def _turn_of(self, role: str) -> None:
        """Wait until `role` is to speak or the episode is over."""
        episode = self.episode
        while self._error is None and not episode.done and episode.role != role:
            change = self._change
            try:
                async with asyncio.timeout_at(self._deadline):
                    await change.wait()
            except TimeoutError:
                if change is self._change:
                    self._abandon(episode)
                    self._tell(episode)
        if self._error is not None:
            raise self._error

    def _abandon(self, episode: Episode) -> None:
        if self._speech is not None:
            self._speech.cancel()
        self.abandoned = True
        self._turns.append(episode.stop(StopReason.ABANDONED))

    def _watch(self, role: str) -> None:
        """Learn of it when the task that plays a role ends. Nobody waits for a lone member."""
        task = asyncio.current_task() if len(self.roles) > 1 else None
        if task is not None and (role, task) not in self._watched:
            self._watched.add((role, task))
            task.add_done_callback(partial(self._ended, role))

    def _ended(self, role: str, task: "asyncio.Task[Any]") -> None:
        """Count a role as gone, unless the task was but one call of somebody who plays by hand."""
        fell = task.cancelled() or task.exception() is not None
        if fell or isinstance(task.result(), Trajectory):
            self._left.add(role)
            episode = self._episode
            if episode is not None and not episode.done and episode.role == role:
                self._tell(episode)


def _speaker(agent: Opponent) -> Speaker:
    return agent.begin() if isinstance(agent, Remembering) else agent
