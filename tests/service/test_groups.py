"""Computing the prompt of a group once changes the cost of a request and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.service.toy import VOCABULARY, at_once
from tokengym.agents.service.engine.adapters import LoraSpec
from tokengym.agents.service.engine.base_model import BaseModel
from tokengym.agents.service.engine.forward import PackedForward, lay_out, plan, scored
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
    base_model = BaseModel(model_dir, "cpu")
    forward = PackedForward(base_model.sampled)
    forward.max_logits = 7
    return forward


@settings(deadline=None)
@given(groups, st.integers(1, 300))
def test_batches_hold_every_sequence_and_no_more_than_their_memory(
    drawn: list[tuple[list[int], list[list[int]]]], most: int
) -> None:
    sequences = _sequences(drawn)
    batches = plan(sequences, most)
    found = [group for batch in batches for group in batch]
    members = sorted(member for group in found for member in group.members)
    assert members == list(range(len(sequences)))
    for batch in batches:
        size = sum(group.positions(sequences) for group in batch)
        assert size <= most or len(batch) == len(batch[0].members) == 1
    for group in found:
        assert len({sequences[member][: group.shared].tobytes() for member in group.members}) == 1
        assert all(len(sequences[member]) > group.shared for member in group.members)
        assert group.positions(sequences) <= sum(len(sequences[one]) for one in group.members)


def test_the_prompt_of_a_group_costs_its_positions_once() -> None:
    sequences = [
        np.concatenate([np.arange(60), np.full(40, 100 + group), np.full(12, reply)])
        for group in range(3)
        for reply in range(8)
    ]
    (batch,) = plan([one.astype(np.int32) for one in sequences], 1 << 30)
    packed = lay_out(batch, sequences)
    assert packed.ids.shape == (3 * (100 + 8 * 12),)


@settings(max_examples=10, deadline=None)
@given(groups)
def test_scores_are_those_of_the_model_itself(
    forward: PackedForward, drawn: list[tuple[list[int], list[list[int]]]]
) -> None:
    sequences = _sequences(drawn)
    found: dict[int, Any] = {}
    for part in scored(forward, sequences, [2] * len(sequences)):
        found |= part
    for member, sequence in enumerate(sequences):
        with torch.inference_mode():
            ids = torch.from_numpy(sequence.astype(np.int64))[None]
            logits = forward.model(input_ids=ids).logits[0]
        logprobs = torch.log_softmax(logits, -1)[:-1]
        scores = found[member]
        assert np.isnan(scores.logprobs[0])
        own = logprobs.gather(-1, ids[0, 1:, None])[:, 0]
        np.testing.assert_allclose(scores.logprobs[1:], own, atol=2e-5)
        np.testing.assert_allclose(scores.last, logits[-1], atol=2e-4)
        np.testing.assert_allclose(scores.topk[1][1:], logprobs.topk(2).values, atol=2e-5)


@pytest.mark.nightly
@pytest.mark.parametrize("loss", ["importance_sampling", "ppo", "cispo", "cross_entropy"])
def test_losses_and_gradients_depend_on_no_sharing_or_memory(model_dir: Path, loss: str) -> None:
    generator = np.random.default_rng(0)
    data: list[Datum] = []
    preamble = generator.integers(0, VOCABULARY, 30)
    for _ in range(3):
        prompt = np.concatenate([preamble, generator.integers(0, VOCABULARY, 20)])
        for _ in range(4):
            reply = generator.integers(0, VOCABULARY, generator.integers(3, 9))
            whole = np.concatenate([prompt, reply]).astype(np.int32)
            inputs: dict[str, Any] = {"target_tokens": whole[1:].astype(np.int64)}
            names = ["weights"] if loss == "cross_entropy" else ["logprobs", "advantages"]
            for name in names:
                inputs[name] = generator.normal(-1.0, 1.0, len(whole) - 1).astype(np.float32)
            inputs[names[-1]][::3] = 0.0
            data.append(Datum(whole[:-1], inputs))
    outcomes = []
    ways: list[dict[str, Any]] = [
        {"most": 1},
        {},
        {"memory": 1},
        {"memory": 3_000_000, "max_logits": 7},
        {"most": 90},
    ]
    for changes in ways:
        base_model = BaseModel(model_dir, "cpu")
        forward = PackedForward(base_model.trained)
        vars(forward).update(changes)
        trainer = Trainer(forward, base_model.vocabulary, base_model.context)
        trainer.create("run", LoraSpec(4, seed=3))
        # B starts at zero, and so would the gradient of A.
        for parameter in trainer.run("run").parameters.values():
            torch.nn.init.normal_(parameter, std=0.02, generator=torch.Generator().manual_seed(1))
        result = at_once(trainer.forward_backward("run", LossRequest(data, loss)))
        gradients = {n: p.grad for n, p in trainer.run("run").parameters.items()}
        outcomes.append((result, gradients))
    plain, plain_gradients = outcomes[0]
    for other, gradients in outcomes[1:]:
        assert other.metrics["loss:sum"] == pytest.approx(plain.metrics["loss:sum"], rel=1e-4)
        for expected, found in (
            *zip(plain.logprobs, other.logprobs, strict=True),
            *zip(plain.losses, other.losses, strict=True),
        ):
            np.testing.assert_allclose(expected, found, atol=1e-4)
        for name, gradient in plain_gradients.items():
            counterpart = gradients[name]
            assert gradient is not None
            assert counterpart is not None
            assert gradient.norm() > 0
            assert float((gradient - counterpart).norm() / gradient.norm()) < 1e-3
