"""Buffers of keys and values with a slot for each sequence."""

import weakref
from collections.abc import Callable, Sequence

import torch

from tokengym.agents.service.generation.prefix_cache import Prefix


class Slots:
    """Keys and values of sequences, each from its first token on in a slot of its own.

    What lies past a sequence's end is for masks to hide, and finite: it is multiplied by zero.

    Attributes:
        states: by layer, [2, slots, kv_heads, room, head_dim].
    """

    def __init__(self) -> None:
        self.states: list[torch.Tensor] = []
        # The prefix in each slot as far as it is still held elsewhere: the next turn adds to it.
        self._held: list[Callable[[], Prefix | None]] = []

    def __len__(self) -> int:
        """Return the number of slots."""
        return len(self._held)

    @property
    def room(self) -> int:
        """How many tokens a slot has room for."""
        return int(self.states[0].shape[3]) if self.states else 0

    def held(self, slot: int) -> Prefix | None:
        """Return the prefix in a slot, if anyone else still holds it."""
        return self._held[slot]()

    def note(self, slot: int, prefix: Prefix) -> None:
        """Note that a slot holds a prefix."""
        self._held[slot] = weakref.ref(prefix)

    def put(self, slot: int, prefix: Prefix) -> None:
        """Copy to a slot what it does not hold yet of a prefix."""
        held = self.held(slot)
        for node in prefix.chain():
            if node is held:
                break
            at = slice(node.length - node.states.shape[3], node.length)
            for layer, states in enumerate(self.states):
                states[:, slot, :, at] = node.states[:, layer]
        self.note(slot, prefix)

    def resize(self, kept: Sequence[int], count: int, room: int, like: Prefix) -> None:
        """Have `count` slots of `room` tokens, the first of which are those kept.

        Args:
            kept: numbers of slots.
            count: of slots, no fewer than those kept.
            room: tokens of each; more of those kept are lost.
            like: any prefix of the model.
        """
        self.states = self.states or [part[:, None, :, :0] for part in like.states.unbind(1)]
        chosen = torch.tensor(kept, dtype=torch.int64)
        # Layer by layer: memory for both is not foreseen.
        for layer, former in enumerate(self.states):
            _, _, kv_heads, length, width = former.shape
            states = former.new_zeros(2, count, kv_heads, room, width)
            length = min(length, room)
            states[:, : len(kept), :, :length] = former[:, chosen, :, :length]
            self.states[layer] = states
        self._held = [*(self._held[slot] for slot in kept), *[lambda: None] * (count - len(kept))]


def roomy(rows: int) -> int:
    """Return how many slots there are for rows: some to spare, for those that join."""
    return rows + rows // 4
