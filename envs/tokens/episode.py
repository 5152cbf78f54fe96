"""An Episode: a world's conversation in tokens, append-only wherever the chat format allows it."""

import copy
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from tokengym.envs.core.errors import EpisodeStateError, OptionError, RoleError, TokenError
from tokengym.envs.core.task import Task
from tokengym.envs.core.turn import StopReason, Turn
from tokengym.envs.core.world import World
from tokengym.envs.tokens.codec import Codec, Message, TokenArray, resolve

_FIRST_CAPACITY = 1024


class _Transcript:
    """Tokens one role has read and written. Grows in place; views handed out stay valid."""

    def __init__(self) -> None:
        self._buffer: TokenArray = np.empty(_FIRST_CAPACITY, dtype=np.int64)
        self.length = 0
        self.conversation: list[Message] = []
        self.last_action: list[int] | None = None

    def view(self) -> TokenArray:
        """All tokens so far, read-only, without a copy."""
        view = self._buffer[: self.length]
        view.flags.writeable = False
        return view

    def append(self, tokens: Sequence[int] | TokenArray) -> None:
        """Add tokens at the end."""
        end = self.length + len(tokens)
        if end > len(self._buffer):
            grown = np.empty(max(end, 2 * len(self._buffer)), dtype=np.int64)
            grown[: self.length] = self._buffer[: self.length]
            self._buffer = grown
        self._buffer[self.length : end] = tokens
        self.length = end

    def replace(self, tokens: Sequence[int]) -> None:
        """Start again with `tokens` in a new buffer, so that older views keep what they showed."""
        self._buffer = np.empty(max(_FIRST_CAPACITY, 2 * len(tokens)), dtype=np.int64)
        self.length = 0
        self.append(tokens)


class Episode:
    """One episode of `world` on `task`, seen through `codec`.

    The observation of a role is exactly its previous observation, then its action as sampled, then
    the new tokens. Where `append_only` is `False` the chat format forbids that, and every
    observation is rendered anew from the conversation.

    Args:
        world: a world of its own; the episode drives it.
        task: what to play.
        codec: a codec or the name of a built-in one.
        max_tokens: budget of one role's transcript; an observation that would exceed it is not
            shown, the episode ends, and what is left is played as empty replies.

    Raises:
        TaskError: if the Task is not the world's.
        OptionError: if the codec is unknown or the budget is not positive.
    """

    def __init__(
        self,
        world: World,
        task: Task,
        codec: Codec | str = "byte",
        *,
        max_tokens: int | None = None,
    ) -> None:
        if max_tokens is not None and max_tokens < 1:
            raise OptionError(f"max_tokens must be at least 1, got {max_tokens}")
        self.world = world
        self.task = task
        self.codec = resolve(codec)
        self.max_tokens = max_tokens
        self._transcripts = {role: _Transcript() for role in world.spec.roles}
        self.turn = world.start(task)
        self._show()

    @property
    def append_only(self) -> bool:
        """Whether each observation extends the one before it token for token."""
        return self.codec.append_only

    @property
    def role(self) -> str:
        """Who is to speak."""
        return self.turn.role

    @property
    def done(self) -> bool:
        """Whether the episode is over."""
        return self.turn.done

    @property
    def observation(self) -> TokenArray:
        """What the role to speak has read and written so far: 1-d `int64`, read-only."""
        return self._transcripts[self.turn.role].view()

    def observation_of(self, role: str) -> TokenArray:
        """What `role` has read and written so far.

        Raises:
            RoleError: if the world has no such role.
        """
        if role not in self._transcripts:
            raise RoleError(f"roles are {list(self._transcripts)}, got {role!r}")
        return self._transcripts[role].view()

    def conversation_of(self, role: str) -> tuple[Message, ...]:
        """The texts and replies `role` has seen, in order."""
        return tuple(self._transcripts[role].conversation)

    def act(self, tokens: Sequence[int] | npt.NDArray[Any], stop_reason: str | None = None) -> Turn:
        """Play the sampled tokens of the role to speak.

        Args:
            tokens: one-dimensional integers in `[0, codec.vocab_size)`, any number of them.
            stop_reason: why sampling stopped: `stop`, `length` (the reply then is malformed), or
                `None` if not known.

        Returns:
            the Turn that answers it.

        Raises:
            TokenError: if `tokens` is no such array.
            EpisodeStateError: after the end.
        """
        if self.turn.done:
            raise EpisodeStateError(f"{self.world.spec.id}: the episode is over; start a new one")
        action = self._checked(tokens)
        listed: list[int] = action.tolist()
        reply = self.codec.read(listed, stop_reason)
        transcript = self._transcripts[self.turn.role]
        transcript.append(action)
        transcript.last_action = listed
        transcript.conversation.append(Message(reply.text, own=True))
        self.turn = self.world.reply(reply.text, complete=reply.complete)
        if not self.turn.done:
            self._show()
        return self.turn

    def fork(self) -> Self:
        """Return an independent twin in the same state."""
        twin = copy.copy(self)
        twin.world = self.world.fork()
        twin._transcripts = copy.deepcopy(self._transcripts)
        return twin

    def _show(self) -> None:
        """Put the Turn's text before the role that is to speak, or stop where it does not fit."""
        transcript = self._transcripts[self.turn.role]
        message = Message(self.turn.text, own=False)
        new: Sequence[int]
        if transcript.last_action is not None and self.codec.append_only:
            kept = transcript.length
            new = self.codec.extend(transcript.last_action, self.turn.text)
        else:
            kept = 0
            new = self.codec.render([*transcript.conversation, message])
        if self.max_tokens is not None and kept + len(new) > self.max_tokens:
            self.turn = self.world.stop(StopReason.TOKEN_BUDGET, after=self.turn)
            return
        transcript.conversation.append(message)
        if kept:
            transcript.append(new)
        else:
            transcript.replace(new)

    def _checked(self, tokens: Sequence[int] | npt.NDArray[Any]) -> TokenArray:
        array = np.asarray(tokens)
        if array.size == 0:
            array = array.astype(np.int64)
        if array.ndim != 1 or array.dtype.kind not in "iu":
            raise TokenError(
                f"an action is a one-dimensional integer array, got shape {array.shape} "
                f"and dtype {array.dtype}"
            )
        if array.size and (array.min() < 0 or array.max() >= self.codec.vocab_size):
            raise TokenError(
                f"token ids must be in [0, {self.codec.vocab_size}), got "
                f"{array.min()} to {array.max()}"
            )
        return array.astype(np.int64)
