"""Sharing prompts changes the cost of a request and nothing else."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.service.toy import VOCABULARY
from tokengym.agents.service.engine.adapters import LoraAdapters, LoraSpec
from tokengym.agents.service.engine.base_model import load_base_model
from tokengym.agents.service.engine.forward import PackedForward, packed_forward, score
from tokengym.agents.service.engine.packing import CostModel, batches, plan_rows
from tokengym.agents.service.engine.trainer import Datum, LossRequest, Trainer

if TYPE_CHECKING:
    from pathlib import Path

tokens = st.lists(st.integers(0, VOCABULARY - 1), min_size=1, max_size=30)
# Groups of sequences with a common beginning, which may also be all of one of them.
groups = st.lists(
    st.tuples(tokens, st.lists(st.one_of(st.just([]), tokens), min_size=1, max_size=5)),
    min_size=1,
    max_size=4,
)


def _sequences(drawn: list[tuple[list[int], list[list[int]]]]) -> list[np.ndarray]:
    return [np.array(head + tail, np.int32) for head, tails in drawn for tail in tails]


@pytest.fixture(scope="module")
def forward(model_dir: Path) -> PackedForward:
    base_model = load_base_model(model_dir, "cpu")
    return packed_forward(base_model.sampled, base_model.device, share=True)


@settings(deadline=None)
@given(groups)
def test_rows_hold_every_token_of_every_sequence_once(
    drawn: list[tuple[list[int], list[list[int]]]],
) -> None:
    sequences = _sequences(drawn)
    rows = plan_rows(sequences, CostModel(1000.0, 1.0), share=True)
    seen = sorted(member for row in rows for member in row.members)
    assert seen == list(range(len(sequences)))
    for row in rows:
        for member, rest, length in zip(row.members, row.rests, row.lengths, strict=True):
            own = row.tokens[rest : rest + length - row.shared]
            assert np.concatenate([row.tokens[: row.shared], own]).tolist() == (
                sequences[member].tolist()
            )


@settings(deadline=None)
@given(groups)
def test_sharing_never_costs_more(drawn: list[tuple[list[int], list[list[int]]]]) -> None:
    sequences = _sequences(drawn)
    cost = CostModel(1000.0, 1.0)
    shared = sum(cost.row(row.length) for row in plan_rows(sequences, cost, share=True))
    assert shared <= sum(cost.row(len(sequence)) for sequence in sequences)


def test_a_group_of_rollouts_costs_its_prompt_once() -> None:
    prompt = np.arange(100, dtype=np.int32)
    sequences = [np.concatenate([prompt, np.full(12, i, np.int32)]) for i in range(8)]
    rows = plan_rows(sequences, CostModel(1e6, 1e3), share=True)
    assert [row.length for row in rows] == [100 + 8 * 12]


def test_batches_hold_no_more_than_their_positions() -> None:
    sequences = [np.zeros(length, np.int32) for length in (5, 50, 7, 30, 2)]
    rows = plan_rows(sequences, CostModel(1.0, 1.0), share=False)
    cut = list(batches(rows, 60))
    assert sum(len(batch) for batch in cut) == 5
    assert all(max(r.length for r in batch) * len(batch) <= 60 for batch in cut)


@settings(max_examples=25, deadline=None)
@given(groups)
def test_scores_are_the_same_with_and_without_sharing(
    forward: PackedForward, drawn: list[tuple[list[int], list[list[int]]]]
) -> None:
    sequences = _sequences(drawn)
    plain = score(dataclasses.replace(forward, share=False), sequences, [2] * len(sequences))
    shared = score(forward, sequences, [2] * len(sequences))
    for one, other in zip(plain, shared, strict=True):
        np.testing.assert_allclose(one[0], other[0], atol=2e-5)
        np.testing.assert_allclose(one[1].numpy(), other[1].numpy(), atol=2e-4)
        assert one[2] is not None
        assert other[2] is not None
        np.testing.assert_allclose(one[2][1], other[2][1], atol=2e-5)


def test_scores_are_those_of_the_model_itself(forward: PackedForward) -> None:
    sequence = np.arange(40, dtype=np.int32)
    with torch.inference_mode():
        logits = forward.model(input_ids=torch.arange(40)[None]).logits[0]
    expected = torch.log_softmax(logits, -1)[torch.arange(39), torch.arange(1, 40)]
    got = score(forward, [sequence], [0])[0][0]
    assert np.isnan(got[0])
    np.testing.assert_allclose(got[1:], expected.numpy(), atol=1e-5)


@pytest.mark.parametrize("loss", ["importance_sampling", "ppo", "cispo", "cross_entropy"])
def test_losses_and_gradients_are_the_same_with_and_without_sharing(
    model_dir: Path, loss: str
) -> None:
    generator = np.random.default_rng(0)
    data: list[Datum] = []
    for _ in range(3):
        prompt = generator.integers(0, VOCABULARY, 40)
        for _ in range(4):
            reply = generator.integers(0, VOCABULARY, generator.integers(3, 9))
            whole = np.concatenate([prompt, reply]).astype(np.int32)
            inputs: dict[str, Any] = {"target_tokens": whole[1:].astype(np.int64)}
            names = ["weights"] if loss == "cross_entropy" else ["logprobs", "advantages"]
            for name in names:
                inputs[name] = generator.normal(-1.0, 1.0, len(whole) - 1).astype(np.float32)
            data.append(Datum(whole[:-1], inputs))
    outcomes = []
    for share in (False, True):
        base_model = load_base_model(model_dir, "cpu")
        trainer = Trainer(
            LoraAdapters(base_model.trained),
            packed_forward(base_model.trained, base_model.device, share=share),
            base_model.vocabulary,
            base_model.context,
        )
        trainer.create("run", LoraSpec(4, seed=3))
        # B starts at zero, and so would the gradient of A.
        for parameter in trainer.run("run").parameters.values():
            torch.nn.init.normal_(parameter, std=0.02, generator=torch.Generator().manual_seed(1))
        result = trainer.forward_backward("run", LossRequest(data, loss))
        gradients = {n: p.grad for n, p in trainer.run("run").parameters.items()}
        outcomes.append((result, gradients))
    (plain, plain_gradients), (shared, shared_gradients) = outcomes
    assert shared.metrics["loss:sum"] == pytest.approx(plain.metrics["loss:sum"], rel=1e-4)
    for one, other in zip(plain.logprobs, shared.logprobs, strict=True):
        np.testing.assert_allclose(one, other, atol=2e-5)
    for name, gradient in plain_gradients.items():
        counterpart = shared_gradients[name]
        assert gradient is not None
        assert counterpart is not None
        assert gradient.norm() > 0
        assert float((gradient - counterpart).norm() / gradient.norm()) < 1e-3
