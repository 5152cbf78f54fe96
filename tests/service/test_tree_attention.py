"""Attention in blocks: the values and gradients of dense attention under a mask."""

from __future__ import annotations

import pytest
import torch

from tokengym.agents.service.engine.chunk_sizes import PROCESSOR
from tokengym.agents.service.engine.tree_attention import cut_blocks, tree_attention

HEADS, KV_HEADS, WIDTH = 6, 2, 16
CPU = torch.device("cpu")
MOST = PROCESSOR.queries


Runs = list[tuple[tuple[slice, ...], slice]]


def _runs(prompt: int, replies: list[int], alone: list[int]) -> Runs:
    """A prompt with its replies, one reply after half of another, sequences without a prefix."""
    runs: Runs = [((), slice(0, prompt))]
    at = prompt
    for length in replies:
        runs.append(((slice(0, prompt),), slice(at, at + length)))
        at += length
    if replies:
        half = slice(at - replies[-1], at - replies[-1] // 2)
        runs.append(((slice(0, prompt), half), slice(at, at + 6)))
        at += 6
    for length in alone:
        runs.append(((), slice(at, at + length)))
        at += length
    return runs


def _dense(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, runs: Runs) -> torch.Tensor:
    count = query.shape[1]
    sees = torch.zeros(count, count, dtype=torch.bool)
    for prefix, own in runs:
        for part in prefix:
            sees[own, part] = True
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


def test_no_block_is_larger_than_the_cache_it_is_made_for() -> None:
    for block in cut_blocks(_runs(*SHAPES[-1]), CPU):
        assert 1 <= block.own.stop - block.own.start <= MOST
        assert block.mask.shape[0] == block.own.stop - block.own.start
