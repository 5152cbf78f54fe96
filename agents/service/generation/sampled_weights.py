"""The weights that sampling clients use: the base model, saved adapters and unnamed copies.

Every adapter is in a file: a named one in its checkpoint, an unnamed one in one of its own, which
ends with its session. Those that were used last are in memory too. Of a session's unnamed ones the
last few used are held, and those with unfinished requests.
"""

import logging
import secrets
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from safetensors.torch import load_file, save_file
from torch import nn

from tokengym.agents.service.config import CHECKPOINT_SCHEME
from tokengym.agents.service.engine.adapters import LoraSpec, LoraWeights
from tokengym.agents.service.engine.checkpoints import SUFFIX, CheckpointPath, CheckpointStore
from tokengym.agents.service.engine.compute_thread import client_of
from tokengym.agents.service.engine.linear import lora_layers
from tokengym.agents.service.engine.parking import clear_spill
from tokengym.agents.service.errors import UnknownResourceError

BASE = "base"

log = logging.getLogger(__name__)


class _Unnamed(NamedTuple):
    spec: LoraSpec
    nbytes: int
    file: Path


class SampledWeights:
    """Weights for sampling, by key: `base`, a checkpoint path or a sampling session's id.

    Compute thread only.

    Args:
        model: the sampled module.
        checkpoints: where named adapters are.
        folder: of the files of unnamed ones.
        resident: bytes of adapters in memory; the one in use is there whatever its size.
        unnamed: how many unnamed adapters of a session are held, besides those in use.
        in_use: returns whether requests for the weights of a key are unfinished.
        on_drop: called with the key of weights that are forgotten.
    """

    def __init__(
        self,
        model: nn.Module,
        checkpoints: CheckpointStore,
        folder: Path,
        resident: int,
        unnamed: int,
        in_use: Callable[[str], bool],
        on_drop: Callable[[str], None],
    ) -> None:
        self._layers = lora_layers(model)
        self._checkpoints = checkpoints
        # Unnamed adapters belong to sessions, and no session outlives the service.
        self._folder = clear_spill(folder)
        self._resident, self._most = resident, unnamed
        self._in_use, self._on_drop = in_use, on_drop
        # Both the least recently used first.
        self._adapters: OrderedDict[str, LoraWeights] = OrderedDict()
        self._unnamed: OrderedDict[str, _Unnamed] = OrderedDict()
        self._current = BASE

    @property
    def written(self) -> int:
        """Bytes of the files of unnamed ones."""
        return sum(held.nbytes for held in list(self._unnamed.values()))

    def put(self, key: str, weights: LoraWeights) -> None:
        """Hold an unnamed adapter under `key`."""
        # Another model of equal weights may have files in the same folder.
        file = self._folder / f"{secrets.token_hex(8)}{SUFFIX}"
        save_file(weights.to_tensors(), file)
        self._unnamed[key] = _Unnamed(weights.spec, weights.nbytes, file)
        self._keep(key, weights)
        session = client_of(key)
        own = [k for k in self._unnamed if client_of(k) == session and not self._in_use(k)]
        for old in own[: -self._most]:
            log.info("adapter %s is forgotten: its session has newer ones", old)
            self.drop(old)

    def lineage(self, key: str) -> str:
        """Return what identifies the weights under `key` by their values.

        Raises:
            UnknownResourceError: if the weights are gone.
        """
        return BASE if key == BASE else self._adapter(key).digest

    def drop(self, key: str) -> None:
        """Forget an unnamed adapter, or the copy of a deleted checkpoint."""
        self._adapters.pop(key, None)
        if key == self._current:
            self.use(BASE)
        self._on_drop(key)
        if (held := self._unnamed.pop(key, None)) is not None:
            held.file.unlink(missing_ok=True)

    def use(self, key: str) -> None:
        """Switch the sampled module to the weights under `key`."""
        if key != self._current:
            adapters = {} if key == BASE else self._adapter(key).adapters()
            for name, layer in self._layers.items():
                layer.attach_for_sampling(adapters.get(name))
            self._current = key

    def _adapter(self, key: str) -> LoraWeights:
        weights = self._adapters.get(key) or self._read(key)
        if key in self._unnamed:
            self._unnamed.move_to_end(key)
        self._keep(key, weights)
        return weights

    def _keep(self, key: str, weights: LoraWeights) -> None:
        self._adapters[key] = weights
        self._adapters.move_to_end(key)
        over = sum(each.nbytes for each in self._adapters.values()) - self._resident
        while over > 0 and len(self._adapters) > 1:
            over -= self._adapters.popitem(last=False)[1].nbytes

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
