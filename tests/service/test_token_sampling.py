"""A draw follows the shaped distribution, depends on its own seed, and reports the raw one."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from tinker.types import SamplingParams

from tokengym.agents.service.generation.token_sampling import sample_tokens, sequence_key, uniforms

logit_lists = st.lists(st.floats(-5, 5, width=32), min_size=2, max_size=12)
GRID = 2000


def _shares(logits: list[float], draw: SamplingParams) -> np.ndarray:
    """The share of each token when the uniform numbers are an even grid: no luck involved."""
    rows = torch.tensor([logits]).expand(GRID, -1)
    tokens, _, _ = sample_tokens(rows, [draw] * GRID, (np.arange(GRID) + 0.5) / GRID)
    return np.bincount(tokens, minlength=len(logits)) / GRID


def _softmax(logits: np.ndarray) -> np.ndarray:
    weights = np.exp(logits - logits.max())
    return np.asarray(weights / weights.sum())


@settings(deadline=None)
@given(logit_lists, st.floats(0.3, 3.0))
def test_tokens_are_drawn_from_the_tempered_distribution(
    logits: list[float], temperature: float
) -> None:
    expected = _softmax(np.array(logits) / temperature)
    got = _shares(logits, SamplingParams(seed=0, temperature=temperature))
    np.testing.assert_allclose(got, expected, atol=1.5 / GRID)


@settings(deadline=None)
@given(st.integers(1, 300), st.integers(0, 2**32 - 1))
def test_tokens_are_drawn_where_the_running_sum_passes(vocabulary: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    logits = torch.from_numpy(4.0 * generator.normal(size=(50, vocabulary))).float()
    numbers = generator.random(50)
    tokens, _, _ = sample_tokens(logits, [SamplingParams(seed=0)] * 50, numbers)
    sums = np.cumsum(torch.softmax(logits.double(), -1).numpy(), -1)
    at = np.arange(50), tokens
    # Single precision moves the borders between tokens, and moves none past its neighbour.
    assert (sums[at] >= numbers - 1e-6).all()
    assert (sums[at] - torch.softmax(logits.double(), -1).numpy()[at] <= numbers + 1e-6).all()


def test_only_tokens_with_weight_can_be_drawn() -> None:
    # A half, one in 10^9, nothing, the other half.
    logits = torch.full((1, 200), -torch.inf)
    logits[0, [0, 1, 150]] = torch.tensor([0.5, 1e-9, 0.5]).log()

    def drawn(number: float) -> int:
        return int(sample_tokens(logits, [SamplingParams(seed=0)], np.array([number]))[0][0])

    border = 0.5 / (1.0 + 1e-9)
    assert [drawn(border + by * 1e-9) for by in (-0.5, 0.5, 1.5)] == [0, 1, 150]
    assert [drawn(0.0), drawn(1.0 - 2.0**-53)] == [0, 150]


@settings(deadline=None)
@given(logit_lists, st.integers(1, 14))
def test_top_k_keeps_the_k_likeliest_in_proportion(logits: list[float], k: int) -> None:
    # In the draw's own precision, where two logits a hair apart are equally likely.
    weights = torch.log_softmax(torch.tensor(logits), -1).exp().double().numpy()
    kept = np.argsort(-weights, kind="stable")[:k]
    below = np.delete(weights, kept)
    assume(not any(0.0 < abs(weights[kept[-1]] - weight) < 1e-6 for weight in below))
    expected = np.zeros(len(logits))
    expected[kept] = weights[kept] / weights[kept].sum()
    np.testing.assert_allclose(
        _shares(logits, SamplingParams(seed=0, top_k=k)), expected, atol=1.5 / GRID
    )


@pytest.mark.nightly
@settings(deadline=None)
@given(logit_lists, st.sampled_from((-1, *range(1, 9))), st.floats(0.05, 0.99))
# Two of .4, .3, .2 and .1 are kept, and the first has more than half of their sum.
@example([-0.9163, -1.2040, -1.6094, -2.3026], 2, 0.5)
def test_top_p_counts_among_the_tokens_that_top_k_keeps(
    logits: list[float], k: int, p: float
) -> None:
    weights = np.sort(_softmax(np.array(logits)))[::-1]
    kept = weights[: k if k > 0 else None]
    kept = kept / kept.sum()
    before = np.cumsum(kept) - kept
    # Rounding may decide where tokens are as likely as each other, or reach p exactly.
    assume(np.abs(before - p).min() > 1e-4 and (np.diff(weights) < -1e-4).all())
    expected = np.where(before < p, kept, 0.0)
    shares = np.sort(_shares(logits, SamplingParams(seed=0, top_k=k, top_p=p)))[::-1]
    assert np.count_nonzero(shares[len(kept) :]) == 0
    np.testing.assert_allclose(shares[: len(kept)], expected / expected.sum(), atol=1.5 / GRID)


@settings(deadline=None)
@given(logit_lists, st.floats(0.0, 2.0), st.integers(1, 4))
def test_the_reported_number_is_the_models_own_log_probability(
    logits: list[float], temperature: float, k: int
) -> None:
    draw = SamplingParams(seed=0, temperature=temperature, top_k=k, top_p=0.9)
    tokens, logprobs, _ = sample_tokens(torch.tensor([logits]), [draw], np.array([0.3]))
    expected = np.log(_softmax(np.array(logits)))[tokens[0]]
    np.testing.assert_allclose(logprobs[0], expected, atol=1e-5)


@settings(deadline=None)
@given(st.integers(0, 2**64 - 1), st.integers(1, 30))
def test_a_row_draws_the_same_in_every_batch(seed: int, others: int) -> None:
    generator = np.random.default_rng(others)
    logits = torch.from_numpy(generator.normal(size=(others + 1, 50)).astype(np.float32))
    keys = np.array(
        [sequence_key(seed, 0), *(sequence_key(1, i) for i in range(others))], np.uint64
    )
    places = np.full(others + 1, 3)
    samplings = [SamplingParams(seed=seed, top_p=0.9)] + [
        SamplingParams(seed=1, temperature=0.5, top_k=5)
    ] * others
    together, _, _ = sample_tokens(logits, samplings, uniforms(keys, places))
    alone, _, _ = sample_tokens(logits[:1], samplings[:1], uniforms(keys[:1], places[:1]))
    assert together[0] == alone[0]


def test_random_numbers_are_even_and_differ_by_place() -> None:
    keys = np.array(
        [sequence_key(seed, sample) for seed in range(50) for sample in range(8)], np.uint64
    )
    assert len(set(keys.tolist())) == len(keys)
    grid = np.concatenate([uniforms(keys, np.full(len(keys), place)) for place in range(25)])
    assert len(np.unique(grid)) == len(grid)
    assert grid.min() >= 0
    assert grid.max() < 1
    # 10,000 numbers: the standard error of a tenth's share is 0.003.
    shares = np.histogram(grid, bins=10, range=(0, 1))[0] / len(grid)
    np.testing.assert_allclose(shares, 0.1, atol=0.015)


def test_ids_without_a_token_are_never_sampled() -> None:
    logits = torch.tensor([[0.0, 3.0, 1.0, 9.0]]).repeat(200, 1)
    numbers = np.linspace(0, 1, 200, endpoint=False)
    for temperature in (0.0, 0.7, 1.0):
        draws = [SamplingParams(seed=1, temperature=temperature)] * 200
        found, logprobs, every = sample_tokens(logits, draws, numbers, torch.tensor([1, 3]))
        assert set(found.tolist()) == ({2} if temperature == 0 else {0, 2})
        expected = torch.log_softmax(logits, -1)
        np.testing.assert_allclose(every.numpy(), expected.numpy())
        np.testing.assert_allclose(logprobs, expected.numpy()[np.arange(200), found])
