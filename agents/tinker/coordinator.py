"""A Coordinator: one Episode that several members play concurrently, each in one role.

Their caller awaits the members concurrently. A member may end in any way: return, raise, be
cancelled, hang, or never start. Whatever one of them does, every other one gets its turn or the
episode's end in bounded time.
"""

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, runtime_checkable

from tinker_cookbook.rl.rollout_limits import RolloutLimits
from tinker_cookbook.rl.types import Trajectory

from tokengym.agents.tinker.codec import as_codec
from tokengym.envs.core.episode import DecodedReply, OpponentPolicy, TurnExchange
from tokengym.envs.core.errors import EpisodeStateError, OptionError, RoleError
from tokengym.envs.core.task import Task
from tokengym.envs.core.turn import StopReason, Turn
from tokengym.envs.core.world import World
from tokengym.envs.tokens.codec import Codec, codec_for
from tokengym.envs.tokens.episode import Episode


@runtime_checkable
class StatefulOpponent(Protocol):
    """An opponent that remembers the episode, and so has a new policy for each one."""

    def start_episode(self) -> OpponentPolicy:
        """Return the policy that plays one episode."""
        ...


Opponent = OpponentPolicy | StatefulOpponent
"""Plays a role that is not trained."""

REPLY_TIMEOUT = 1800.0
"""Seconds that a reply may take before the others continue without it. Only a sampler that hangs
takes so long; a member that fails or is cancelled is noticed at once."""
JOIN_TIMEOUT = 30.0
"""Seconds after which a member that has not started will not: a group starts all of its members at
once."""
_SMALLEST_REPLY = 2
"""Tokens below which no useful reply fits; the cookbook's own runner draws the line there too."""


class Coordinator:
    """One episode of one Task, played by a member for each role in `roles` and by opponents.

    A role that leaves (the asyncio task that plays it raises, is cancelled, or ends its rollout
    early), that does not start, or that takes longer than `reply_timeout` abandons the episode when
    its turn comes: the rest is played as empty replies and paid, and all members get the end, with
    the stop reason `abandoned`. An opponent's error is raised in every member.

    All members must be awaited in one event loop. A lone member keeps nobody waiting, so it may
    take its time and be awaited from anywhere.

    Args:
        world: a world that nothing else uses; the coordinator drives it.
        task: what to play.
        codec: a codec or its name, see `codec_named`.
        roles: the roles that read and write tokens, at least one.
        opponents: who plays the other roles. Their randomness depends on the Task and the role
            alone, so that it is the same for all episodes of a group.
        max_trajectory_tokens: budget of one role's observations and replies together.
        max_turn_tokens: longest reply; kept free in the trajectory budget.
        reply_timeout: seconds above 0 that a reply may take, an opponent's included, before the
            others continue.
        openings: see `Episode`; shared by the episodes of a group.

    Attributes:
        rollout_limits: the budgets, as the cookbook's runner reads them from an env.
        abandoned: whether the episode ended because a role did not reply.

    Raises:
        RoleError: if a role is unknown or has nobody, or more than one, to play it.
        OptionError: if the codec's name is unknown or a budget leaves no room for a reply.
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
        reply_timeout: float = REPLY_TIMEOUT,
        openings: dict[str, list[int]] | None = None,
    ) -> None:
        opponents = dict(opponents or {})
        named = world.spec.roles
        if not roles or sorted([*roles, *opponents]) != sorted(named):
            raise RoleError(
                f"{world.spec.id} has the roles {list(named)}: with {list(roles)} trained, "
                f"opponents must play {sorted(set(named) - set(roles))}, got {sorted(opponents)}"
            )
        reply = _SMALLEST_REPLY if max_turn_tokens is None else max_turn_tokens
        if reply < 1 or (max_trajectory_tokens is not None and max_trajectory_tokens <= reply):
            raise OptionError(
                f"a reply must fit in the budgets, got max_trajectory_tokens="
                f"{max_trajectory_tokens} and max_turn_tokens={max_turn_tokens}"
            )
        self.world = world
        self.task = task
        self.codec = codec_for(as_codec(codec), world.declared_tools)
        self.roles = tuple(roles)
        self.reply_timeout = reply_timeout
        self._openings = openings
        self.abandoned = False
        self.rollout_limits = RolloutLimits(
            max_trajectory_tokens=max_trajectory_tokens, max_turn_tokens=max_turn_tokens
        )
        self._max_observation = (
            None if max_trajectory_tokens is None else max_trajectory_tokens - reply
        )
        self._opponents = {role: policy_of(opponent) for role, opponent in opponents.items()}
        self._one_role = len(named) == 1
        self._episode: Episode | None = None
        self._joined: set[str] = set()
        self._left: set[str] = set()
        self._tracked: set[tuple[str, asyncio.Task[Any]]] = set()
        self._pending_reply: asyncio.Task[None] | None = None
        self._error: Exception | None = None
        self._changed = asyncio.Event()
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

    @property
    def exchanges(self) -> Sequence[TurnExchange]:
        """The replies of all roles so far, in order."""
        return () if self._episode is None else self._episode.exchanges

    async def join(self, role: str) -> None:
        """Open the episode if it is not open, and wait for the role's first turn or the end.

        Raises:
            EpisodeStateError: if the role has joined before.
        """
        if role in self._joined:
            raise EpisodeStateError("a member plays one episode; make another one")
        self._joined.add(role)
        self._track(role)
        if self._episode is None:
            self._episode = Episode(
                self.world,
                self.task,
                self.codec,
                roles=self.roles,
                opponents=self._opponents,
                token_budget=self._max_observation,
                openings=self._openings,
            )
            self._advance(self._episode)
        elif self._episode.role == role:
            self._notify(self._episode)  # the time to reply begins now
        await self._wait_for_turn(role)

    async def play(
        self, role: str, tokens: list[int], stop_reason: str | None
    ) -> tuple[DecodedReply, Turn] | None:
        """Play a reply, and wait for the role's next turn or the end.

        Args:
            role: the role that replies.
            tokens: as sampled; the list is kept.
            stop_reason: why sampling stopped, if known.

        Returns:
            the reply as it was read and the world's answer; `None` if the others had already
            continued without it.

        Raises:
            EpisodeStateError: before `join`.
            RoleError: if it is another role's turn.
        """
        episode = self.episode
        turn = episode.turn
        if turn.done:
            return None
        if turn.role != role:
            raise RoleError(f"it is the turn of {turn.role!r}, not of {role!r}")
        episode.play(tokens, stop_reason)
        exchange = episode.reply, episode.answer
        if not self._one_role:
            self._track(role)
            self._advance(episode)
            await self._wait_for_turn(role)
        return exchange

    def collect(self, role: str) -> tuple[float, dict[str, float]]:
        """Return a role's reward since the last call: its sum, and each part as `term/NAME`."""
        reward, terms = self.episode.collect(role)
        return reward, {f"term/{name}": value for name, value in terms.items()}

    def _advance(self, episode: Episode) -> None:
        """Let opponents reply until one must be awaited or a member is next; wake the members."""
        try:
            pending = episode.advance()
        except Exception as error:  # raised in every member, see _wait_for_turn
            self._error = error
        else:
            if pending is not None:
                # A task of its own: the member whose reply led here may be cancelled.
                self._pending_reply = asyncio.ensure_future(self._await_reply(episode, pending))
        self._notify(episode)

    async def _await_reply(self, episode: Episode, reply: Awaitable[str | DecodedReply]) -> None:
        try:
            episode.receive(await reply)
        except Exception as error:  # raised in every member, see _wait_for_turn
            self._error = error
            self._notify(episode)
        else:
            self._advance(episode)

    def _notify(self, episode: Episode) -> None:
        """Wake all members: the turn has passed, or a role has joined or left."""
        if not episode.done and episode.role in self._left:
            self._abandon(episode)
        if not self._one_role:
            absent = not episode.done and episode.role not in {*self._joined, *self._opponents}
            seconds = min(JOIN_TIMEOUT, self.reply_timeout) if absent else self.reply_timeout
            self._deadline = asyncio.get_running_loop().time() + seconds
        self._changed.set()
        self._changed = asyncio.Event()

    async def _wait_for_turn(self, role: str) -> None:
        """Wait until `role` is to reply or the episode is over."""
        episode = self.episode
        while self._error is None and not episode.done and episode.role != role:
            changed = self._changed
            try:
                async with asyncio.timeout_at(self._deadline):
                    await changed.wait()
            except TimeoutError:
                if changed is self._changed:
                    self._abandon(episode)
                    self._notify(episode)
        if self._error is not None:
            raise self._error

    def _abandon(self, episode: Episode) -> None:
        if self._pending_reply is not None:
            self._pending_reply.cancel()
        self.abandoned = True
        episode.stop(StopReason.ABANDONED)

    def _track(self, role: str) -> None:
        """Track the end of the asyncio task that plays a role, if other members may wait for it."""
        task = asyncio.current_task() if len(self.roles) > 1 else None
        if task is not None and (role, task) not in self._tracked:
            self._tracked.add((role, task))
            task.add_done_callback(partial(self._task_done, role))

    def _task_done(self, role: str, task: "asyncio.Task[Any]") -> None:
        """Count a role as gone, unless the task was only one call of a member played by hand."""
        failed = task.cancelled() or task.exception() is not None
        if failed or isinstance(task.result(), Trajectory):
            self._left.add(role)
            episode = self._episode
            if episode is not None and not episode.done and episode.role == role:
                self._notify(episode)


def policy_of(opponent: Opponent) -> OpponentPolicy:
    """Return who plays one episode."""
    return opponent.start_episode() if isinstance(opponent, StatefulOpponent) else opponent
