"""Sample one token per row of logits, with a temperature, top-k, top-p and seed for each row.

A row's random number is a hash of (seed, sample, position) alone, so its tokens do not depend on
which other rows are in the batch.

The log-probability returned is that of the model's own distribution: temperature, top-k and
top-p shape the choice, not the number. forward_backward computes the same number for the same
token, but for rounding, so the importance ratio of a fresh sample is one at every temperature.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from tinker.types import SamplingParams

# splitmix64: the increment and the two multipliers of its finaliser.
_STEP, _MIX_1, _MIX_2 = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_MASK = (1 << 64) - 1


def sequence_key(seed: int, sample: int) -> int:
    """Return the 64-bit key of one sample of a request."""
    seeds, samples = (np.array([n], np.uint64) for n in (seed & _MASK, sample + 1))
    return int(_mixed(_mixed(seeds) ^ _mixed(samples * _STEP))[0])


def uniforms(keys: NDArray[np.uint64], positions: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return a number in [0, 1) for each (key, position)."""
    mixed = _mixed(keys + positions.astype(np.uint64) * _STEP)
    return np.asarray((mixed >> 11).astype(np.float64) * 2.0**-53)


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return a hash of each number."""
    mixed: NDArray[Any] = values + _STEP
    mixed = (mixed ^ (mixed >> 30)) * _MIX_1
    mixed = (mixed ^ (mixed >> 27)) * _MIX_2
    return np.asarray(mixed ^ (mixed >> 31), np.uint64)


def sample_tokens(
    logits: torch.Tensor,
    samplings: list[SamplingParams],
    numbers: NDArray[np.float64],
    missing: torch.Tensor | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.float32], torch.Tensor]:
    """Sample a token for every row.

    Args:
        logits: float32 [R, vocab].
        samplings: temperature, top-k and top-p of each row.
        numbers: a uniform number in [0, 1) for each row.
        missing: ids that are never sampled.

    Returns:
        token ids [R], their log-probabilities [R] and all log-probabilities [R, vocab].
    """
    logprobs = torch.log_softmax(logits, dim=-1)
    if missing is not None:
        logits = logits.index_fill(-1, missing, -torch.inf)
    temperature = np.array([sampling.temperature for sampling in samplings])
    greedy = np.flatnonzero(temperature == 0)
    if np.all(temperature == 1.0):
        weights = torch.softmax(logits, dim=-1)
    else:
        divisor = torch.from_numpy(np.where(temperature == 0, 1.0, temperature)).to(logits)
        weights = torch.softmax(logits / divisor[:, None], dim=-1)
    cut = [
        row
        for row, sampling in enumerate(samplings)
        if sampling.temperature > 0 and (sampling.top_k > 0 or sampling.top_p < 1.0)
    ]
    if cut:
        index = torch.tensor(cut, device=logits.device)
        weights[index] = _filtered(weights[index], [samplings[row] for row in cut])
    tokens = _drawn(weights, torch.from_numpy(numbers).to(logits.device))
    if len(greedy):
        index = torch.from_numpy(greedy).to(logits.device)
        tokens[index] = torch.argmax(logits[index], dim=-1)
    picked = logprobs.gather(-1, tokens[:, None]).squeeze(-1)
    return tokens.cpu().numpy(), picked.cpu().numpy(), logprobs


def _drawn(weights: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
    """Return a token of each row [R] in proportion to `weights` [R, vocab].

    In double precision: in single, tokens of probability below 1e-7 would be unreachable.
    """
    cumulative = torch.cumsum(weights, dim=-1, dtype=torch.float64)
    total = cumulative[:, -1:]
    # Rounded to the total itself it would fall behind all weights, on one that may be zero.
    target = torch.minimum(numbers[:, None] * total, total * (1.0 - 2.0**-53))
    # A temperature next to zero makes weights that are no numbers, and the place would be behind.
    last = weights.shape[-1] - 1
    return torch.searchsorted(cumulative, target, right=True).clamp_(max=last)[:, 0]


def _filtered(weights: torch.Tensor, samplings: list[SamplingParams]) -> torch.Tensor:
    vocabulary = weights.shape[-1]
    ordered, order = torch.sort(weights, dim=-1, descending=True, stable=True)
    k = torch.tensor(
        [s.top_k if 0 < s.top_k < vocabulary else vocabulary for s in samplings],
        device=weights.device,
    )
    p = torch.tensor([s.top_p for s in samplings], device=weights.device, dtype=torch.float64)
    rank = torch.arange(vocabulary, device=weights.device)
    ordered = torch.where(rank < k[:, None], ordered, 0.0)
    before = torch.cumsum(ordered, dim=-1, dtype=torch.float64)
    total = before[:, -1:].clone()
    before -= ordered
    # A token stays while those likelier than it have less than p; the likeliest always stays.
    keep = (before < p[:, None] * total) | (rank == 0)
    # Back in vocabulary order: in sorted order two near-equal tokens could change places with
    # the rounding of another batch, and the sampled token with them.
    return torch.zeros_like(weights).scatter(-1, order, torch.where(keep, ordered, 0.0))
