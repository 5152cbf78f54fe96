"""Keys and values of earlier token sequences, so that continuations do not recompute them."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tokengym.agents.service.engine.packing import Tokens

MIN_REUSED = 4


@dataclass(eq=False)
class Prefix:
    """The keys and values of a token sequence: those of its parent, then its own.

    Attributes:
        parent: what comes before, or None.
        length: tokens in all, parents included.
        keys: [layers, kv_heads, own, head_dim].
        values: the same shape.
        logits: float32 [vocab] after the last token, if known.
    """

    parent: Prefix | None
    length: int
    keys: torch.Tensor
    values: torch.Tensor
    logits: torch.Tensor | None = None

    @property
    def nbytes(self) -> int:
        """Size in bytes, without parents."""
        logits = 0 if self.logits is None else self.logits.nbytes
        return self.keys.nbytes + self.values.nbytes + logits

    def joined(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return keys and values of the whole sequence, [layers, kv_heads, length, head_dim]."""
        chain = list(self.chain())
        if len(chain) == 1:
            return self.keys, self.values
        chain.reverse()
        return (
            torch.cat([node.keys for node in chain], dim=2),
            torch.cat([node.values for node in chain], dim=2),
        )

    def chain(self) -> Iterator[Prefix]:
        """Yield this prefix and its ancestors, the last first."""
        node: Prefix | None = self
        while node is not None:
            yield node
            node = node.parent


class PrefixCache:
    """Prefixes by (weights, tokens), up to a number of bytes; evicts the least recently used.

    Args:
        capacity: bytes.
        whole: whether only whole prompts are found, and never the beginning of one.
    """

    def __init__(self, capacity: int, whole: bool = False) -> None:
        self._capacity = capacity
        self._whole = whole
        self._held: OrderedDict[tuple[str, bytes], Prefix] = OrderedDict()
        self._lengths: dict[str, dict[int, int]] = {}
        self.nbytes = 0

    def __len__(self) -> int:
        """Return the number of prefixes."""
        return len(self._held)

    def find(self, weights: str, tokens: Tokens) -> Prefix | None:
        """Return the longest cached prefix of `tokens`; `tokens` itself only with its logits."""
        lengths = self._lengths.get(weights)
        if not lengths:
            return None
        for length in sorted(lengths, reverse=True):
            if length > len(tokens) or length < MIN_REUSED:
                continue
            if self._whole and length < len(tokens):
                break
            key = (weights, tokens[:length].tobytes())
            found = self._held.get(key)
            if found is None or (length == len(tokens) and found.logits is None):
                continue
            self._held.move_to_end(key)
            return found
        return None

    def add(self, weights: str, tokens: Tokens, prefix: Prefix) -> None:
        """Cache `prefix` as the keys and values of `tokens`."""
        key = (weights, tokens.tobytes())
        if key in self._held or prefix.nbytes > self._capacity:
            return
        self._held[key] = prefix
        self.nbytes += prefix.nbytes
        lengths = self._lengths.setdefault(weights, {})
        lengths[prefix.length] = lengths.get(prefix.length, 0) + 1
        while self.nbytes > self._capacity:
            self._drop(next(iter(self._held)))

    def forget(self, weights: str) -> None:
        """Drop everything computed with `weights`."""
        for key in [key for key in self._held if key[0] == weights]:
            self._drop(key)

    def _drop(self, key: tuple[str, bytes]) -> None:
        prefix = self._held.pop(key)
        self.nbytes -= prefix.nbytes
        lengths = self._lengths[key[0]]
        lengths[prefix.length] -= 1
        if lengths[prefix.length] == 0:
            del lengths[prefix.length]
        if not lengths:
            del self._lengths[key[0]]
