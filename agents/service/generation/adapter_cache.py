"""The weights that sampling clients use: the base model, saved adapters and unnamed copies.

Only the most recently used adapters stay in memory. A named adapter is reloaded from its
checkpoint, an unnamed one from a file. Of the unnamed ones the last few used are held, in memory or
in a file, and those with unfinished requests; they end with their session.
"""

from __future__ import annotations

import logging
import secrets
from collections import Counter, OrderedDict
from typing import TYPE_CHECKING

from safetensors.torch import load_file, save

from tokengym.agents.service.config import CHECKPOINT_SCHEME
from tokengym.agents.service.engine.adapters import LoraSpec, LoraWeights
from tokengym.agents.service.engine.checkpoints import (
    SUFFIX,
    CheckpointPath,
    CheckpointStore,
    write_atomically,
)
from tokengym.agents.service.engine.linear import lora_layers
from tokengym.agents.service.errors import UnknownResourceError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from torch import nn

BASE = "base"

log = logging.getLogger(__name__)


class AdapterCache:
    """Weights for sampling, by key: `base`, a checkpoint path or a sampling session's id.

    Compute thread only.

    Args:
        model: the sampled module.
        checkpoints: where named adapters are.
        spill: folder of the files of unnamed ones.
        resident: bytes of adapters in memory; the one in use is there whatever its size.
        unnamed: how many unnamed adapters are held.
        on_drop: called with the key of weights that are forgotten.
    """

    def __init__(
        self,
        model: nn.Module,
        checkpoints: CheckpointStore,
        spill: Path,
        resident: int,
        unnamed: int,
        on_drop: Callable[[str], None],
    ) -> None:
        self._layers = lora_layers(model)
        self._checkpoints = checkpoints
        self._spill = spill
        self._resident, self._most = resident, unnamed
        self._on_drop = on_drop
        # Both the least recently used first; an unnamed adapter has a file once it left the memory.
        self._adapters: OrderedDict[str, LoraWeights] = OrderedDict()
        self._unnamed: OrderedDict[str, tuple[Path, LoraSpec] | None] = OrderedDict()
        self._pins: Counter[str] = Counter()
        self._current = BASE
        spill.mkdir(parents=True, exist_ok=True)
        # Unnamed adapters belong to sessions, and no session outlives the service.
        for old in spill.glob(f"*{SUFFIX}"):
            old.unlink()

    def put(self, key: str, weights: LoraWeights) -> None:
        """Hold an unnamed adapter under `key`."""
        self._adapters[key] = weights
        self._unnamed[key] = None
        self._trim()

    def acquire(self, key: str) -> None:
        """Pin the weights under `key` for a request, until it calls `release`.

        Raises:
            UnknownResourceError: if the weights are gone.
        """
        if key != BASE:
            self._adapter(key)
        self._pins[key] += 1
        self._trim()

    def lineage(self, key: str) -> str:
        """Return what identifies the weights under `key` by their values."""
        return BASE if key == BASE else self._adapter(key).digest

    def release(self, key: str) -> None:
        """Unpin the weights under `key`: a request for them has ended."""
        self._pins[key] -= 1
        if self._pins[key] <= 0:
            del self._pins[key]
        self._trim()

    def drop(self, key: str) -> None:
        """Forget an unnamed adapter, or the copy of a deleted checkpoint."""
        self._adapters.pop(key, None)
        if key == self._current:
            self.use(BASE)
        self._on_drop(key)
        if (held := self._unnamed.pop(key, None)) is not None:
            held[0].unlink(missing_ok=True)

    def use(self, key: str) -> None:
        """Switch the sampled module to the weights under `key`."""
        if key != self._current:
            adapters = {} if key == BASE else self._adapter(key).adapters()
            for name, layer in self._layers.items():
                layer.attach_for_sampling(adapters.get(name))
            self._current = key
            self._trim()

    def status(self) -> dict[str, int]:
        """Return counts for the status route."""
        return {
            "resident_adapters": len(self._adapters),
            "unnamed_adapters": len(self._unnamed),
        }

    def _adapter(self, key: str) -> LoraWeights:
        if key in self._unnamed:
            self._unnamed.move_to_end(key)
        if key in self._adapters:
            self._adapters.move_to_end(key)
        elif (held := self._unnamed.get(key)) is not None:
            file, spec = held
            self._adapters[key] = LoraWeights.from_tensors(load_file(file), spec)
        elif key.startswith(CHECKPOINT_SCHEME):
            tensors, info = self._checkpoints.load(CheckpointPath.parse(key))
            self._adapters[key] = LoraWeights.from_tensors(tensors, LoraSpec(**info.lora))
        else:
            raise UnknownResourceError(
                f"sampler {key!r} is no longer held: its session ended, or more than "
                f"{self._most} newer adapters were saved since it was last used"
            )
        return self._adapters[key]

    def _trim(self) -> None:
        spare = [key for key in self._unnamed if key not in self._pins]
        for key in spare[: max(0, len(self._unnamed) - self._most)]:
            log.info("adapter %s is forgotten: %d newer ones are held", key, self._most)
            self.drop(key)
        over = sum(weights.nbytes for weights in self._adapters.values()) - self._resident
        for key in list(self._adapters)[:-1]:
            if over > 0 and key != self._current:
                weights = self._adapters.pop(key)
                over -= weights.nbytes
                if key in self._unnamed and self._unnamed[key] is None:
                    # Another cache of equal weights may write to the same folder.
                    file = self._spill / f"{secrets.token_hex(8)}{SUFFIX}"
                    write_atomically(file, save(weights.to_tensors()))
                    self._unnamed[key] = (file, weights.spec)
