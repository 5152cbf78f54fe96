"""Our attention gives the values and gradients of dense attention under a mask."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from tokengym.agents.service.engine.attention import Decoding, Group, KeptPass, Layer, Packed

HEADS, KV_HEADS, WIDTH = 6, 2, 16
TILE = 256
"""Keys that a kernel reads at once, or a divisor."""
Shape = tuple[int, list[int]]
"""The length of a prompt and those of the sequences that go on from it."""


def _groups(shapes: list[Shape]) -> list[Group]:
    edges = itertools.pairwise(
        itertools.accumulate((n for prompt, rests in shapes for n in (prompt, *rests)), initial=0)
    )
    parts = iter([slice(*pair) for pair in edges])
    return [Group(next(parts), [next(parts) for _ in rests]) for _, rests in shapes]


def _dense(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    groups: list[Group],
    window: int | None,
) -> torch.Tensor:
    count = query.shape[2]
    sees = torch.zeros(count, count, dtype=torch.bool)
    for prompt, rests in groups:
        for own in (prompt, *rests):
            for row in range(own.start, own.stop):
                seen = [*range(prompt.start, prompt.stop), *range(own.start, row + 1)]
                seen = seen if own is not prompt else seen[: row + 1 - prompt.start]
                sees[row, seen[-(window or count) :]] = True
    repeat = HEADS // KV_HEADS
    scores = 0.25 * query @ key.repeat_interleave(repeat, 1).transpose(2, 3)
    weights = torch.softmax(scores.masked_fill(~sees, -torch.inf), dim=-1)
    return weights @ value.repeat_interleave(repeat, 1)


@pytest.mark.parametrize("window", [None, 6, TILE])
@pytest.mark.parametrize(("dtype", "limit"), [(torch.float32, 1e-5), (torch.bfloat16, 2e-2)])
@pytest.mark.parametrize(
    "shapes",
    [
        [(20, [5, 9, 7]), (0, [11])],
        [(0, [3]), (0, [1]), (0, [2])],
        [(TILE + 3, [TILE + 40, 1, TILE]), (0, [2 * TILE + 1])],
    ],
)
def test_values_and_gradients_are_those_of_dense_attention(
    shapes: list[Shape], dtype: torch.dtype, limit: float, window: int | None
) -> None:
    torch.manual_seed(0)
    groups = _groups(shapes)
    count = groups[-1].rests[-1].stop
    parts = [
        torch.randn(1, heads, count, WIDTH).to(dtype).requires_grad_()
        for heads in (HEADS, KV_HEADS, KV_HEADS)
    ]
    query, key, value = parts
    found = Packed(groups).attend(Layer(0, 0.25, window), query, key, value)
    expected = _dense(query.float(), key.float(), value.float(), groups, window)
    assert float((found - expected).detach().abs().max()) < limit
    upstream = torch.randn_like(expected)
    for gradient, reference in zip(
        torch.autograd.grad(found, parts, upstream.to(dtype)),
        torch.autograd.grad(expected, parts, upstream),
        strict=True,
    ):
        assert float((gradient - reference).norm() / reference.norm()) < limit


@pytest.mark.parametrize(("dtype", "limit"), [(torch.float32, 1e-5), (torch.bfloat16, 4e-2)])
@pytest.mark.parametrize("window", [None, 100])
def test_read_and_decoded_rows_are_those_of_training(
    dtype: torch.dtype, limit: float, window: int | None
) -> None:
    torch.manual_seed(0)
    layer = Layer(0, 0.25, window)
    length, slots = 4 * TILE + 200, 9
    query, key, value = (
        2 * torch.randn(1, heads, length, WIDTH).to(dtype) for heads in (HEADS, KV_HEADS, KV_HEADS)
    )
    trained = Packed([Group(slice(0, 0), [slice(0, length)])]).attend(layer, query, key, value)
    states = torch.zeros(2, slots, KV_HEADS, length + 7, WIDTH, dtype=dtype)
    ends = [0, 14, 129, TILE - 1, TILE, 3 * TILE + 5, length - 1]
    used = [0, 1, 2, 4, 5, 6, 7]  # One slot in between is idle, and one at the end.
    for cuts in ([0, *range(7, length, 101)], [0, 3, 40, 300, 700]):
        # Slots are read in turns, those of all lengths side by side.
        for start, stop in itertools.pairwise([*cuts, length]):
            reads = [(s, e) for s, e in zip(used, ends, strict=True) if start < e]
            if not reads:
                continue
            counts = [min(e, stop) - start for _, e in reads]
            q, k, v = (
                torch.cat([part[:, :, start : start + n] for n in counts], 2)
                for part in (query, key, value)
            )
            state = KeptPass([states], [s for s, _ in reads], [start] * len(reads), counts)
            read = state.attend(layer, q, k, v).split(counts, 2)
            for n, part in zip(counts, read, strict=True):
                assert float((part - trained[:, :, start : start + n]).abs().max()) <= limit
    for apart in (False, True):
        q, k, v = (part[0, :, ends].transpose(0, 1)[:, :, None] for part in (query, key, value))
        q, k, v = (torch.cat([part, part[:2]]) for part in (q, k, v))
        decoding = Decoding([states], np.array(used), np.array(ends), apart)
        decoded = decoding.attend(layer, q, k, v)
        assert decoded.shape[0] == len(used) + 2
        gaps = decoded[: len(used), :, 0] - trained[0, :, ends].transpose(0, 1)
        assert float(gaps.abs().max()) <= limit
