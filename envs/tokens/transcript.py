"""A Transcript: what one role has read and written, as texts and as tokens."""

from collections.abc import Sequence
from typing import Self

import numpy as np

from tokengym.envs.tokens.codec import Message, TokenArray

_FIRST_CAPACITY = 1024


class Transcript:
    """One role's side of an episode. Grows in place; arrays handed out keep what they showed.

    Tokens are kept once, as the lists that codecs and samplers made: whoever needs them as chunks
    can take the pieces as they are. The array is brought up to date only when somebody asks for it.

    Attributes:
        pieces: the tokens so far in pieces, one for each observation; treat as read-only.
        length: number of tokens in them.
        conversation: texts read and replies written, in order; treat as read-only.
        last_action: the last reply as sampled, `None` before the first.
    """

    def __init__(self) -> None:
        self.pieces: list[list[int]] = []
        self.length = 0
        self.conversation: list[Message] = []
        self.last_action: list[int] | None = None
        self._buffer: TokenArray = np.empty(0, dtype=np.int64)
        self._copied = 0

    def tokens(self, start: int = 0) -> list[int]:
        """Return the tokens from position `start` on, as a new list."""
        start, _, _ = slice(start, None).indices(self.length)
        tokens: list[int] = []
        for piece in self.pieces:
            if start < len(piece):
                tokens += piece[start:]
            start = max(0, start - len(piece))
        return tokens

    def view(self) -> TokenArray:
        """All tokens so far: 1-d `int64`, read-only, no copy of what an earlier view showed."""
        length = self.length
        if length > len(self._buffer):
            grown = np.empty(max(_FIRST_CAPACITY, 2 * length), dtype=np.int64)
            grown[: self._copied] = self._buffer[: self._copied]
            self._buffer = grown
        if length > self._copied:
            self._buffer[self._copied : length] = self.tokens(self._copied)
            self._copied = length
        view = self._buffer[:length]
        view.flags.writeable = False
        return view

    def read(self, text: str, tokens: Sequence[int]) -> None:
        """Add a text the role reads, as `tokens`; a list is kept, do not change it afterwards."""
        self.conversation.append(Message(text, False))
        self.length += len(tokens)
        piece = tokens if isinstance(tokens, list) else list(tokens)
        action = self.last_action
        if action is not None and self.pieces and self.pieces[-1] is action:
            # A sum has no spare room, as a list that was appended to has.
            self.pieces[-1] = action + piece
        else:
            self.pieces.append(piece)

    def write(self, text: str, action: list[int]) -> None:
        """Add a reply of the role, as sampled; the list is kept, do not change it afterwards."""
        self.conversation.append(Message(text, True))
        self.length += len(action)
        self.pieces.append(action)
        self.last_action = action

    def clear(self) -> None:
        """Forget the tokens, in favour of a new rendering; the conversation stays."""
        self.pieces = []
        self.length = 0
        self._buffer = np.empty(0, dtype=np.int64)
        self._copied = 0

    def fork(self) -> Self:
        """Return an independent twin."""
        twin = type(self)()
        twin.pieces = self.pieces.copy()
        twin.length = self.length
        twin.conversation = self.conversation.copy()
        twin.last_action = self.last_action
        return twin
