"""Training through the SDK: gradients, optimizer, checkpoints, order and errors."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import tinker
import torch
from tinker.types import AdamParams, Datum, ModelInput, TensorData
from transformers import AutoModelForCausalLM

from tests.service.asking import TALK, datum
from tokengym.agents.service.engine.adapters import LoraAdapter, LoraSpec
from tokengym.agents.service.engine.base_model import BaseModel
from tokengym.agents.service.engine.linear import classify_modules

if TYPE_CHECKING:
    from pathlib import Path

    from tokengym.agents.service import LocalService

STEP = AdamParams(learning_rate=1e-3)


def _loss(run: Any, one: Datum | None = None) -> float:
    metrics = run.forward([one or datum(TALK)], "cross_entropy").result().metrics
    return float(metrics["loss:sum"])


def test_steps_lower_the_loss_and_report_the_gradient(run: Any) -> None:
    before = _loss(run)
    for _ in range(5):
        run.forward_backward([datum(TALK)], "cross_entropy")
        metrics = run.optim_step(STEP).result().metrics
        assert metrics["optim/grad_norm"] > 0
    assert _loss(run) < before - 1.0


def test_pipelined_requests_run_in_the_order_of_their_submission(run: Any) -> None:
    losses = []
    for _ in range(8):
        losses.append(run.forward_backward([datum(TALK)], "cross_entropy"))
        run.optim_step(STEP)
    values = [future.result().metrics["loss:sum"] for future in losses]
    # Each sees the weights of all the steps before it, and no others.
    assert values == sorted(values, reverse=True)
    assert len(set(values)) == 8


def test_gradients_of_several_requests_add_up(client: Any, service: LocalService) -> None:
    data = [datum(TALK), datum(TALK[:15]), datum(list(range(100, 140)))]
    results = []
    for parts in ([data], [[one] for one in data]):
        run = client.create_lora_training_client(service.model_name, rank=4, seed=5).result()
        for part in parts:
            run.forward_backward(part, "cross_entropy")
        norm = run.optim_step(STEP).result().metrics["optim/grad_norm"]
        results.append((norm, _loss(run)))
    assert results[0] == pytest.approx(results[1], rel=1e-4)


def _peft_model(model_dir: Path, rank: int, seed: int) -> Any:
    model: Any = AutoModelForCausalLM.from_pretrained(model_dir, dtype=torch.float32)
    targets = [name for name, _ in classify_modules(model)]
    torch.manual_seed(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # peft warns about tied embeddings
        # Collecting does not import it: that takes seconds, and every worker collects.
        from peft import LoraConfig, get_peft_model

        return get_peft_model(model, LoraConfig(r=rank, lora_alpha=32, target_modules=targets))


@pytest.mark.parametrize("field", [None, *AdamParams.model_fields])
def test_optimizer_steps_are_those_of_peft_and_torch_adamw(
    model_dir: Path, run: Any, field: str | None
) -> None:
    """With any other value of a field the weights would be others."""
    usual: dict[str, float] = {
        "learning_rate": 1e-2,
        "beta1": 0.8,
        "beta2": 0.9,
        "eps": 1e-2,
        "weight_decay": 0.1,
        "grad_clip_norm": 0.5,
    }
    other = {"learning_rate": 3e-2, "beta1": 0.2, "beta2": 0.3, "eps": 1e-6, "weight_decay": 5.0}
    changed = usual if field is None else {**usual, field: other.get(field, 1e9)}
    for _ in range(3):
        run.forward_backward([datum(TALK)], "cross_entropy")
        run.optim_step(AdamParams(**changed))
    served = _loss(run)
    assert served == pytest.approx(_adamw_loss(model_dir, **changed), abs=1e-3)
    assert field is None or abs(served - _adamw_loss(model_dir, **usual)) > 5e-3


def _adamw_loss(
    model_dir: Path,
    learning_rate: float,
    beta1: float,
    beta2: float,
    eps: float,
    weight_decay: float,
    grad_clip_norm: float,
) -> float:
    model = _peft_model(model_dir, rank=8, seed=7)
    weights = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(weights, learning_rate, (beta1, beta2), eps, weight_decay)
    ids, targets = torch.tensor([TALK[:-1]]), torch.tensor(TALK[1:])

    def loss() -> torch.Tensor:
        logits = model(input_ids=ids).logits[0]
        return torch.nn.functional.cross_entropy(logits, targets, reduction="sum")

    for _ in range(3):
        optimizer.zero_grad()
        loss().backward()
        torch.nn.utils.clip_grad_norm_(weights, grad_clip_norm)
        optimizer.step()
    return float(loss().detach())


@pytest.mark.parametrize(
    ("flags", "parts"),
    [
        ({"train_mlp": False, "train_unembed": False}, {"self_attn"}),
        ({"train_attn": False}, {"mlp", "lm_head"}),
        ({}, {"self_attn", "mlp", "lm_head"}),
    ],
)
def test_flags_and_rank_choose_what_is_trained(
    model_dir: Path, flags: dict[str, bool], parts: set[str]
) -> None:
    base_model = BaseModel(model_dir, "cpu")
    adapter = LoraAdapter(base_model.trained, LoraSpec(3, seed=1, **flags))
    adapter.attach()
    names = adapter.parameters
    assert {part for part in ("self_attn", "mlp", "lm_head") for n in names if part in n} == parts
    assert all(min(parameter.shape) == 3 for parameter in names.values())
    assert not any(parameter.requires_grad for parameter in base_model.trained.parameters())
    base_model.trained(input_ids=torch.arange(9)[None]).logits.square().sum().backward()
    assert all(parameter.grad is not None for parameter in names.values())


def test_a_seed_fixes_the_adapter(model_dir: Path) -> None:
    base_model = BaseModel(model_dir, "cpu")
    adapters = [LoraAdapter(base_model.trained, LoraSpec(4, seed=seed)) for seed in (1, 1, 2)]
    first, same, other = (adapter.parameters for adapter in adapters)
    assert all(torch.equal(first[n], same[n]) for n in first)
    assert any(not torch.equal(first[n], other[n]) for n in first)


def test_several_targets_a_token_are_weighted_each(run: Any) -> None:
    tokens = ModelInput.from_ints([60, 61, 62])
    targets = np.array([[61, 70], [62, 71], [63, 0]])
    weights = np.array([[0.25, 0.75], [1.0, 2.0], [0.5, 0.0]], np.float32)
    dense = Datum(model_input=tokens, loss_fn_inputs={"target_tokens": targets, "weights": weights})
    sparse = Datum(
        model_input=tokens,
        loss_fn_inputs={
            "target_tokens": TensorData.from_torch_sparse(torch.from_numpy(targets)),
            "weights": torch.from_numpy(weights),
        },
    )
    result = run.forward([dense, sparse, datum([60, 61])], "cross_entropy").result()
    logprobs = result.loss_fn_outputs[0]["logprobs"].to_numpy()
    assert logprobs.shape == (3, 2)
    np.testing.assert_allclose(
        result.loss_fn_outputs[1]["logprobs"].to_numpy(), logprobs, atol=1e-5
    )
    (single,) = result.loss_fn_outputs[2]["logprobs"].to_numpy()
    assert logprobs[0, 0] == pytest.approx(single, abs=1e-5)
    expected = -2 * float((logprobs * weights).sum()) - float(single)
    assert result.metrics["loss:sum"] == pytest.approx(expected, rel=1e-4)


def test_dpo_through_forward_backward_custom_prefers_the_chosen(run: Any, client: Any) -> None:
    chosen, rejected = datum(TALK), datum([*TALK[:15], *range(120, 135)])
    base = client.create_sampling_client(base_model=run.get_info().model_name).result()
    reference = [
        sum(base.compute_logprobs(ModelInput.from_ints(tokens)).result()[1:])
        for tokens in (TALK, [*TALK[:15], *range(120, 135)])
    ]

    def dpo(_data: list[Datum], logprobs: list[torch.Tensor]) -> tuple[Any, dict[str, float]]:
        won, lost = (lp.sum() - ref for lp, ref in zip(logprobs, reference, strict=True))
        loss = -torch.nn.functional.logsigmoid(0.1 * (won - lost))
        return loss, {"margin": float((won - lost).detach())}

    margins, losses = [], []
    for _ in range(5):
        future = run.forward_backward_custom([chosen, rejected], dpo)
        run.optim_step(STEP)
        metrics = future.result().metrics
        margins.append(metrics["margin"])
        losses.append(metrics["loss:sum"])
    assert margins[0] == pytest.approx(0.0, abs=1e-2)
    assert losses[0] == pytest.approx(math.log(2), abs=1e-3)
    assert margins[-1] > 1.0
    assert losses[-1] < losses[0]


def test_gspo_and_dro_are_their_formulas_of_whole_sequences(run: Any) -> None:
    generator = np.random.default_rng(0)
    tokens = [TALK, TALK[:17]]
    plain = run.forward([datum(one) for one in tokens], "cross_entropy").result()
    own = [np.array(output["logprobs"].data) for output in plain.loss_fn_outputs]
    data: list[tuple[list[int], dict[str, Any], Any]] = []
    expected: dict[str, list[Any]] = {"gspo": [], "dro": []}
    # In gspo both ratios are above the bound: the first has no gradient, the second has.
    for sign, one, p in zip((1.0, -1.0), tokens, own, strict=True):
        n = len(one) - 1
        q = (p - generator.normal(0.1, 0.1, n)).astype(np.float32)
        advantage, mask = np.full(n, sign, np.float32), np.arange(n) > 4
        advantage[:5] = 0.0
        inputs: Any = {"target_tokens": one[1:], "logprobs": q, "advantages": advantage}
        data.append((one, inputs, mask.astype(np.float32)))
        ratio = np.exp((p - q)[mask].mean())
        clipped = np.clip(ratio, 0.9, 1.05)
        expected["gspo"].append(-np.minimum(ratio * advantage, clipped * advantage))
        expected["dro"].append(0.25 * (p - q) ** 2 - p * advantage)
    for name, config in (
        ("gspo", {"clip_low_threshold": 0.9, "clip_high_threshold": 1.05}),
        ("dro", {"beta": 0.5}),
    ):
        sent = [
            Datum(
                model_input=ModelInput.from_ints(one[:-1]),
                loss_fn_inputs=inputs | ({"sequence_ratio_mask": mask} if name == "gspo" else {}),
            )
            for one, inputs, mask in data
        ]
        result = run.forward_backward(sent, name, config).result()
        for output, losses in zip(result.loss_fn_outputs, expected[name], strict=True):
            np.testing.assert_allclose(output["elementwise_loss"].data, losses, atol=1e-4)
    assert run.optim_step(STEP).result().metrics["optim/grad_norm"] > 0


@pytest.mark.nightly
def test_resuming_with_the_optimizer_changes_nothing(run: Any, client: Any) -> None:
    for _ in range(3):
        run.forward_backward([datum(TALK)], "cross_entropy")
        run.optim_step(STEP)
    path = run.save_state("resume-here").result().path
    resumed = client.create_training_client_from_state_with_optimizer(path).result()
    fresh = client.create_training_client_from_state(path).result()
    assert resumed.get_info().lora_rank == 8
    after = []
    for each in (run, resumed, fresh):
        assert _loss(each) == pytest.approx(_loss(run), abs=1e-4)
    for each in (run, resumed, fresh):
        for _ in range(2):
            each.forward_backward([datum(TALK)], "cross_entropy")
            each.optim_step(STEP)
        after.append(_loss(each))
    assert after[1] == pytest.approx(after[0], abs=1e-4)
    # Without its moments the optimizer takes other steps, so the test above can fail.
    assert abs(after[2] - after[0]) > 1e-2


def test_a_sampler_checkpoint_cannot_give_back_an_optimizer(run: Any, client: Any) -> None:
    path = run.save_weights_for_sampler("no-moments").result().path
    client.create_training_client_from_state(path).result()
    with pytest.raises(tinker.RequestFailedError, match="saved for sampling only"):
        client.create_training_client_from_state_with_optimizer(path).result()


def test_stable_reinforce_wants_to_know_where_its_tokens_come_from(run: Any) -> None:
    length = len(TALK) - 1
    inputs: Any = {
        "target_tokens": TALK[1:],
        "logprobs": [-1.0] * length,
        "advantages": [0.5] * length,
    }
    plain = Datum(model_input=ModelInput.from_ints(TALK[:-1]), loss_fn_inputs=inputs)
    with pytest.raises(tinker.BadRequestError, match="datum 0: stable_reinforce needs the prov"):
        run.forward_backward([plain], "stable_reinforce").result()
    spans: Any = [tinker.SampledProvenanceSpan(sequence_id="x", length=length)]
    known = plain.with_provenance(model_input=spans, loss_fn_inputs=spans)
    result = run.forward([known], "stable_reinforce", {"kl_coeff": 0.1}).result()
    p = result.loss_fn_outputs[0]["logprobs"].to_numpy().astype(float)
    ratio = np.exp(p + 1.0)
    expected = 0.1 * (ratio - 1 - (p + 1.0)) - np.minimum(ratio, 2.0) * p * 0.5
    assert result.metrics["loss:sum"] == pytest.approx(expected.sum(), rel=1e-5)


def test_a_gradient_that_is_no_number_leaves_the_weights_alone(run: Any) -> None:
    before = _loss(run)
    tokens = TALK[:4]
    wild = Datum(
        model_input=ModelInput.from_ints(tokens[:-1]),
        loss_fn_inputs={
            "target_tokens": tokens[1:],
            # exp(p - q) overflows: the loss of a sampler gone wild.
            "logprobs": [-1e30] * 3,
            "advantages": [1.0] * 3,
        },
    )
    run.forward_backward([wild], "importance_sampling")
    with pytest.raises(tinker.RequestFailedError, match="finite gradient"):
        run.optim_step(STEP).result()
    assert _loss(run) == before


def test_what_cannot_be_created_is_refused(client: Any, service: LocalService) -> None:
    with pytest.raises(tinker.BadRequestError, match=r"base_model must be one of.*nowhere"):
        client.create_lora_training_client("nowhere/at-all", rank=4).result()
    with pytest.raises(tinker.BadRequestError, match="rank must be between 1 and 1024, got 0"):
        client.create_lora_training_client(service.model_name, rank=0).result()
    with pytest.raises(tinker.NotFoundError, match="does not exist"):
        client.create_training_client_from_state("tinker://a:train:0/weights/b").result()
