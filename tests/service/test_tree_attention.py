"""Attention in blocks: the values and gradients of dense attention under a mask."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from tokengym.agents.service.engine.attention import Decode, Prefill
from tokengym.agents.service.engine.attention_dtype import TILE
from tokengym.agents.service.engine.chunk_sizes import PROCESSOR
from tokengym.agents.service.engine.tree_attention import cut_blocks, tree_attention

HEADS, KV_HEADS, WIDTH = 6, 2, 16
CPU = torch.device("cpu")
MOST = PROCESSOR.queries


Runs = list[tuple[NDArray[np.int64], slice]]


def _runs(prompt: int, replies: list[int], alone: list[int]) -> Runs:
    """A prompt with its replies, one reply after half of another, sequences without a prefix."""
    none = np.empty(0, np.int64)
    runs: Runs = [(none, slice(0, prompt))]
    at = prompt
    for length in replies:
        runs.append((np.arange(prompt), slice(at, at + length)))
        at += length
    if replies:
        half = np.arange(at - replies[-1], at - replies[-1] // 2)
        runs.append((np.r_[0:prompt, half], slice(at, at + 6)))
        at += 6
    for length in alone:
        runs.append((none, slice(at, at + length)))
        at += length
    return runs


def _dense(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, runs: Runs) -> torch.Tensor:
    count = query.shape[1]
    sees = torch.zeros(count, count, dtype=torch.bool)
    for prefix, own in runs:
        sees[own, torch.from_numpy(prefix)] = True
        length = own.stop - own.start
        sees[own, own] = torch.ones(length, length, dtype=torch.bool).tril()
    repeat = HEADS // KV_HEADS
    scores = 0.25 * query @ key.repeat_interleave(repeat, 0).transpose(1, 2)
    weights = torch.softmax(scores.masked_fill(~sees, -torch.inf), dim=-1)
    return weights @ value.repeat_interleave(repeat, 0)


SHAPES = [
    (20, [5, 9, 7], [11]),
    (0, [], [3, 1, 2]),
    (MOST + 3, [MOST + 40, 1, MOST], [2 * MOST + 1]),
]


@pytest.mark.parametrize(("dtype", "limit"), [(torch.float32, 1e-5), (torch.bfloat16, 2e-2)])
@pytest.mark.parametrize(("prompt", "replies", "alone"), SHAPES)
def test_values_and_gradients_are_those_of_dense_attention(
    prompt: int, replies: list[int], alone: list[int], dtype: torch.dtype, limit: float
) -> None:
    torch.manual_seed(0)
    runs = _runs(prompt, replies, alone)
    count = runs[-1][1].stop
    parts = [
        torch.randn(heads, count, WIDTH).to(dtype).requires_grad_()
        for heads in (HEADS, KV_HEADS, KV_HEADS)
    ]
    query, key, value = parts
    found = tree_attention(query, key, value, cut_blocks(runs, CPU), 0.25)
    expected = _dense(query.float(), key.float(), value.float(), runs)
    assert float((found - expected).detach().abs().max()) < limit
    upstream = torch.randn_like(expected)
    for gradient, reference in zip(
        torch.autograd.grad(found, parts, upstream.to(dtype)),
        torch.autograd.grad(expected, parts, upstream),
        strict=True,
    ):
        assert float((gradient - reference).norm() / reference.norm()) < limit


def test_no_block_exceeds_the_cache_it_is_for() -> None:
    for block in cut_blocks(_runs(*SHAPES[-1]), CPU):
        assert 1 <= block.own.stop - block.own.start <= MOST
        assert block.mask.shape[0] == block.own.stop - block.own.start


def test_decoded_bfloat16_equals_training_to_the_bit() -> None:
    torch.manual_seed(0)
    length = 4 * TILE + 200
    query, key, value = (
        2 * torch.randn(heads, length, WIDTH).bfloat16() for heads in (HEADS, KV_HEADS, KV_HEADS)
    )

    def attended(start: int, stop: int) -> torch.Tensor:
        """Continue a conversation of `start` tokens, beside a short one that begins."""
        past = [torch.stack([key, value])[:, None, :, part] for part in _cut(start)]
        none = np.empty(0, np.int64)
        runs: Runs = [(np.arange(start), slice(start, stop)), (none, slice(stop, stop + 9))]
        q, k, v = (
            torch.cat([x[:, start:stop], x[:, :9]], dim=1)[None] for x in (query, key, value)
        )
        found = Prefill(cut_blocks(runs, CPU), past).attend(0, q, k, v, 0.25)[0]
        return found[:, : stop - start]

    whole: Runs = [(np.empty(0, np.int64), slice(0, length))]
    trained = tree_attention(query, key, value, cut_blocks(whole, CPU), 0.25)
    for start, stop in ((0, 11), (3, 40), (300, 700), (TILE, 2 * TILE), (length - 60, length)):
        assert torch.equal(attended(start, stop), trained[:, start:stop])
    # Rows of all lengths side by side, one slot in between idle.
    ends = torch.tensor([0, 14, 129, TILE - 1, TILE, 3 * TILE + 5, length - 1])
    slots = torch.tensor([0, 1, 2, 4, 5, 6, 7])
    states = torch.stack([key, value])[:, None].repeat(1, 8, 1, 1, 1)
    states = torch.nn.functional.pad(states, (0, 0, 0, 5 * TILE - length))
    mask = torch.zeros(8, 1, 1, 5 * TILE)
    for slot, end in zip(slots, ends, strict=True):
        mask[slot, ..., end + 1 :] = torch.finfo(mask.dtype).min
        states[:, slot, :, end] = 0
    q, k, v = (x[:, ends].transpose(0, 1)[:, :, None] for x in (query, key, value))
    decoded = Decode([states], mask, (slots, ends)).attend(0, q, k, v, 0.25)
    assert torch.equal(decoded[:, :, 0].bfloat16(), trained[:, ends].transpose(0, 1))


def _cut(length: int) -> list[slice]:
    """Parts of uneven length, as turns of a conversation."""
    edges = [0, *range(7, length, 101), length]
    return [slice(*pair) for pair in itertools.pairwise(edges) if pair[0] < pair[1]]
