"""An Episode: a world's conversation in tokens, append-only wherever the chat format allows it."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tokengym.envs.core.episode import OpponentPolicy, TextEpisode
from tokengym.envs.core.errors import RoleError, TokenError
from tokengym.envs.core.task import Task
from tokengym.envs.core.turn import StopReason, Turn
from tokengym.envs.core.world import World
from tokengym.envs.tokens.codec import Codec, Message, TokenArray, codec_for, resolve
from tokengym.envs.tokens.transcript import Transcript


class Episode(TextEpisode):
    """One episode of `world` on `task`, seen through `codec`.

    The observation of a role is exactly its previous observation, then its action as sampled, then
    the new tokens. Where `append_only` is `False` the chat format forbids that, and every
    observation is rendered from the whole conversation.

    Args:
        world: a world that nothing else uses; the episode drives it.
        task: what to play.
        codec: a codec or the name of a built-in one.
        roles: who reads and writes tokens; by default all roles that have no opponent. The others
            answer in text, and nothing is encoded for them.
        opponents: who plays other roles when `advance` is called.
        token_budget: budget of one role's transcript; an observation that would exceed it is not
            shown, the episode ends, and what is left is played as empty replies.
        openings: tokens of first texts, by text: episodes of one Task that share it encode and keep
            them once.

    Raises:
        TaskError: if the Task is not the world's.
        OptionError: if the codec is unknown or the budget is not positive.
        RoleError: if the world has no such role.
    """

    def __init__(
        self,
        world: World,
        task: Task,
        codec: Codec | str = "byte",
        *,
        roles: Sequence[str] | None = None,
        opponents: Mapping[str, OpponentPolicy] | None = None,
        token_budget: int | None = None,
        openings: dict[str, list[int]] | None = None,
    ) -> None:
        self.codec = codec_for(resolve(codec), world.declared_tools)
        self._openings = {} if openings is None else openings
        super().__init__(world, task, roles=roles, opponents=opponents, token_budget=token_budget)

    def __repr__(self) -> str:
        """Show the Task, the tokens by role, and whose turn it is or why it ended."""
        tokens = {role: transcript.length for role, transcript in self._transcripts.items()}
        return f"<Episode of {self.task}: tokens {tokens}, {self._status()}>"

    @property
    def append_only(self) -> bool:
        """Whether each observation extends the previous one token for token."""
        return self.codec.append_only

    @property
    def observation(self) -> TokenArray:
        """The conversation so far of the role whose turn it is: 1-d `int64`, read-only."""
        return self.observation_of(self.turn.role)

    def observation_of(self, role: str) -> TokenArray:
        """Return the tokens that `role` has read and written so far.

        Raises:
            RoleError: if no role of that name reads tokens here.
        """
        return self._transcript(role).view()

    def tokens_of(self, role: str, start: int = 0) -> list[int]:
        """Return the tokens of `role` from position `start` on, as a new list.

        Raises:
            RoleError: if no role of that name reads tokens here.
        """
        return self._transcript(role).tokens(start)

    def pieces_of(self, role: str) -> Sequence[list[int]]:
        """Return the tokens of `role` so far in pieces, one for each of its observations.

        An observation is a new piece after the last one's, or, where `append_only` is `False`, one
        piece instead of all. Treat them as read-only: they are the episode's own.

        Raises:
            RoleError: if no role of that name reads tokens here.
        """
        return self._transcript(role).pieces

    def act(self, tokens: Sequence[int] | npt.NDArray[Any], stop_reason: str | None = None) -> Turn:
        """Play the tokens of the role whose turn it is.

        Args:
            tokens: one-dimensional integers in `[0, codec.vocab_size)`, any number of them.
            stop_reason: why sampling stopped: `stop`, `length` (the reply then is malformed), or
                `None` if not known.

        Returns:
            the Turn that answers it.

        Raises:
            TokenError: if `tokens` is no such array.
            EpisodeStateError: after the end.
            RoleError: if the role to speak does so in text.
        """
        return self.play(self._checked(tokens), stop_reason)

    def play(self, sampled: list[int], stop_reason: str | None = None) -> Turn:
        """Play a list of token ids as a sampler returned it: `act` without its checks.

        The list is kept; do not change it afterwards.

        Raises:
            EpisodeStateError: after the end.
            RoleError: if the role to speak does so in text.
        """
        self._require_running()
        transcript = self._transcript(self.turn.role)
        reply = self.codec.read(sampled, stop_reason)
        transcript.write(reply.text, sampled)
        return self._answer(reply.text, reply.complete)

    def say(self, text: str, *, complete: bool = True) -> Turn:
        """Play a reply in text: as its canonical tokens, where the role reads tokens."""
        if self.turn.role in self._transcripts:
            return self.play(list(self.codec.write(text)), "stop" if complete else "length")
        return super().say(text, complete=complete)

    def _begin(self, roles: Sequence[str]) -> None:
        self._transcripts = {role: Transcript() for role in roles}

    def _fork_read(self) -> None:
        self._transcripts = {role: part.fork() for role, part in self._transcripts.items()}

    def _show(self, turn: Turn, wrote: str, reply: str) -> Turn:
        """Append the Turn's text to the conversation of its role, or stop where it does not fit.

        The transcript of who replied has the reply already, as sampled.
        """
        transcript = self._transcripts.get(turn.role)
        if transcript is None or turn.done:
            return turn
        action = transcript.last_action if self.codec.append_only else None
        new: Sequence[int]
        if action is not None:
            new = self.codec.extend(action, turn.text)
            length = transcript.length
        else:
            new = self._render([*transcript.conversation, Message(turn.text, own=False)])
            length = 0
        if self.token_budget is not None and length + len(new) > self.token_budget:
            self.overflow = length + len(new)
            return self.world.stop(StopReason.TOKEN_BUDGET, after=turn)
        if action is None:
            transcript.clear()
        transcript.read(turn.text, new)
        return turn

    def _render(self, conversation: Sequence[Message]) -> Sequence[int]:
        if len(conversation) > 1:
            return self.codec.render(conversation)
        text = conversation[0].text
        if text not in self._openings:
            self._openings[text] = list(self.codec.render(conversation))
        return self._openings[text]

    def _transcript(self, role: str) -> Transcript:
        try:
            return self._transcripts[role]
        except KeyError:
            raise RoleError(
                f"tokens are read here by {list(self._transcripts)}, not by {role!r}"
            ) from None

    def _checked(self, tokens: Sequence[int] | npt.NDArray[Any]) -> list[int]:
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
        listed: list[int] = array.tolist()
        return listed
