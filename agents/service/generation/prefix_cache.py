"""Keys and values of earlier token sequences, so that continuations do not recompute them."""

from collections import Counter, OrderedDict, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import torch

from tokengym.agents.service.engine.packing import Tokens

MIN_REUSED = 4

# Weights, and the bytes of tokens.
_Key = tuple[str, bytes]


@dataclass(eq=False)
class Prefix:
    """The keys and values of a token sequence: those of its parent, then its own.

    Attributes:
        parent: what comes before, or None.
        length: tokens in all, parents included.
        states: keys and values, [2, layers, kv_heads, own, head_dim].
        logits: float32 [vocab] after the last token, if known.
    """

    parent: Self | None
    length: int
    states: torch.Tensor
    logits: torch.Tensor | None = None

    @property
    def nbytes(self) -> int:
        """Size in bytes, without parents."""
        return self.states.nbytes + (0 if self.logits is None else self.logits.nbytes)

    def chain(self) -> Iterator[Self]:
        """Yield this prefix and its ancestors, the last first."""
        node: Self | None = self
        while node is not None:
            yield node
            node = node.parent


class PrefixCache:
    """Prefixes by (weights, tokens), up to a number of bytes; evicts the least recently used.

    A prefix stays as long as one that continues it, so that the count is that of the memory in use.

    Args:
        capacity: bytes.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        # The least recently used first; each comes before those that it continues.
        self._held: OrderedDict[_Key, Prefix] = OrderedDict()
        # How many prefixes there are of each length, by weights.
        self._lengths: dict[str, Counter[int]] = defaultdict(Counter)
        self.nbytes = 0

    def __len__(self) -> int:
        """Return the number of prefixes."""
        return len(self._held)

    def find(self, weights: str, tokens: Tokens) -> Prefix | None:
        """Return the longest cached prefix of `tokens`; `tokens` itself only with its logits."""
        for length in sorted(+self._lengths.get(weights, Counter()), reverse=True):
            if length > len(tokens) or length < MIN_REUSED:
                continue
            prefix = self._held.get((weights, tokens[:length].tobytes()))
            if prefix is None or (length == len(tokens) and prefix.logits is None):
                continue
            self._hold(weights, tokens, prefix)
            return prefix
        return None

    def add(self, weights: str, tokens: Tokens, prefix: Prefix) -> None:
        """Cache `prefix` as the keys and values of `tokens`, and what it continues."""
        if sum(node.nbytes for node in prefix.chain()) > self._capacity:
            return
        self._hold(weights, tokens, prefix)
        while self.nbytes > self._capacity:
            self._drop(next(iter(self._held)))

    def forget(self, weights: str) -> None:
        """Drop everything computed with `weights`."""
        for key in [key for key in self._held if key[0] == weights]:
            self._drop(key)
        self._lengths.pop(weights, None)

    def _hold(self, weights: str, tokens: Tokens, prefix: Prefix) -> None:
        """Make a prefix, and after it those that it continues, the most recently used."""
        for node in prefix.chain():
            key = (weights, tokens[: node.length].tobytes())
            if key not in self._held:
                self._held[key] = node
                self.nbytes += node.nbytes
                self._lengths[weights][node.length] += 1
            self._held.move_to_end(key)

    def _drop(self, key: _Key) -> None:
        prefix = self._held.pop(key)
        self.nbytes -= prefix.nbytes
        self._lengths[key[0]][prefix.length] -= 1
