"""The sizes of pieces that work is cut into, by kind of device."""

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class ChunkSizes:
    """Sizes of the pieces that work is cut into.

    Attributes:
        queries: most positions of one block of attention.
        logits: most bytes of logits at once; a few copies of them are made.
        batch: most bytes of activations of one batch.
        prefill: most positions of new prompts in one pass.
    """

    queries: int
    logits: int
    batch: int
    prefill: int


# Larger pieces are no faster on a processor, whose cache holds the scores of a small block.
PROCESSOR = ChunkSizes(queries=128, logits=1 << 26, batch=1 << 30, prefill=1 << 12)
# A GPU spends more time on starting small pieces than on computing them.
ACCELERATOR = ChunkSizes(queries=1024, logits=1 << 29, batch=1 << 34, prefill=1 << 15)


def pieces_for(device: torch.device) -> ChunkSizes:
    """Return the sizes that suit a device."""
    return PROCESSOR if device.type == "cpu" else ACCELERATOR
