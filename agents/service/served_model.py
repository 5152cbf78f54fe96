"""One served model with everything that runs on it: training, sampling and its weights."""

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tokengym.agents.service.config import ServiceConfig
from tokengym.agents.service.engine.adapters import LoraSpec, LoraWeights
from tokengym.agents.service.engine.attention_dtype import rows_round_alike
from tokengym.agents.service.engine.base_model import load_base_model
from tokengym.agents.service.engine.checkpoints import (
    CheckpointInfo,
    CheckpointPath,
    CheckpointStore,
    checked_ttl,
)
from tokengym.agents.service.engine.chunk_sizes import pieces_for
from tokengym.agents.service.engine.forward import packed_forward
from tokengym.agents.service.engine.memory import (
    ADAPTERS,
    DIVIDED,
    PREFIX_TOKENS,
    MemoryBudget,
    cache_bytes,
    memory_of,
    resident_bytes,
    spill_bytes,
)
from tokengym.agents.service.engine.trainer import Trainer
from tokengym.agents.service.errors import BadRequestError
from tokengym.agents.service.generation.adapter_cache import AdapterCache
from tokengym.agents.service.generation.decoder import LANES, Decoder, SlotDecoder
from tokengym.agents.service.generation.plain_decoder import PlainDecoder
from tokengym.agents.service.generation.prefix_cache import PrefixCache
from tokengym.agents.service.generation.sampler import Sampler
from tokengym.agents.service.generation.trials import (
    NewDecoder,
    rows_are_independent,
    supports_shared_prompts,
)

UNNAMED_ADAPTERS = 32
"""Unnamed adapters of a session that are held, in memory or on disk; older ones are forgotten."""


class ServedModel:
    """A base model, its training runs and its sampler. Compute thread only, once constructed."""

    def __init__(
        self,
        directory: Path,
        config: ServiceConfig,
        checkpoints: CheckpointStore,
        new_seed: Callable[[], int],
    ) -> None:
        self.base_model = base = load_base_model(
            directory, config.device, config.precision, config.trust_remote_code
        )
        self.name = base.name
        self._checkpoints = checkpoints
        device = base.device
        limit = memory_of(device) if config.memory_bytes is None else config.memory_bytes
        spare = (limit - resident_bytes(device)) // len(config.models)
        budget = MemoryBudget.of(
            int(DIVIDED * spare),
            pieces_for(device).batch,
            PREFIX_TOKENS * cache_bytes(base.sampled),
        )
        scoring = packed_forward(base.sampled, device, share=True, memory=budget.batch)
        self.shares = supports_shared_prompts(base, scoring)
        scoring = dataclasses.replace(scoring, share=self.shares)
        alike = rows_round_alike(base.dtype, device)
        new_decoder, apart = self._decoder(alike, deterministic=config.deterministic)
        prefixes = PrefixCache(budget.prefixes)
        self.trainer = Trainer(
            dataclasses.replace(scoring, model=base.trained),
            base.vocabulary,
            base.context,
            new_seed,
        )
        self.adapter_cache = AdapterCache(
            base.sampled,
            checkpoints,
            config.state_dir / "unnamed" / base.fingerprint,
            int(ADAPTERS * spare),
            UNNAMED_ADAPTERS,
            spill_bytes(config.state_dir),
            prefixes.forget,
        )
        if apart:
            # Each sequence in a batch of its own.
            scoring = dataclasses.replace(scoring, share=False, memory=1)
        self.sampler = Sampler(
            scoring,
            partial(new_decoder, base.sampled),
            prefixes,
            self.adapter_cache.use,
            base.decode,
            # Buffers have room to spare.
            capacity=budget.sampling // (2 * cache_bytes(base.sampled)),
            copied=alike or new_decoder is not SlotDecoder,
        )

    def save(
        self,
        path: CheckpointPath,
        *,
        ttl_seconds: int | None,
        overwrite: bool,
        user_metadata: dict[str, str] | None = None,
        recipients: Sequence[str] = (),
    ) -> str:
        """Write a run's adapter (and, for `weights`, its optimizer state) to disk."""
        run = self.trainer.run(path.run_id)
        tensors = run.export().to_tensors()
        training = path.kind == "weights"
        if training:
            tensors.update(run.optimizer_tensors())
        info = CheckpointInfo(
            base_model=self.name,
            fingerprint=self.base_model.fingerprint,
            lora=dataclasses.asdict(run.spec),
            has_optimizer=training,
            user_metadata=user_metadata,
            ttl_seconds=checked_ttl(ttl_seconds),
            recipients=recipients,
        )
        self._checkpoints.save(path, tensors, info, overwrite=overwrite)
        self.adapter_cache.drop(path.uri)
        return path.uri

    def copy_adapter(self, run_id: str, key: str) -> None:
        """Copy a run's adapter into the cache, to sample from under `key`."""
        self.adapter_cache.put(key, self.trainer.run(run_id).export())

    def load(self, run_id: str, path: CheckpointPath, *, optimizer: bool) -> LoraSpec:
        """Load a checkpoint's adapter, and its optimizer state if asked, into a run.

        The run is created if it does not exist.
        """
        tensors, info = self._checkpoints.load(path)
        if info.fingerprint != self.base_model.fingerprint:
            raise BadRequestError(
                f"checkpoint must belong to the served model {self.name!r}, "
                f"{path.uri} was made for {info.base_model!r} with other weights"
            )
        if optimizer and not info.has_optimizer:
            raise BadRequestError(
                f"{path.uri} must hold optimizer state to be resumed with it; it was saved for "
                "sampling only"
            )
        spec = LoraSpec(**info.lora)
        weights = LoraWeights.from_tensors(tensors, spec)
        fresh = run_id not in self.trainer.runs
        if fresh:
            self.trainer.create(run_id, spec)
        run = self.trainer.run(run_id)
        try:
            run.load(weights)
            run.reset_optimizer(tensors if optimizer else {})
        except BaseException:
            if fresh:
                self.trainer.delete(run_id)
            raise
        return spec

    def status(self) -> dict[str, Any]:
        """Return counts for the status route."""
        return {
            "training_runs": len(self.trainer.runs),
            **self.adapter_cache.status(),
            **self.sampler.status(),
        }

    def _decoder(self, alike: bool, *, deterministic: bool) -> tuple[NewDecoder, bool]:
        """Return what makes the sampler's decoders, and whether sequences must be kept apart."""
        base = self.base_model
        if self.shares:
            independent = partial(rows_are_independent, base)
            # Where sums do not depend on what is beside them, nothing has to be kept apart.
            if not deterministic or (alike and independent(SlotDecoder)):
                return SlotDecoder, False
            if independent(in_lanes := partial(SlotDecoder, lanes=LANES)):
                return in_lanes, True

        def plain(model: Any, _store: PrefixCache, _weights: str) -> Decoder:
            return PlainDecoder(model, apart=deterministic)

        return plain, deterministic
