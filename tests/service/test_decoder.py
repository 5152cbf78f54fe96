"""Decoding kept conversations gives, row by row, what the whole sequence alone would give."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import psutil
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.service.toy import VOCABULARY, make_model
from tokengym.agents.service.engine.base_model import BaseModel
from tokengym.agents.service.errors import ModelDirectoryError
from tokengym.agents.service.generation.decoder import KeptDecoder, _zeros
from tokengym.agents.service.served_model import check_attention

if TYPE_CHECKING:
    from pathlib import Path

tokens = st.lists(st.integers(0, VOCABULARY - 1), min_size=1, max_size=20)
# Many begin alike, as the prompts of a world do.
openings = st.sampled_from((0, 9, 14)).map(
    lambda length: [3 * k % VOCABULARY for k in range(length)]
)
prompts = st.tuples(openings, tokens).map(lambda parts: [*parts[0], *parts[1]])
# Rounds of a decoder's life: prompts that join, then steps, then the places of rows that leave.
rounds = st.lists(
    st.tuples(
        st.lists(prompts, min_size=1, max_size=4),
        st.integers(1, 4),
        st.lists(st.integers(0, 8), max_size=3),
    ),
    min_size=1,
    max_size=4,
)
Life = list[tuple[list[list[int]], int, list[int]]]
limits = st.sampled_from((0, 300, 1 << 20))
"""Tokens that there is memory for, of those in use and others."""


def _near(model: BaseModel, found: torch.Tensor, sequence: list[int]) -> None:
    with torch.inference_mode():
        expected = model.sampled(input_ids=torch.tensor([sequence])).logits[0, -1]
    np.testing.assert_allclose(found.numpy(), expected.float().numpy(), atol=3e-4)


def _live(model: BaseModel, decoder: KeptDecoder, life: Life, limit: int = 1 << 20) -> None:
    """Play a decoder's life and compare every row's logits with those of its sequence alone."""
    rows: dict[int, list[int]] = {}
    replies: dict[int, list[int]] = {}
    gone: list[list[int]] = []
    generator = np.random.default_rng(0)
    for joining, steps, leaving in life:
        # Two rows of each prompt: a group. And the next turn of some that have left.
        fresh = [list(prompt) for prompt in joining for _ in range(2)]
        fresh += [[*talk, *joining[0]] for talk in gone]
        ends = [len(prompt) + 20 for prompt in fresh]
        numbers, logits = decoder.admit([np.array(one, np.int32) for one in fresh], ends, limit)
        for found, prompt in zip(logits, fresh, strict=True):
            _near(model, found, prompt)
        rows |= zip(numbers, fresh, strict=True)
        replies |= {number: [] for number in numbers}
        for _ in range(steps):
            # In any order: rows move as others come and go.
            order = [int(number) for number in generator.permutation(list(rows))]
            drawn = generator.integers(0, VOCABULARY, len(order))
            logits = decoder.step(order, drawn)
            for number, token in zip(order, drawn.tolist(), strict=True):
                rows[number].append(token)
                replies[number].append(token)
        for found, number in zip(logits, order, strict=True):
            _near(model, found, rows[number])
        ended = [number for place, number in enumerate(list(rows)) if place in leaving]
        for number in ended:
            # The last token of a reply was not fed.
            decoder.release(number, np.array([*replies.pop(number), 5], np.int32))
        gone = [[*rows.pop(number), 5] for number in ended][:2]


@pytest.mark.nightly
@settings(max_examples=20, deadline=None)
@given(rounds, limits)
def test_rows_that_join_and_leave_do_not_disturb_the_others(
    base_model: BaseModel, life: Life, limit: int
) -> None:
    _live(base_model, KeptDecoder(base_model.sampled), life, limit)


@pytest.mark.nightly
@settings(max_examples=5, deadline=None)
@given(rounds)
def test_an_exact_decoder_keeps_the_same_law(base_model: BaseModel, life: Life) -> None:
    _live(base_model, KeptDecoder(base_model.sampled, exact=True), life)


def _positions(model: Any, work: Any) -> int:
    read = 0

    def count(_module: Any, args: Any, _output: Any) -> None:
        nonlocal read
        read += args[0].numel()

    hook = model.get_input_embeddings().register_forward_hook(count)
    work()
    hook.remove()
    return read


def test_what_prompts_have_in_common_is_read_once(base_model: BaseModel) -> None:
    decoder = KeptDecoder(base_model.sampled)
    opening, other = np.arange(60, dtype=np.int32), np.arange(40, dtype=np.int32)
    tails = [np.r_[opening[:30], [100 + n] * 5].astype(np.int32) for n in range(3)]
    group = [opening] * 8 + tails * 2 + [other]
    found = _positions(base_model.sampled, lambda: decoder.admit(group, [80] * len(group), 1 << 20))
    # Of equal prompts the others read their last token, or a few that are not worth a wait.
    assert found == 60 + 7 + 6 * 5 + 1


def test_the_next_turn_of_a_conversation_reads_what_is_new(base_model: BaseModel) -> None:
    decoder = KeptDecoder(base_model.sampled)
    prompt = np.arange(50, dtype=np.int32)
    (row,), _ = decoder.admit([prompt], [60], 1 << 20)
    for token in (30, 31, 32):
        decoder.step([row], np.array([token]))
    decoder.release(row, np.array([30, 31, 32, 33], np.int32))
    longer = np.r_[prompt, [30, 31, 32, 33, 40, 41]].astype(np.int32)
    assert decoder.known(longer) == 53
    assert _positions(base_model.sampled, lambda: decoder.admit([longer], [70], 1 << 20)) == 3


@pytest.mark.parametrize("limit", [1, 3000])
def test_idle_conversations_leave_where_there_is_no_memory(
    base_model: BaseModel, limit: int
) -> None:
    decoder = KeptDecoder(base_model.sampled)
    for start in range(40):
        (row,), _ = decoder.admit([np.arange(start, start + 30, dtype=np.int32)], [40], limit)
        assert decoder.tokens <= max(64, limit)
        decoder.release(row, np.array([7], np.int32))
    assert decoder.known(np.arange(39, 100, dtype=np.int32)) == 30
    assert (decoder.known(np.arange(100, dtype=np.int32)) == 0) == (limit == 1)


def test_longer_turns_need_more_room_and_no_more_places(base_model: BaseModel) -> None:
    decoder = KeptDecoder(base_model.sampled)
    prompts = [np.arange(start, start + 30, dtype=np.int32) for start in range(3)]
    rows, _ = decoder.admit(prompts, [64] * 3, 1 << 20)
    assert decoder.tokens == 3 * 64
    for row in rows:
        decoder.release(row, np.array([7], np.int32))
    decoder.admit([np.append(prompt, np.int32(7)) for prompt in prompts], [200] * 3, 1 << 20)
    assert decoder.tokens == 3 * 256


def test_room_that_is_unwritten_takes_no_memory() -> None:
    before = psutil.Process().memory_info().rss
    found = _zeros(torch.empty(0, dtype=torch.bfloat16), (2, 1 << 25))
    assert psutil.Process().memory_info().rss - before < found.nbytes / 10
    assert torch.equal(found[:, -9:], torch.zeros(2, 9, dtype=torch.bfloat16))


def test_rounding_is_no_reason_to_refuse_a_model(model_dir: Path) -> None:
    check_attention(BaseModel(model_dir, "cpu", "bfloat16"))


@pytest.mark.parametrize("kind", ["llama", "gpt2", "mistral", "gemma3_text"])
def test_architectures_with_full_or_windowed_attention_are_served(
    tmp_path: Path, kind: str
) -> None:
    served = BaseModel(make_model(tmp_path / kind, kind), "cpu")
    check_attention(served)
    life = [([list(range(30)), [5] * 12], 4, [0]), ([[7, 8, 9]], 3, [])]
    for exact in (False, True):
        _live(served, KeptDecoder(served.sampled, exact=exact), life)


@pytest.mark.parametrize("kind", ["gemma2", "gpt_oss", "mamba"])
def test_other_attention_is_refused_in_one_sentence(tmp_path: Path, kind: str) -> None:
    served = BaseModel(make_model(tmp_path / kind, kind), "cpu")
    with pytest.raises(ModelDirectoryError, match=f"full or sliding-window attention, {kind} in"):
        check_attention(served)
