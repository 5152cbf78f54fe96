"""One served model with everything that runs on it: training, sampling and its weights."""

import dataclasses
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tokengym.agents.service.config import ServiceConfig
from tokengym.agents.service.engine.adapters import LoraSpec, LoraWeights
from tokengym.agents.service.engine.base_model import BaseModel
from tokengym.agents.service.engine.checkpoints import (
    CheckpointInfo,
    CheckpointPath,
    CheckpointStore,
    checked_ttl,
)
from tokengym.agents.service.engine.forward import PackedForward, scored
from tokengym.agents.service.engine.memory import (
    ADAPTERS,
    cache_bytes,
    divided,
    pieces_for,
    spare_bytes,
)
from tokengym.agents.service.engine.trainer import Trainer
from tokengym.agents.service.errors import BadRequestError, ModelDirectoryError
from tokengym.agents.service.generation.decoder import KeptDecoder
from tokengym.agents.service.generation.sampled_weights import SampledWeights
from tokengym.agents.service.generation.sampler import Sampler

UNNAMED_ADAPTERS = 32
"""Unnamed adapters of a session that are held; older ones are forgotten."""
# Two ways to the same logits differ by rounding; an architecture that does not fit is far off.
# Root mean square of the difference over the logits' standard deviation, by type of the model.
TOLERANCE = {torch.float32: 1e-3, torch.bfloat16: 0.25}
LAYER_KINDS = {"full_attention", "sliding_attention"}


class ServedModel:
    """A base model, its training runs and its sampler. Compute thread only, once constructed."""

    def __init__(
        self, directory: Path, config: ServiceConfig, checkpoints: CheckpointStore
    ) -> None:
        self.base_model = base = BaseModel(
            directory, config.device, config.precision, config.trust_remote_code
        )
        self.name = base.name
        self._checkpoints = checkpoints
        device = base.device
        spare = spare_bytes(device, config.memory) // len(config.models)
        batch, sampling = divided(spare, pieces_for(device).batch)
        check_attention(base)
        forward = PackedForward(base.trained, batch)
        self.trainer = Trainer(forward, base.vocabulary, base.context)
        scoring = PackedForward(base.sampled, batch)
        if config.deterministic:
            scoring.most = 1  # each sequence in a batch of its own
        self.sampler = Sampler(
            scoring,
            partial(KeptDecoder, base.sampled, exact=config.deterministic),
            lambda key: self.sampled_weights.use(key),
            base.decode,
            capacity=sampling // (2 * cache_bytes(base.sampled)),
            missing=base.missing,
        )
        self.sampled_weights = SampledWeights(
            base.sampled,
            checkpoints,
            config.state_dir / "unnamed" / base.fingerprint,
            int(ADAPTERS * spare),
            UNNAMED_ADAPTERS,
            self.sampler.in_use,
            self.sampler.forget,
        )

    def save(
        self, path: CheckpointPath, ttl_seconds: int | None, metadata: Any, *, overwrite: bool
    ) -> None:
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
            user_metadata=metadata,
            ttl_seconds=checked_ttl(ttl_seconds),
        )
        self._checkpoints.save(path, tensors, info, overwrite=overwrite)
        self.sampled_weights.drop(path.uri)

    def copy_adapter(self, run_id: str, key: str) -> None:
        """Copy a run's adapter into the cache, to sample from under `key`."""
        self.sampled_weights.put(key, self.trainer.run(run_id).export())

    def load(self, run_id: str, path: CheckpointPath, *, optimizer: bool) -> None:
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


def check_attention(base_model: BaseModel) -> None:
    """Check that our attention gives this model the same logits as its own.

    Two sequences with a common prefix are scored plainly, packed into one row, and decoded.

    Raises:
        ModelDirectoryError: if not, as for architectures with attention sinks or recurrent state.
    """
    model: Any = base_model.sampled
    kinds = set(getattr(model.config.get_text_config(), "layer_types", None) or LAYER_KINDS)
    generator = np.random.default_rng(0)
    prompt = generator.integers(0, base_model.vocabulary, min(24, base_model.context // 2))
    replies = generator.integers(0, base_model.vocabulary, (2, 4))
    pair = [np.concatenate([prompt, reply]).astype(np.int32) for reply in replies]
    try:
        if others := kinds - LAYER_KINDS:
            raise NotImplementedError(f"it has layers of types {sorted(others)}")
        ids = torch.tensor(np.stack(pair), dtype=torch.long, device=base_model.device)
        with torch.inference_mode():
            expected = model(input_ids=ids, use_cache=False).logits[:, -1].float()
        (packed,) = scored(PackedForward(model), pair)
        decoder = KeptDecoder(model)
        slots, _ = decoder.admit([prompt.astype(np.int32)] * 2, [len(pair[0])] * 2, 0)
        decoded = [decoder.step(slots, tokens) for tokens in replies.T][-1]
        found = torch.stack([torch.stack([packed[member].last for member in range(2)]), decoded])
        gaps = (found - expected).square().mean(-1).sqrt() / expected.std(-1).clamp(min=1e-6)
        if not float(gaps.max()) <= TOLERANCE[model.dtype]:
            raise NotImplementedError(f"its logits differ by {float(gaps.max()):.3g}")
    except Exception as error:  # of an architecture that does not fit anything may be raised
        raise ModelDirectoryError(
            f"a served model must have full or sliding-window attention, {model.config.model_type} "
            f"in {base_model.name!r} has not: {error}"
        ) from error
