"""Plain tokenizing, fast: text to tokens without reading special tokens in it, and back.

The bridge does this every turn, so it bypasses the tokenizers' Python layers. A byte-level
tokenizer spends most of a short text's time on splitting it into words; plain ASCII is split here,
and the tokens of its words are cached.
"""

import json
import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import Any, Protocol

_MOST_WORDS = 65_536
_LONGEST_WORD = 64
_BYTE_LEVEL = r"'(?:[stmd]|re|ve|ll)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
"""How a `ByteLevel` step with `use_regex` splits words."""
_ASCII = "\n" + "".join(map(chr, range(32, 127)))
_TRIALS = (
    "Hour 3: demand 41 MW, price 0.32; set both outputs.\n\nIt's 12:30, don't  wait...  \n",
    "  two  blanks\n\n\n(a+b)*c = 17.50% -- [x] {y} $1,024.00 'quoted' \"text\" we'll   see \n ",
    "ALLCAPS mixedCase snake_case 0123456789 a1b2 http://x.y/z?q=1&r=2#s ~`!@#$%^&*()_+|\\",
)


class PlainTokenizer(Protocol):
    """A tokenizer seen as an exact map of text to tokens.

    Attributes:
        vocab_size: token ids are in `[0, vocab_size)`.
        special_tokens: spellings of the special tokens.
    """

    vocab_size: int
    special_tokens: frozenset[str]

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
        self.special_tokens = frozenset(str(tokenizer.decode([i])) for i in ids)
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
        self.special_tokens = frozenset(map(str, tokenizer.all_special_tokens))
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
        splits: patterns that split plain ASCII into words, step by step; empty if the tokenizer's
            own steps are unknown, and whole texts are left to the backend.
    """

    def __init__(self, backend: Any) -> None:
        # A copy, because transformers sets these options again on every call.
        self._backend = type(backend).from_str(backend.to_str())
        self._backend.no_truncation()
        self._backend.no_padding()
        self._backend.encode_special_tokens = True
        added = self._backend.get_added_tokens_decoder().values()
        self.special_tokens = frozenset(str(entry.content) for entry in added if entry.special)
        self.vocab_size = max(self._backend.get_vocab(with_added_tokens=True).values()) + 1
        # Splitting into words is right only for texts in which no added token can begin.
        openings = {entry.content[0] for entry in added}
        allowed = [c for c in _ASCII if c not in openings]
        self._simple = re.compile(f"[{re.escape(''.join(allowed))}]*")
        self._words = _WordTokens(self._encode_whole)
        description = json.loads(self._backend.to_str())
        # Decoding then concatenates the bytes of the tokens.
        byte_level = (description["decoder"] or {}).get("type") == "ByteLevel"
        self._token_bytes = _TokenBytes(self._backend) if byte_level else None
        self.splits = _word_splits(description)
        if any(self._encode_words(text) != self._encode_whole(text) for text in _TRIALS):
            self.splits = []

    def encode(self, text: str) -> list[int]:
        """Tokens of `text`; see `PlainTokenizer.encode`."""
        if self.splits and self._simple.fullmatch(text):
            return self._encode_words(text)
        return self._encode_whole(text)

    def decode(self, tokens: Sequence[int]) -> str:
        """Text of `tokens`; see `PlainTokenizer.decode`."""
        if self._token_bytes is not None:
            return b"".join(map(self._token_bytes.__getitem__, tokens)).decode("utf-8", "replace")
        try:
            text: str = self._backend.decode(tokens, skip_special_tokens=False)
        except OverflowError:
            return self.decode(_known_ids(tokens, self.vocab_size))
        return text

    def _encode_whole(self, text: str) -> list[int]:
        tokens: list[int] = self._backend.encode(text, add_special_tokens=False).ids
        return tokens

    def _encode_words(self, text: str) -> list[int]:
        words = [text]
        for split in self.splits:
            words = [piece for word in words for piece in split.split(word) if piece]
        tokens_of = self._words
        return [token for word in words for token in tokens_of[word]]


class _WordTokens(dict[str, list[int]]):
    """A cache of the tokens of words."""

    def __init__(self, encode: Callable[[str], list[int]]) -> None:
        super().__init__()
        self._encode = encode

    def __missing__(self, word: str) -> list[int]:
        tokens = self._encode(word)
        if len(self) >= _MOST_WORDS:
            self.clear()
        if len(word) <= _LONGEST_WORD:
            self[word] = tokens
        return tokens


class _TokenBytes(dict[int, bytes]):
    """The bytes of each token of a byte-level tokenizer; empty for unknown ids."""

    def __init__(self, backend: Any) -> None:
        super().__init__()
        self._backend = backend
        # Byte-level vocabularies write bytes that are no printable Latin-1 as U+0100 and on.
        printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
        others = [byte for byte in range(256) if byte not in printable]
        self._bytes = {chr(byte): byte for byte in printable}
        self._bytes |= {chr(256 + place): byte for place, byte in enumerate(others)}

    def __missing__(self, token: int) -> bytes:
        written: str | None = self._backend.id_to_token(token) if 0 <= token < 2**32 else None
        if written is None:
            return b""
        if all(character in self._bytes for character in written):
            self[token] = bytes(self._bytes[character] for character in written)
        else:  # an added token, spelled as it is
            self[token] = written.encode()
        return self[token]


def _known_ids(tokens: Sequence[int], vocab_size: int) -> list[int]:
    return [token for token in tokens if 0 <= token < vocab_size]


def _word_splits(description: dict[str, Any]) -> list[re.Pattern[str]]:
    """Return how a tokenizer splits plain ASCII into words; empty if that is unknown.

    Args:
        description: the tokenizer's JSON.
    """
    normalizer = description["normalizer"]
    # Unicode normal forms leave ASCII alone; any other normalizer may not.
    if normalizer is not None and normalizer["type"] not in ("NFC", "NFKC", "NFD", "NFKD"):
        return []
    first: dict[str, Any] = description["pre_tokenizer"] or {"type": "none"}
    splits = []
    for step in first.get("pretokenizers", [first]):
        source = _split_source(step)
        if source is None:
            return []
        try:
            # The one group keeps the matches among what lies between them.
            split = re.compile(f"({_among_ascii(source)})", re.ASCII)
        except re.error:
            return []
        if split.groups > 1:
            return []
        if source:
            splits.append(split)
    return splits


def _split_source(step: dict[str, Any]) -> str | None:
    """Return the pattern a pre-tokenizing step splits at: empty if none, `None` if unknown."""
    match step:
        case {"type": "ByteLevel", "add_prefix_space": False}:
            return _BYTE_LEVEL if step["use_regex"] else ""
        case {"type": "Digits"}:
            return "[0-9]" if step["individual_digits"] else "[0-9]+"
        case {"type": "Split", "behavior": "Isolated", "invert": False}:
            pattern: dict[str, str] = step["pattern"]
            return pattern["Regex"] if "Regex" in pattern else re.escape(pattern["String"])
    return None


def _among_ascii(source: str) -> str:
    r"""Rewrite a pattern's Unicode classes such as `\p{L}` for a text of plain ASCII."""
    rewritten = []
    inside = False
    for part in re.findall(r"\\p\{\w+\}|\\.|.", source, re.DOTALL):
        if part.startswith("\\p{"):
            members = [c for c in _ASCII if unicodedata.category(c).startswith(part[3:-1])]
            listed = re.escape("".join(members))
            rewritten.append(listed if inside else f"[{listed}]" if listed else "(?!)")
            continue
        inside = part == "[" or (inside and part != "]")
        rewritten.append(part)
    return "".join(rewritten)
