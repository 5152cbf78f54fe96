"""Run a model over packed batches of sequences, for training and for scoring."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from tokengym.agents.service.engine.base_model import logits_at
from tokengym.agents.service.engine.packing import CostModel, PackedBatch, batches, pack, plan_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from tokengym.agents.service.engine.packing import Row, Tokens

# Logits are the largest tensor by far: this many of them at once, half a gigabyte in float32.
MAX_LOGITS = 1 << 27
MAX_POSITIONS = 16384


@dataclass(frozen=True)
class PackedForward:
    """How to run a model over many sequences.

    Attributes:
        model: a causal language model with plain (`sdpa` or `eager`) attention.
        device: where it lives.
        share: whether common prefixes are computed once.
        cost: what a row costs.
        max_positions: padded positions of one batch.
    """

    model: Any
    device: torch.device
    share: bool
    cost: CostModel
    max_positions: int

    def plan(self, sequences: Sequence[Tokens]) -> Iterator[list[Row]]:
        """Yield the rows of `sequences` in batches, longest first."""
        return batches(plan_rows(sequences, self.cost, self.share), self.max_positions)

    def logits(self, rows: list[Row]) -> tuple[PackedBatch, torch.Tensor]:
        """Run one batch; returns float32 logits [N, vocab] at the nodes of the packed batch."""
        batch = pack(rows, self.device, self.model.dtype)
        extra: dict[str, Any] = {}
        if batch.mask is not None:
            extra = {"position_ids": batch.position_ids, "attention_mask": batch.mask}
        with logits_at(self.model, batch.nodes):
            output = self.model(input_ids=batch.input_ids, use_cache=False, **extra)
        return batch, output.logits[0].float()


def packed_forward(model: Any, device: torch.device, share: bool) -> PackedForward:
    """Return a `PackedForward` with costs and batch size from the model's configuration."""
    config = model.config
    hidden = int(getattr(config, "hidden_size", 0) or 256)
    layers = int(getattr(config, "num_hidden_layers", 0) or 1)
    vocabulary = int(model.get_input_embeddings().weight.shape[0])
    weights = sum(parameter.numel() for parameter in model.parameters())
    return PackedForward(
        model=model,
        device=device,
        share=share,
        # Each pair of positions costs a score and a weighted sum in every layer.
        cost=CostModel(per_token=float(weights), per_pair=float(2 * layers * hidden)),
        max_positions=max(1, min(MAX_POSITIONS, MAX_LOGITS // vocabulary)),
    )


def target_logprobs(logits: torch.Tensor, rows: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """Return the log-probabilities of `tokens` [M] at `rows` [M] of `logits` [N, vocab]."""
    return logits[rows, tokens] - torch.logsumexp(logits, dim=-1)[rows]


def score(
    forward: PackedForward, sequences: Sequence[Tokens], topk: Sequence[int]
) -> list[tuple[NDArray[np.float32], torch.Tensor, tuple[NDArray[np.int32], Any] | None]]:
    """Score sequences under a model, without gradients.

    For each sequence of length n: the log-probability of every token given those before it
    (float32 [n], NaN first), the logits that follow the last token, and, where `topk` is positive,
    ids and log-probabilities [n, k] of the likeliest tokens at each place.
    """
    results: dict[int, Any] = {}
    with torch.inference_mode():
        for rows in forward.plan(sequences):
            batch, logits = forward.logits(rows)
            normaliser = torch.logsumexp(logits, dim=-1)
            for member, node in batch.node_of.items():
                tokens = torch.from_numpy(sequences[member].astype(np.int64)).to(logits.device)
                at = torch.from_numpy(node).to(logits.device)
                picked = logits[at[:-1], tokens[1:]] - normaliser[at[:-1]]
                values = np.full(len(node), np.nan, np.float32)
                values[1:] = picked.cpu().numpy()
                best = None
                if topk[member] > 0:
                    best = _best(logits[at[:-1]], normaliser[at[:-1]], topk[member])
                results[member] = (values, logits[at[-1]].clone(), best)
    return [results[index] for index in range(len(sequences))]


def _best(
    logits: torch.Tensor, normaliser: torch.Tensor, k: int
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    top = torch.topk(logits - normaliser[:, None], k, dim=-1)
    # The first token has nothing before it: the SDK reads (0, -99999) as "not computed".
    ids = np.zeros((len(logits) + 1, k), np.int32)
    values = np.full((len(logits) + 1, k), -99999.0, np.float32)
    ids[1:] = top.indices.cpu().numpy()
    values[1:] = top.values.cpu().numpy()
    return ids, values
