"""One served model with all that runs on it: training, sampling and the weights between them."""

from __future__ import annotations

import dataclasses
import logging
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from tokengym.agents.service.adapters import AdapterBank, LoraSpec, LoraWeights
from tokengym.agents.service.backbone import Backbone, load_backbone
from tokengym.agents.service.checkpoints import (
    CheckpointInfo,
    CheckpointPath,
    CheckpointStore,
    expiry,
    now,
)
from tokengym.agents.service.decoder import Decoder, SharedDecoder
from tokengym.agents.service.errors import BadRequestError
from tokengym.agents.service.forward import PackedForward, packed_forward, score
from tokengym.agents.service.plain_decoder import PlainDecoder
from tokengym.agents.service.prefixes import PrefixStore
from tokengym.agents.service.sampler import Sampler
from tokengym.agents.service.snapshots import Snapshots, tensors_of, weights_from_tensors
from tokengym.agents.service.trainer import Trainer

if TYPE_CHECKING:
    from pathlib import Path

    from tokengym.agents.service.settings import Settings

# Two ways to the same logits differ by rounding; an architecture that does not fit is far off.
PROBE_TOLERANCE = {torch.float32: 2e-3, torch.bfloat16: 0.5}

log = logging.getLogger(__name__)


class Engine:
    """A backbone and everything on it. Used from the compute thread only, after construction."""

    def __init__(self, directory: Path, settings: Settings, checkpoints: CheckpointStore) -> None:
        self.backbone: Backbone = load_backbone(directory, settings.device, settings.dtype)
        self._checkpoints = checkpoints
        self._store = PrefixStore(settings.prefix_cache_bytes)
        backbone = self.backbone
        scoring = packed_forward(backbone.sampled, backbone.device, share=True)
        self.shares = probe(backbone, scoring)
        self.bank = AdapterBank(backbone.trained)
        self.trainer = Trainer(
            self.bank,
            packed_forward(backbone.trained, backbone.device, share=self.shares),
            backbone.vocabulary,
            backbone.context,
        )
        self.snapshots = Snapshots(
            backbone.sampled,
            checkpoints,
            settings.state_dir / "unnamed" / backbone.fingerprint,
            settings.resident_adapters,
            settings.spilled_adapters,
            self._store.forget,
        )
        self.sampler = Sampler(
            dataclasses.replace(scoring, share=self.shares),
            self._decoder,
            self.snapshots.use,
            self._text,
        )

    def save(
        self,
        path: CheckpointPath,
        *,
        ttl_seconds: int | None,
        overwrite: bool,
        user_metadata: dict[str, str] | None,
    ) -> str:
        """Write a run's adapter (and, for `weights`, its optimizer state) to disk."""
        run = self.trainer.run(path.run_id)
        tensors = tensors_of(self.bank.copy_out(run.adapter, run.spec))
        training = path.kind == "weights"
        if training:
            for name, state in self._optimizer_state(path.run_id).items():
                tensors[name] = state
        info = CheckpointInfo(
            base_model=self.backbone.name,
            fingerprint=self.backbone.fingerprint,
            lora=run.spec.as_json(),
            has_optimizer=training,
            created=now().isoformat(),
            expires=expiry(ttl_seconds),
            user_metadata=user_metadata,
        )
        self._checkpoints.save(path, tensors, info, overwrite=overwrite)
        self.snapshots.drop(path.uri)
        return path.uri

    def snapshot(self, run_id: str, key: str) -> None:
        """Hold a copy of a run's adapter for sampling under `key`."""
        run = self.trainer.run(run_id)
        self.snapshots.put(key, self.bank.copy_out(run.adapter, run.spec))

    def load(self, run_id: str, path: CheckpointPath, *, optimizer: bool) -> LoraSpec:
        """Put a checkpoint's weights, and its optimizer state if asked, into a run.

        The run is made if it does not exist.
        """
        tensors, info = self._checkpoints.load(path)
        if info.fingerprint != self.backbone.fingerprint:
            raise BadRequestError(
                f"checkpoint must belong to the served model {self.backbone.name!r}, "
                f"{path.uri} was made for {info.base_model!r} with other weights"
            )
        if optimizer and not info.has_optimizer:
            raise BadRequestError(
                f"{path.uri} must hold optimizer state to be resumed with it; it was saved for "
                "sampling only"
            )
        spec = LoraSpec(**info.lora)
        weights = weights_from_tensors(tensors, spec)
        fresh = not self.trainer.has(run_id)
        if fresh:
            self.trainer.create(run_id, spec)
        try:
            self._restore(run_id, weights, tensors if optimizer else {})
        except BaseException:
            if fresh:
                self.trainer.delete(run_id)
            raise
        return spec

    def _restore(self, run_id: str, weights: LoraWeights, state: dict[str, torch.Tensor]) -> None:
        run = self.trainer.run(run_id)
        self.bank.write_back(run.adapter, weights)
        run.reset_optimizer()
        for name, parameter in run.parameters.items():
            held = {
                part: state[f"adam.{name}.{part}"]
                for part in ("step", "exp_avg", "exp_avg_sq")
                if f"adam.{name}.{part}" in state
            }
            if held:
                run.optimizer.state[parameter] = {
                    # AdamW wants its step counter on the CPU.
                    part: tensor if part == "step" else tensor.to(parameter)
                    for part, tensor in held.items()
                }

    def _optimizer_state(self, run_id: str) -> dict[str, torch.Tensor]:
        run = self.trainer.run(run_id)
        found: dict[str, torch.Tensor] = {}
        for name, parameter in run.parameters.items():
            for part, value in run.optimizer.state.get(parameter, {}).items():
                found[f"adam.{name}.{part}"] = value.detach().cpu().contiguous()
        return found

    def _decoder(self, weights: str) -> Decoder:
        if self.shares:
            return SharedDecoder(self.backbone.sampled, self._store, weights)
        return PlainDecoder(self.backbone.sampled)

    def _text(self, tokens: list[int]) -> str:
        text: str = self.backbone.tokenizer.decode(tokens, skip_special_tokens=False)
        return text

    def status(self) -> dict[str, Any]:
        """Counts for the status page."""
        return {
            "model": self.backbone.name,
            "shared_prompts": self.shares,
            "training_runs": self.trainer.count,
            "prefix_cache_bytes": self._store.nbytes,
            "prefix_cache_entries": len(self._store),
            **self.snapshots.status(),
            **self.sampler.status(),
        }


def probe(backbone: Backbone, scoring: PackedForward) -> bool:
    """Whether shared prompts give this model the logits that plain attention gives it.

    Asks the model itself: two sequences with a common beginning are scored plainly, packed in one
    row, and decoded over shared keys. An architecture with windows, sinks or state of another kind
    either refuses or disagrees, and is then served without sharing.
    """
    windows = getattr(backbone.sampled.config, "layer_types", None) or ["full_attention"]
    if any(kind != "full_attention" for kind in windows):
        log.info("%s: layers of kinds %s, prompts are not shared", backbone.name, set(windows))
        return False
    generator = np.random.default_rng(0)
    length = min(24, backbone.context // 2)
    prompt = generator.integers(0, backbone.vocabulary, length)
    pair = [
        np.concatenate([prompt, generator.integers(0, backbone.vocabulary, 4)]).astype(np.int32)
        for _ in range(2)
    ]
    plain = dataclasses.replace(scoring, share=False)
    try:
        expected = score(plain, pair, [0, 0])
        packed = score(scoring, pair, [0, 0])
        decoder = SharedDecoder(backbone.sampled, PrefixStore(1 << 20), "probe")
        decoded = decoder.admit([sequence[:length] for sequence in pair])
        for at in range(length, len(pair[0])):
            decoded = decoder.step(np.array([sequence[at] for sequence in pair], np.int64))
    except (
        RuntimeError,
        TypeError,
        ValueError,
        AttributeError,
        IndexError,
        AssertionError,
    ) as error:
        log.info("%s: prompts are not shared: %s", backbone.name, error)
        return False
    worst = max(
        float((other - last).abs().max())
        for (_, last, _), (_, tree, _), row in zip(expected, packed, decoded, strict=True)
        for other in (tree, row)
    )
    limit = PROBE_TOLERANCE.get(next(backbone.sampled.parameters()).dtype, 0.5)
    if not worst <= limit:
        log.info("%s: shared prompts are off by %.3g, not used", backbone.name, worst)
        return False
    return True
