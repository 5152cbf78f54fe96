"""A Transcript: what one role has read and written, as texts and as tokens."""

from collections.abc import Sequence
from typing import Self

import numpy as np

from tokengym.envs.tokens.codec import Message, TokenArray

_FIRST_CAPACITY = 1024


class Transcript:
    """One role's side of an episode. Grows in place; arrays handed out keep what they showed.

    Tokens live in a list, which is the cheapest thing to append to. The array is brought up to date
    only when somebody asks for it.

    Attributes:
        tokens: all tokens so far; treat as read-only.
        conversation: texts read and replies written, in order; treat as read-only.
        last_action: the last reply as sampled, `None` before the first.
    """

    def __init__(self) -> None:
        self.tokens: list[int] = []
        self.conversation: list[Message] = []
        self.last_action: list[int] | None = None
        self._buffer: TokenArray = np.empty(0, dtype=np.int64)
        self._copied = 0

    def view(self) -> TokenArray:
        """All tokens so far: 1-d `int64`, read-only, no copy of what an earlier view showed."""
        length = len(self.tokens)
        if length > len(self._buffer):
            grown = np.empty(max(_FIRST_CAPACITY, 2 * length), dtype=np.int64)
            grown[: self._copied] = self._buffer[: self._copied]
            self._buffer = grown
        if length > self._copied:
            self._buffer[self._copied : length] = self.tokens[self._copied :]
            self._copied = length
        view = self._buffer[:length]
        view.flags.writeable = False
        return view

    def read(self, text: str, tokens: Sequence[int]) -> None:
        """Add a text the role reads, as `tokens`."""
        self.conversation.append(Message(text, False))
        self.tokens += tokens

    def write(self, text: str, action: list[int]) -> None:
        """Add a reply of the role, as sampled."""
        self.conversation.append(Message(text, True))
        self.tokens += action
        self.last_action = action

    def clear(self) -> None:
        """Forget the tokens, in favour of a new rendering; the conversation stays."""
        self.tokens = []
        self._buffer = np.empty(0, dtype=np.int64)
        self._copied = 0

    def fork(self) -> Self:
        """Return an independent twin."""
        twin = type(self)()
        twin.tokens = self.tokens.copy()
        twin.conversation = self.conversation.copy()
        twin.last_action = self.last_action
        return twin
