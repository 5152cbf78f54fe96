"""The sizes of pieces that work is cut into, by kind of device."""

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class ChunkSizes:
    """Sizes of the pieces that work is cut into.

    Attributes:
        logits: most bytes of logits at once; a few copies of them are made.
        batch: most bytes of activations of one batch.
        positions: most positions of one pass over training data or prompts.
    """

    logits: int
    batch: int
    positions: int


# Larger pieces are no faster on a processor, and others wait for them.
PROCESSOR = ChunkSizes(logits=1 << 26, batch=1 << 30, positions=1 << 12)
# A GPU spends more time on starting small pieces than on computing them.
ACCELERATOR = ChunkSizes(logits=1 << 29, batch=1 << 34, positions=1 << 15)


def pieces_for(device: torch.device) -> ChunkSizes:
    """Return the sizes that suit a device."""
    return PROCESSOR if device.type == "cpu" else ACCELERATOR
