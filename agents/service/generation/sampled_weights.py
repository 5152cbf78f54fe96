"""The weights that sampling clients use: the base model, saved adapters and unnamed copies.

Every adapter is in a file: a named one in its checkpoint, an unnamed one in one of its own, which
ends with its session. Those that were used last are in memory too. Of a session's unnamed ones the
last few used are held, and those with unfinished requests. Where all take too many bytes, the
session with most of them loses its oldest, but nobody the last one saved.
"""

import logging
import secrets
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from safetensors.torch import load_file, save_file
from torch import nn

from tokengym.agents.service.config import CHECKPOINT_SCHEME
from tokengym.agents.service.engine.adapters import LoraSpec, LoraWeights
from tokengym.agents.service.engine.checkpoints import SUFFIX, CheckpointPath, CheckpointStore
from tokengym.agents.service.engine.compute_thread import client_of
from tokengym.agents.service.engine.linear import lora_layers
from tokengym.agents.service.engine.training_runs import clear_spill
from tokengym.agents.service.errors import UnknownResourceError

BASE = "base"

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Unnamed:
    """An unnamed adapter: its specification, size, how many were saved before it, and its file."""

    spec: LoraSpec
    nbytes: int
    saved: int
    file: Path


class SampledWeights:
    """Weights for sampling, by key: `base`, a checkpoint path or a sampling session's id.

    Compute thread only.

    Args:
        model: the sampled module.
        checkpoints: where named adapters are.
        folder: of the files of unnamed ones.
        resident: bytes of adapters in memory; the one in use is there whatever its size.
        unnamed: how many unnamed adapters of a session are held.
        most_bytes: of the unnamed adapters of all sessions.
        on_drop: called with the key of weights that are forgotten.

    Attributes:
        written: bytes of the files of unnamed ones.
    """

    def __init__(
        self,
        model: nn.Module,
        checkpoints: CheckpointStore,
        folder: Path,
        resident: int,
        unnamed: int,
        most_bytes: int,
        on_drop: Callable[[str], None],
    ) -> None:
        self._layers = lora_layers(model)
        self._checkpoints = checkpoints
        # Unnamed adapters belong to sessions, and no session outlives the service.
        self._folder = clear_spill(folder)
        self._resident, self._most, self._most_bytes = resident, unnamed, most_bytes
        self._on_drop = on_drop
        # Both the least recently used first.
        self._adapters: OrderedDict[str, LoraWeights] = OrderedDict()
        self._unnamed: OrderedDict[str, _Unnamed] = OrderedDict()
        self._saved = self.written = 0
        self._pins: Counter[str] = Counter()
        self._current = BASE

    def put(self, key: str, weights: LoraWeights) -> None:
        """Hold an unnamed adapter under `key`."""
        # Another model of equal weights may have files in the same folder.
        file = self._folder / f"{secrets.token_hex(8)}{SUFFIX}"
        save_file(weights.to_tensors(), file)
        self._saved += 1
        self._adapters[key] = weights
        self._unnamed[key] = _Unnamed(weights.spec, weights.nbytes, self._saved, file)
        self.written += weights.nbytes
        self._trim()

    def acquire(self, key: str) -> None:
        """Pin the weights under `key` for a request, until it calls `release`.

        Raises:
            UnknownResourceError: if the weights are gone.
        """
        if key != BASE:
            self._adapter(key)
        self._pins[key] += 1

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
            held.file.unlink(missing_ok=True)
            self.written -= held.nbytes

    def use(self, key: str) -> None:
        """Switch the sampled module to the weights under `key`."""
        if key != self._current:
            adapters = {} if key == BASE else self._adapter(key).adapters()
            for name, layer in self._layers.items():
                layer.attach_for_sampling(adapters.get(name))
            self._current = key

    def status(self) -> dict[str, int]:
        """Return counts for the status route."""
        return {
            "resident_adapters": len(self._adapters),
            "unnamed_adapters": len(self._unnamed),
        }

    def _adapter(self, key: str) -> LoraWeights:
        if key in self._unnamed:
            self._unnamed.move_to_end(key)
        if key not in self._adapters:
            self._adapters[key] = self._read(key)
        self._adapters.move_to_end(key)
        self._trim()
        return self._adapters[key]

    def _read(self, key: str) -> LoraWeights:
        if (held := self._unnamed.get(key)) is not None:
            return LoraWeights.from_tensors(load_file(held.file), held.spec)
        if key.startswith(CHECKPOINT_SCHEME):
            tensors, info = self._checkpoints.load(CheckpointPath.parse(key))
            return LoraWeights.from_tensors(tensors, LoraSpec(**info.lora))
        raise UnknownResourceError(
            f"sampler {key!r} is no longer held: its session ended, or more than {self._most} "
            "newer adapters were saved since it was last used"
        )

    def _trim(self) -> None:
        while (key := self._surplus()) is not None:
            log.info("adapter %s is forgotten: its session has newer ones", key)
            self.drop(key)
        over = sum(weights.nbytes for weights in self._adapters.values()) - self._resident
        for key in list(self._adapters)[:-1]:
            if over > 0 and key != self._current:
                over -= self._adapters.pop(key).nbytes

    def _surplus(self) -> str | None:
        """Return an unnamed adapter to forget, if there are too many."""
        owned: defaultdict[str, dict[str, _Unnamed]] = defaultdict(dict)
        for key, held in self._unnamed.items():
            owned[client_of(key)][key] = held
        # By the bytes of a session's adapters, the least recently used that it can do without.
        spare: dict[int, str] = {}
        for keys in owned.values():
            last = max(held.saved for held in keys.values())
            unused = [k for k, held in keys.items() if held.saved < last and k not in self._pins]
            if unused and (self.written > self._most_bytes or len(keys) > self._most):
                spare[sum(held.nbytes for held in keys.values())] = unused[0]
        return spare[max(spare)] if spare else None
