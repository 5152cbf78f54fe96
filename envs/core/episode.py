"""An episode: the one state machine over a World that scripts, people and samplers drive.

It shows Turns to the roles that are played, bounds what they read, lets opponents reply by
themselves, each from a stream of its own, and keeps what every reply earned.
"""

import copy
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np

from tokengym.envs.core.errors import EpisodeStateError, OptionError, RoleError
from tokengym.envs.core.seeding import generator
from tokengym.envs.core.task import Task
from tokengym.envs.core.turn import NOTHING, StopReason, Turn, sum_rewards
from tokengym.envs.core.world import World


class DecodedReply(NamedTuple):
    """A reply, read.

    Attributes:
        text: the reply without its end marker.
        complete: whether the reply ended by itself rather than by running out of tokens.
    """

    text: str
    complete: bool


_Played: TypeAlias = tuple[Turn, str | None, bool, Turn, Turn]
"""The fields of a `TurnExchange`, its reply as two: an object a step is made when it is read."""

OpponentPolicy: TypeAlias = Callable[
    [World, Turn, np.random.Generator], str | DecodedReply | Awaitable[str | DecodedReply]
]
"""Answers a Turn: a baseline of the world, or anything awaitable. A reply may be cut off."""


class TurnExchange(NamedTuple):
    """One reply of any role.

    Attributes:
        asked: the Turn that was answered.
        reply: the reply; `None` where the episode was cut short instead.
        answer: the world's answer to the reply.
        paid: the Turn that pays for it: the answer, or where a budget ended the episode right after
            it, the last Turn, which also pays for the rest played as empty replies.
    """

    asked: Turn
    reply: DecodedReply | None
    answer: Turn
    paid: Turn


def role_stream(task: Task, role: str, *key: object) -> np.random.Generator:
    """Return the randomness of whoever plays a role of a Task.

    It depends on nothing else, so that nobody's draws change with who plays another role. Opponents
    have no key: all rollouts of a Task meet the same ones.

    Args:
        task: what is played.
        role: the role.
        *key: what else tells rollouts of one player apart, such as a seed and a number.
    """
    return generator(task.fingerprint, role, *key)


class TextEpisode:
    """One episode of `world` on `task` in text.

    Args:
        world: a world that nothing else uses; the episode drives it.
        task: what to play.
        roles: the roles that read here; by default all that have no opponent.
        opponents: who plays other roles when `advance` is called.
        token_budget: what one role may read and write at most, in characters. A text that would
            exceed it is not shown: the episode ends, and what is left is played as empty replies.
            Only the role's last reply may itself be longer.

    Attributes:
        turn: the Turn that is to be answered, or the last one.
        turns: all of them so far; one that did not fit is the last one instead.
        overflow: length of the observation that did not fit the budget; 0 if all did.

    Raises:
        TaskError: if the Task is not the world's.
        OptionError: if the budget is not positive.
        RoleError: if the world has no such role.
    """

    def __init__(
        self,
        world: World,
        task: Task,
        *,
        roles: Sequence[str] | None = None,
        opponents: Mapping[str, OpponentPolicy] | None = None,
        token_budget: int | None = None,
    ) -> None:
        if token_budget is not None and token_budget < 1:
            raise OptionError(f"token_budget must be at least 1, got {token_budget}")
        named, self._opponents = world.spec.roles, opponents or {}
        if roles is None and not opponents:
            roles = named
        else:
            roles = [r for r in named if r not in self._opponents] if roles is None else roles
            if unknown := [role for role in (*roles, *self._opponents) if role not in named]:
                raise RoleError(f"{world.spec.id} has the roles {list(named)}, got {unknown}")
        self.world = world
        self.task = task
        self.token_budget = token_budget
        self.overflow = 0
        self._played: list[_Played] = []
        self._rngs = (
            {role: role_stream(task, role) for role in self._opponents} if opponents else {}
        )
        self._begin(roles)
        opening = world.start(task)
        self.turn = self._show(opening, "", "")
        self.turns = [self.turn]
        self._collected = dict.fromkeys(roles, 0 if self.turn.rewards else 1)
        if self.turn.done:
            self._played.append((opening, None, False, self.turn, self.turn))

    def __repr__(self) -> str:
        """Show the Task, and whose turn it is or why it ended."""
        return f"<{type(self).__name__} of {self.task}: {self._status()}>"

    def _status(self) -> str:
        reason = self.turn.stop_reason
        return f"{self.turn.role} to reply" if reason is None else f"ended by {reason.value}"

    @property
    def role(self) -> str:
        """The role whose turn it is."""
        return self.turn.role

    @property
    def done(self) -> bool:
        """Whether the episode is over."""
        return self.turn.done

    @property
    def exchanges(self) -> list[TurnExchange]:
        """The replies of all roles so far, in order."""
        return [
            TurnExchange(asked, None if text is None else DecodedReply(text, whole), answer, paid)
            for asked, text, whole, answer, paid in self._played
        ]

    @property
    def reply(self) -> DecodedReply:
        """The last reply as it was read; empty before the first."""
        text, complete = self._played[-1][1:3] if self._played else (None, False)
        return DecodedReply(text or "", complete)

    @property
    def answer(self) -> Turn:
        """The Turn with which the world answered the last reply.

        It differs from `turn` only where the budget ended the episode: `turn` then also holds what
        the empty replies earned.
        """
        return self._played[-1][3] if self._played else self.turn

    def observation_of(self, role: str) -> Any:
        """Return the text that is new to `role`, empty if it is none or did not fit."""
        return self._shown[role]

    def say(self, text: str, *, complete: bool = True) -> Turn:
        """Play a reply of the role whose turn it is.

        Args:
            text: the reply.
            complete: `False` if it was cut off: then only lines that had ended count.

        Returns:
            the Turn that is to be answered next, or the last one.

        Raises:
            EpisodeStateError: after the end.
        """
        self._require_running()
        return self._answer(text, complete)

    def advance(self) -> Awaitable[str | DecodedReply] | None:
        """Let opponents reply until somebody else is next or the episode is over.

        Returns:
            the reply of an opponent that must be awaited, for `receive`; `None` if there is none.
        """
        while self.turn.role in self._opponents and not self.turn.done:
            role = self.turn.role
            reply = self._opponents[role](self.world, self.turn, self._rngs[role])
            if not isinstance(reply, str | DecodedReply):
                return reply
            self.receive(reply)
        return None

    def receive(self, reply: str | DecodedReply) -> Turn:
        """Play the reply of an opponent; see `say`."""
        said = (reply, True) if isinstance(reply, str) else reply
        return self.say(said[0], complete=said[1])

    async def advance_awaiting(self) -> None:
        """Let opponents reply as `advance` does, and await those that must be."""
        while (pending := self.advance()) is not None:
            self.receive(await pending)

    def stop(self, reason: StopReason) -> Turn:
        """End the episode from outside: the rest is played as empty replies and rewarded.

        Raises:
            EpisodeStateError: after the end.
        """
        self._require_running()
        asked, self.turn = self.turn, self.world.stop(reason)
        self.turns.append(self.turn)
        self._played.append((asked, None, False, self.turn, self.turn))
        return self.turn

    def collect(self, role: str) -> tuple[float, dict[str, float]]:
        """Return what a role that reads here earned since the last call, and its named parts."""
        count, start = len(self.turns), self._collected[role]
        self._collected[role] = count
        if start == count - 1:
            turn = self.turn
            return turn.rewards.get(role, 0.0), {**turn.terms.get(role, NOTHING)}
        rewards, terms = sum_rewards(self.turns[start:])
        return rewards.get(role, 0.0), terms.get(role, {})

    def fork(self) -> Self:
        """Return an independent twin in the same state."""
        twin = copy.copy(self)
        twin.world = self.world.fork()
        for name in ("turns", "_played", "_collected"):
            setattr(twin, name, getattr(self, name).copy())
        twin._rngs = copy.deepcopy(self._rngs)
        twin._fork_read()
        return twin

    def _answer(self, text: str, complete: bool) -> Turn:
        asked = self.turn
        answer = self.world.reply(text, complete=complete)
        self.turn = turn = self._show(answer, asked.role, text)
        self.turns.append(turn)
        self._played.append((asked, text, complete, answer, turn))
        return turn

    def _require_running(self) -> None:
        if self.turn.terminated or self.turn.truncated:
            raise EpisodeStateError(f"{self.world.spec.id}: the episode is over; start a new one")

    # Observations of a role and their bound: here in characters, in tokens in `tokens.Episode`.

    def _begin(self, roles: Sequence[str]) -> None:
        self._left = dict.fromkeys(roles, self.token_budget)
        self._shown = dict.fromkeys(roles, "")

    def _fork_read(self) -> None:
        """Take copies of what a twin shares with its original."""
        self._left, self._shown = self._left.copy(), self._shown.copy()

    def _show(self, turn: Turn, wrote: str, reply: str) -> Turn:
        """Show a Turn's text to its role, or stop where it does not fit.

        Args:
            turn: the Turn.
            wrote: the role whose reply it answers; empty for the opening.
            reply: that reply, which counts as read by who wrote it.
        """
        role, budgets = turn.role, self._left
        if wrote in budgets and (left := budgets[wrote]) is not None:
            budgets[wrote] = left - len(reply)
        if role not in budgets:
            return turn
        self._shown[role] = turn.text
        if (left := budgets[role]) is None:
            return turn
        left = budgets[role] = left - len(turn.text)
        if left >= 0:
            return turn
        self._shown[role] = ""
        if turn.done:
            return turn
        assert self.token_budget is not None
        self.overflow = self.token_budget - left
        return self.world.stop(StopReason.TOKEN_BUDGET, after=turn)
