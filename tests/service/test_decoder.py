"""Decoding over shared prompts gives, row by row, what the whole sequence alone would give."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.service.toy import VOCABULARY, make_model
from tokengym.agents.service.engine.attention_dtype import TILE
from tokengym.agents.service.engine.base_model import BaseModel, load_base_model
from tokengym.agents.service.engine.forward import packed_forward, score
from tokengym.agents.service.generation.decoder import SlotDecoder
from tokengym.agents.service.generation.plain_decoder import PlainDecoder
from tokengym.agents.service.generation.prefix_cache import PrefixCache
from tokengym.agents.service.generation.trials import supports_shared_prompts

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

tokens = st.lists(st.integers(0, VOCABULARY - 1), min_size=1, max_size=20)
# Many begin alike, as the prompts of a world do.
openings = st.sampled_from((0, 9, 14)).map(
    lambda length: [3 * k % VOCABULARY for k in range(length)]
)
prompts = st.tuples(openings, tokens).map(lambda parts: [*parts[0], *parts[1]])
# Rounds of a batch's life: prompts that join, then steps, then the places of rows that leave.
rounds = st.lists(
    st.tuples(
        st.lists(prompts, min_size=1, max_size=4),
        st.integers(1, 4),
        st.lists(st.integers(0, 8), max_size=3),
    ),
    min_size=1,
    max_size=4,
)


@pytest.fixture(scope="module")
def base_model(model_dir: Path) -> BaseModel:
    return load_base_model(model_dir, "cpu")


@pytest.fixture(scope="module")
def rounded(model_dir: Path) -> BaseModel:
    return load_base_model(model_dir, "cpu", "bfloat16")


def _alone(model: Any, sequence: list[int]) -> np.ndarray:
    with torch.inference_mode():
        return np.asarray(model(input_ids=torch.tensor([sequence])).logits[0, -1].float().numpy())


def _live(model: Any, decoder: Any, life: list[tuple[list[list[int]], int, list[int]]]) -> None:
    """Play a batch's life and compare every row's logits with those of its sequence alone."""
    rows: list[list[int]] = []
    generator = np.random.default_rng(0)
    for joining, steps, leaving in life:
        # Two rows of each prompt: a group.
        fresh = [list(prompt) for prompt in joining for _ in range(2)]
        logits = decoder.admit([np.array(prompt, np.int32) for prompt in fresh])
        for row, prompt in enumerate(fresh):
            np.testing.assert_allclose(logits[row].numpy(), _alone(model, prompt), atol=3e-4)
        rows.extend(fresh)
        for _ in range(steps):
            tokens = generator.integers(0, VOCABULARY, len(rows))
            logits = decoder.step(tokens)
            for sequence, token in zip(rows, tokens.tolist(), strict=True):
                sequence.append(token)
        for row, sequence in enumerate(rows):
            np.testing.assert_allclose(logits[row].numpy(), _alone(model, sequence), atol=3e-4)
        left = [row for row in range(len(rows)) if row not in leaving] or [0]
        # In any order: the sampler moves the last rows into the places that fall free.
        left = left[::-1] if steps % 2 else left
        for row in set(range(len(rows))) - set(left):
            decoder.remember(row, np.array(rows[row], np.int32))
        decoder.keep(left)
        rows = [rows[row] for row in left]


@pytest.mark.nightly
@settings(max_examples=20, deadline=None)
@given(rounds)
def test_rows_that_join_and_leave_do_not_disturb_the_others(
    base_model: BaseModel, life: list[tuple[list[list[int]], int, list[int]]]
) -> None:
    _live(base_model.sampled, SlotDecoder(base_model.sampled, PrefixCache(1 << 24), "w"), life)


@pytest.mark.nightly
@settings(max_examples=4, deadline=None)
@given(rounds)
def test_rows_in_bfloat16_get_the_bits_that_training_computes(
    rounded: BaseModel, life: list[tuple[list[list[int]], int, list[int]]]
) -> None:
    forward = packed_forward(rounded.trained, rounded.device, share=True)
    decoder = SlotDecoder(rounded.sampled, PrefixCache(1 << 24), "w")
    rows: list[NDArray[np.int32]] = []
    gone: list[NDArray[np.int32]] = []
    generator = np.random.default_rng(0)
    # A long conversation comes and goes with each round: all rows move to other buffers.
    for joining, steps, leaving in life:
        fresh = [np.array(prompt, np.int32) for prompt in (*joining, *joining, [7] * (TILE - 2))]
        # The next turn of some that have left.
        fresh += [np.append(row, joining[0]).astype(np.int32) for row in gone]
        logits = decoder.admit(fresh)
        for prompt, found in zip(fresh, logits, strict=True):
            assert torch.equal(found, score(forward, [prompt])[0].last)
        rows += fresh
        for _ in range(steps):
            tokens = generator.integers(0, VOCABULARY, len(rows))
            logits = decoder.step(tokens)
            rows = [np.append(row, one) for row, one in zip(rows, tokens, strict=True)]
            rows = [row.astype(np.int32) for row in rows]
        for tokens_read, found in zip(rows, logits, strict=True):
            assert torch.equal(found, score(forward, [tokens_read])[0].last)
        left = [row for row in range(len(rows)) if row not in (*leaving, len(rows) - 1)] or [0]
        ended = sorted(set(range(len(rows))) - set(left))
        for row in ended:
            decoder.remember(row, rows[row])
        decoder.keep(left)
        rows, gone = [rows[row] for row in left], [rows[row] for row in ended[:2]]


def test_long_prompts_do_not_displace_many_short_ones(
    base_model: BaseModel,
) -> None:
    decoder = SlotDecoder(base_model.sampled, PrefixCache(1 << 24), "w")
    short = [[start, *range(20)] for start in range(12)]
    long = [[start, *([7] * length)] for start, length in ((20, 70), (21, 130))]
    _live(
        base_model.sampled, decoder, [(short, 2, [*range(21)]), (long, 2, []), ([[3] * 9], 1, [])]
    )
    assert len(decoder._shared) <= 6
    assert decoder._shared.room == 192


@pytest.mark.parametrize("alone", [0, 3, 40])
def test_large_groups_do_not_displace_prompts_sampled_once(
    base_model: BaseModel, alone: int
) -> None:
    decoder = SlotDecoder(base_model.sampled, PrefixCache(1 << 24), "w")
    single = [np.array([start, *range(40)], np.int32) for start in range(alone)]
    decoder.admit([*[np.arange(60, dtype=np.int32)] * 32, *single])
    decoder.step(np.zeros(32 + alone, np.int64))
    held = sum(len(slots) * slots.room for slots in (decoder._own, decoder._shared))
    # The sampler leaves as much again as rows and prompts take, for room to spare.
    assert held <= 2 * ((32 + alone) * decoder._own.room + (1 + alone) * decoder._shared.room)


@pytest.mark.nightly
@settings(max_examples=5, deadline=None)
@given(rounds)
def test_the_plain_decoder_keeps_the_same_law(
    base_model: BaseModel, life: list[tuple[list[list[int]], int, list[int]]]
) -> None:
    _live(base_model.sampled, PlainDecoder(base_model.sampled), life)


@pytest.mark.parametrize(("precision", "near"), [("float32", 3e-4), ("bfloat16", 0.02)])
def test_a_continued_prompt_computes_only_new_tokens(
    model_dir: Path, precision: str, near: float
) -> None:
    base_model = load_base_model(model_dir, "cpu", precision)
    store = PrefixCache(1 << 24)
    first = SlotDecoder(base_model.sampled, store, "w")
    prompt = list(range(20))
    first.admit([np.array(prompt, np.int32)])
    for token in (30, 31, 32):
        first.step(np.array([token]))
    talk = [*prompt, 30, 31, 32]
    first.remember(0, np.array(talk, np.int32))
    longer = np.array([*talk, 40, 41], np.int32)
    found = store.find("w", longer)
    assert found is not None
    assert found.length == len(talk)
    logits = SlotDecoder(base_model.sampled, store, "w").admit([longer])
    np.testing.assert_allclose(
        logits[0].numpy(), _alone(base_model.sampled, longer.tolist()), atol=near
    )
    assert store.find("other weights", longer) is None


def test_the_prefix_store_holds_no_more_than_its_bytes(base_model: BaseModel) -> None:
    store = PrefixCache(200_000)
    for start in range(40):
        decoder = SlotDecoder(base_model.sampled, store, "w")
        decoder.admit([np.arange(start, start + 30, dtype=np.int32)])
        assert store.nbytes <= 200_000
    assert 0 < len(store) < 40
    store.forget("w")
    assert (len(store), store.nbytes) == (0, 0)


def test_rounding_is_no_reason_not_to_share_prompts(model_dir: Path) -> None:
    served = load_base_model(model_dir, "cpu", "bfloat16")
    scoring = packed_forward(served.sampled, served.device, share=True)
    assert supports_shared_prompts(served, scoring)


@pytest.mark.parametrize(("kind", "shares"), [("llama", True), ("gpt2", True), ("mistral", False)])
def test_every_architecture_is_served_and_windows_are_never_shared(
    tmp_path: Path, kind: str, shares: bool
) -> None:
    served = load_base_model(make_model(tmp_path / kind, kind), "cpu")
    assert (
        supports_shared_prompts(served, packed_forward(served.sampled, served.device, share=True))
        is shares
    )
    life = [([list(range(30)), [5] * 12], 4, [0]), ([[7, 8, 9]], 3, [])]
    decoder: Any = (
        SlotDecoder(served.sampled, PrefixCache(1 << 24), "w")
        if shares
        else PlainDecoder(served.sampled)
    )
    _live(served.sampled, decoder, life)
