"""Plain tokenizing: text to tokens without reading special tokens in it, and back.

The bridge does this every turn, so it bypasses the tokenizers' Python layers.
"""

import re
from collections.abc import Sequence
from typing import Any, Protocol

_MARKUP = re.compile(r"<\S+>|\[\S+\]")
"""Added tokens that chat formats use and tokenizers do not call special."""


class PlainTokenizer(Protocol):
    """A tokenizer seen as an exact map of text to tokens.

    Attributes:
        vocab_size: token ids are in `[0, vocab_size)`.
        special_tokens: spellings of the special tokens.
        markup: the same, and of all other tokens that stand for markup, such as `<tool_call>`: no
            text that is read may contain one of them.
    """

    vocab_size: int
    special_tokens: frozenset[str]
    markup: frozenset[str]

    def encode(self, text: str) -> list[int]:
        """Tokens of `text`, in a new list; no part of the text becomes a special token."""
        ...

    def decode(self, tokens: Sequence[int]) -> str:
        """Text of `tokens`, with special tokens spelled out and unknown ids left out."""
        ...


def plain_tokenizer(tokenizer: Any) -> PlainTokenizer:
    """Return the plain view of a tokenizer as the cookbook's `get_tokenizer` returns them."""
    if hasattr(tokenizer, "tml_tokenizer"):
        return _TmlTokenizer(tokenizer.tml_tokenizer)
    if hasattr(tokenizer, "backend_tokenizer"):
        return FastTokenizer(tokenizer.backend_tokenizer)
    return _TransformersTokenizer(tokenizer)


class _TmlTokenizer:
    """A tokenizer of tml-renderers."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        ids = [tokenizer.encode_special(name) for name in tokenizer.special_tokens()]
        self.special_tokens = self.markup = frozenset(str(tokenizer.decode([i])) for i in ids)
        # It has no attribute for its size, but its ids leave no gaps.
        valid, invalid = max(ids), 2 * max(ids) + 1_000_000
        while invalid - valid > 1:
            middle = (valid + invalid) // 2
            if self._decodes(middle):
                valid = middle
            else:
                invalid = middle
        self.vocab_size = invalid

    def encode(self, text: str) -> list[int]:
        return list(self._tokenizer.encode_ordinary(text))

    def decode(self, tokens: Sequence[int]) -> str:
        try:
            return str(self._tokenizer.decode(tokens))
        except (OverflowError, ValueError):
            return str(self._tokenizer.decode(_known_ids(tokens, self.vocab_size)))

    def _decodes(self, token: int) -> bool:
        try:
            self._tokenizer.decode_bytes([token])
        except ValueError:
            return False
        return True


class _TransformersTokenizer:
    """Any other tokenizer with the methods of transformers' base class."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        added = (str(entry) for entry in getattr(tokenizer, "added_tokens_encoder", ()))
        self.special_tokens = frozenset(map(str, tokenizer.all_special_tokens))
        self.markup = self.special_tokens.union(filter(_MARKUP.fullmatch, added))
        self.vocab_size = len(tokenizer)

    def encode(self, text: str) -> list[int]:
        tokenizer = self._tokenizer
        return list(tokenizer.encode(text, add_special_tokens=False, split_special_tokens=True))

    def decode(self, tokens: Sequence[int]) -> str:
        return str(self._tokenizer.decode(_known_ids(tokens, self.vocab_size)))


class FastTokenizer:
    """A tokenizer of the `tokenizers` library.

    Args:
        backend: the library's object.

    Attributes:
        vocab_size: token ids are in `[0, vocab_size)`.
        special_tokens: spellings of the special tokens.
        markup: spellings of tokens that no text may contain; see `PlainTokenizer`.
    """

    def __init__(self, backend: Any) -> None:
        # A copy, because transformers sets these options again on every call.
        self._backend = type(backend).from_str(backend.to_str())
        self._backend.no_truncation()
        self._backend.no_padding()
        self._backend.encode_special_tokens = True
        added = self._backend.get_added_tokens_decoder().values()
        self.special_tokens = frozenset(str(entry.content) for entry in added if entry.special)
        others = (str(entry.content) for entry in added)
        self.markup = self.special_tokens.union(filter(_MARKUP.fullmatch, others))
        self.vocab_size = max(self._backend.get_vocab(with_added_tokens=True).values()) + 1

    def encode(self, text: str) -> list[int]:
        """Tokens of `text`; see `PlainTokenizer.encode`."""
        tokens: list[int] = self._backend.encode(text, add_special_tokens=False).ids
        return tokens

    def decode(self, tokens: Sequence[int]) -> str:
        """Text of `tokens`; see `PlainTokenizer.decode`."""
        try:
            text: str = self._backend.decode(tokens, skip_special_tokens=False)
        except OverflowError:
            return self.decode(_known_ids(tokens, self.vocab_size))
        return text


def _known_ids(tokens: Sequence[int], vocab_size: int) -> list[int]:
    return [token for token in tokens if 0 <= token < vocab_size]
