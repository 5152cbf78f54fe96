"""Spaces of token arrays and of texts that contain exactly what an episode can produce.

`gymnasium.spaces.Text` refuses blanks, newlines and most of Unicode, and looks at every character;
these two spaces check a bound and, for tokens, the vocabulary.
"""

import multiprocessing
from collections.abc import Callable, Iterable, Iterator, Sequence
from ctypes import c_int64
from typing import Any, TypeVar

import numpy as np
from gymnasium import Space
from gymnasium.vector.utils import (
    create_shared_memory,
    read_from_shared_memory,
    write_to_shared_memory,
)

from tokengym.envs.core.errors import OptionError, TokenError
from tokengym.envs.tokens.codec import TokenArray

T = TypeVar("T")

_LONGEST_SAMPLE = 64
_SAMPLE_ALPHABET = "abcdefghijklmnopqrstuvwxyz 0123456789.:-\n"


class _Sequences(Space[T]):
    """A space of sequences of any length up to `max_length`; subclasses set it."""

    max_length: int

    def __eq__(self, other: object) -> bool:
        """Two spaces are equal if they contain the same sequences: their bounds say which."""
        return type(other) is type(self) and repr(other) == repr(self)

    @property
    def is_np_flattenable(self) -> bool:
        """Sequences differ in length, so they do not flatten to one shape."""
        return False

    def _sample_length(self, mask: object, probability: object) -> int:
        if mask is not None or probability is not None:
            raise OptionError("sampling masks and probabilities are not supported by text spaces")
        return int(self.np_random.integers(0, min(self.max_length, _LONGEST_SAMPLE) + 1))


class Tokens(_Sequences[TokenArray]):
    """One-dimensional `int64` arrays of ids in `[0, vocab_size)`, at most `max_length` long.

    Samples are uniform in length (up to 64) and in ids.

    Args:
        vocab_size: number of token ids, at least 1.
        max_length: longest array contained, at least 0.
        seed: seed of `sample`.

    Raises:
        OptionError: if a number is too small.
    """

    def __init__(
        self, vocab_size: int, max_length: int, seed: int | np.random.Generator | None = None
    ) -> None:
        if vocab_size < 1 or max_length < 0:
            raise OptionError(
                f"Tokens needs vocab_size >= 1 and max_length >= 0, got {vocab_size}, {max_length}"
            )
        self.vocab_size = vocab_size
        self.max_length = max_length
        super().__init__(None, np.int64, seed)

    def sample(self, mask: None = None, probability: None = None) -> TokenArray:
        """Draw an array. Masks are not supported.

        Raises:
            OptionError: if a mask or probability is given.
        """
        length = self._sample_length(mask, probability)
        return self.np_random.integers(0, self.vocab_size, length, dtype=np.int64)

    def contains(self, x: Any) -> bool:
        """Return whether `x` is such an array."""
        return (
            isinstance(x, np.ndarray)
            and x.ndim == 1
            and x.dtype.kind in "iu"
            and len(x) <= self.max_length
            and (not len(x) or (bool(x.min() >= 0) and bool(x.max() < self.vocab_size)))
        )

    def to_jsonable(self, sample_n: Iterable[TokenArray]) -> list[list[int]]:
        """Turn samples into lists of integers."""
        return [sample.tolist() for sample in sample_n]

    def from_jsonable(self, sample_n: list[Any]) -> list[TokenArray]:
        """Turn lists of integers back into samples."""
        return [np.asarray(sample, dtype=np.int64) for sample in sample_n]

    def __repr__(self) -> str:
        """Show the bounds."""
        return f"Tokens(vocab_size={self.vocab_size}, max_length={self.max_length})"


class UnicodeText(_Sequences[str]):
    """Every string of at most `max_length` characters, whatever they are.

    Samples are short strings of letters, digits, blanks and newlines.

    Args:
        max_length: longest string contained, at least 0.
        seed: seed of `sample`.

    Raises:
        OptionError: if `max_length` is negative.
    """

    def __init__(self, max_length: int, seed: int | np.random.Generator | None = None) -> None:
        if max_length < 0:
            raise OptionError(f"UnicodeText needs max_length >= 0, got {max_length}")
        self.max_length = max_length
        super().__init__(None, str, seed)

    def sample(self, mask: None = None, probability: None = None) -> str:
        """Draw a string. Masks are not supported.

        Raises:
            OptionError: if a mask or probability is given.
        """
        length = self._sample_length(mask, probability)
        picks = self.np_random.integers(0, len(_SAMPLE_ALPHABET), length)
        return "".join(_SAMPLE_ALPHABET[pick] for pick in picks)

    def contains(self, x: Any) -> bool:
        """Return whether `x` is a string within the bound."""
        return isinstance(x, str) and len(x) <= self.max_length

    def __repr__(self) -> str:
        """Show the bound."""
        return f"UnicodeText(max_length={self.max_length})"


# AsyncVectorEnv reads observations from shared memory once and expects the result to follow what
# the workers write. Rows of varying length cannot be numpy views of it, so they are read lazily.


class _SharedRows(Sequence[Any]):
    """The observations of all workers; copying it (as AsyncVectorEnv does) gives a plain tuple."""

    def __init__(self, memory: Any, rows: int, width: int, read: Callable[[TokenArray], Any]):
        self._table = np.frombuffer(memory.get_obj(), dtype=np.int64).reshape(rows, width)
        self._read = read

    def __len__(self) -> int:
        return len(self._table)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return tuple(self)[index]
        row = self._table[index]
        return self._read(row[1 : 1 + row[0]].copy())

    def __iter__(self) -> Iterator[Any]:
        return (self[index] for index in range(len(self)))

    def __deepcopy__(self, memo: dict[int, Any]) -> tuple[Any, ...]:
        return tuple(self)


def _as_is(row: TokenArray) -> TokenArray:
    return row


def _as_text(row: TokenArray) -> str:
    return "".join(map(chr, row.tolist()))


@create_shared_memory.register(_Sequences)
def _create_rows(space: Tokens | UnicodeText, n: int = 1, ctx: Any = multiprocessing) -> Any:
    return ctx.Array(c_int64, n * (space.max_length + 1))


@read_from_shared_memory.register(_Sequences)
def _read_rows(space: Tokens | UnicodeText, shared_memory: Any, n: int = 1) -> Any:
    read = _as_is if isinstance(space, Tokens) else _as_text
    return _SharedRows(shared_memory, n, space.max_length + 1, read)


@write_to_shared_memory.register(_Sequences)
def _write_row(
    space: Tokens | UnicodeText, index: int, value: TokenArray | str, shared_memory: Any
) -> None:
    if len(value) > space.max_length:
        raise TokenError(f"an observation has length {len(value)}, more than {space.max_length}")
    start = index * (space.max_length + 1)
    table = np.frombuffer(shared_memory.get_obj(), dtype=np.int64)
    table[start] = len(value)
    row = [ord(character) for character in value] if isinstance(value, str) else value
    table[start + 1 : start + 1 + len(value)] = row
