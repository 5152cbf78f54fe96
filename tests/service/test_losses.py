"""The losses are the published formulas, and refuse what they do not read."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tokengym.agents.service.engine.losses import LOSSES, loss_named, sequence_log_ratios
from tokengym.agents.service.errors import BadRequestError

numbers = st.lists(
    st.tuples(st.floats(-6, 0), st.floats(-6, 0), st.floats(-3, 3)), min_size=1, max_size=20
)


def _inputs(rows: list[tuple[float, float, float]]) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    p, q, a = (torch.tensor(column, dtype=torch.float64) for column in zip(*rows, strict=True))
    return p.requires_grad_(), {"logprobs": q, "advantages": a}


def _losses(
    name: str, p: torch.Tensor, inputs: dict[str, torch.Tensor], config: dict[str, float]
) -> torch.Tensor:
    loss = LOSSES[name]
    return loss.of_tokens(p, inputs, loss.configured(config))


@settings(deadline=None)
@given(numbers, st.floats(0.1, 1.0), st.floats(1.0, 3.0))
def test_losses_of_the_ratio_are_their_formulas(
    rows: list[tuple[float, float, float]], low: float, high: float
) -> None:
    config = {"clip_low_threshold": low, "clip_high_threshold": high}
    own, other, advantage = np.array(rows).T
    ratio = np.exp(own - other)
    clipped = np.clip(ratio, low, high)
    for name, said, expected in (
        ("importance_sampling", {}, -ratio * advantage),
        ("ppo", config, -np.minimum(ratio * advantage, clipped * advantage)),
        ("cispo", config, -clipped * own * advantage),
    ):
        p, inputs = _inputs(rows)
        got = _losses(name, p, inputs, said)
        np.testing.assert_allclose(got.detach().numpy(), expected, rtol=1e-6, atol=1e-9)
        got.sum().backward()
    # The last one's ratio has no gradient of its own.
    assert p.grad is not None
    np.testing.assert_allclose(p.grad.numpy(), -clipped * advantage, rtol=1e-6, atol=1e-9)


def test_per_token_clip_bounds_overrule_the_configuration() -> None:
    p = torch.tensor([0.0, 0.0])
    inputs = {
        "logprobs": torch.tensor([-2.0, -2.0]),
        "advantages": torch.tensor([1.0, 1.0]),
        "clip_high_threshold": torch.tensor([1.5, 3.0]),
    }
    got = _losses("ppo", p, inputs, {"clip_high_threshold": 1.2})
    assert got.tolist() == [-1.5, -3.0]


@settings(deadline=None)
@given(numbers, st.floats(0.0, 2.0))
def test_dro_is_the_advantage_less_half_the_weighted_square(
    rows: list[tuple[float, float, float]], beta: float
) -> None:
    p, inputs = _inputs(rows)
    config = {"beta": beta}
    got = _losses("dro", p, inputs, config)
    got.sum().backward()
    own, other, advantage = np.array(rows).T
    sampled = (other != 0) | (advantage != 0)
    loss = -(own * advantage - beta / 2 * (own - other) ** 2)
    np.testing.assert_allclose(got.detach().numpy(), np.where(sampled, loss, 0.0), atol=1e-9)
    gradient = np.where(sampled, beta * (own - other) - advantage, 0.0)
    assert p.grad is not None
    np.testing.assert_allclose(p.grad.numpy(), gradient, atol=1e-9)
    learned = LOSSES["dro"].has_gradient({name: value.numpy() for name, value in inputs.items()})
    assert not gradient[~learned].any()
    with pytest.raises(BadRequestError, match="dro needs beta"):
        LOSSES["dro"].configured({})


@pytest.mark.nightly
@settings(deadline=None)
@given(st.lists(numbers, min_size=1, max_size=4), st.data())
def test_gspo_clips_the_geometric_mean_ratio_of_each_sequence(
    sequences: list[list[tuple[float, float, float]]], data: st.DataObject
) -> None:
    p, inputs = _inputs([row for rows in sequences for row in rows])
    of = np.repeat(np.arange(len(sequences)), [len(rows) for rows in sequences])
    mask = np.array([data.draw(st.booleans()) for _ in of], np.float64)
    arrays = {name: value.numpy() for name, value in inputs.items()} | {"sequence_ratio_mask": mask}
    made = sequence_log_ratios(p.detach().numpy().astype(np.float32), arrays, of)
    ratios = made["sequence_log_ratio"]
    inputs["sequence_log_ratio"] = torch.from_numpy(ratios).double()
    got = _losses("gspo", p, inputs, {"clip_low_threshold": 0.5, "clip_high_threshold": 2.0})
    got.sum().backward()
    assert p.grad is not None
    losses, gradients, at = [], [], 0
    for rows in sequences:
        own, other, advantage = np.array(rows).T
        marked = mask[at : at + len(rows)] != 0
        at += len(rows)
        ratio = np.exp((own - other)[marked].mean()) if marked.any() else 1.0
        kept, clipped = ratio * advantage, np.clip(ratio, 0.5, 2.0) * advantage
        losses.append(-np.minimum(kept, clipped))
        free = (kept < clipped) | (0.5 <= ratio <= 2.0)
        gradients.append(np.where(free, -kept, 0.0))
    np.testing.assert_allclose(got.detach().numpy(), np.concatenate(losses), rtol=1e-5, atol=1e-6)
    if not np.isclose(np.exp(ratios), [[0.5], [2.0]], rtol=1e-5).any():
        np.testing.assert_allclose(p.grad.numpy(), np.concatenate(gradients), rtol=1e-5, atol=1e-6)


@settings(deadline=None)
@given(numbers, st.floats(0.0, 2.0))
def test_stable_reinforce_is_truncated_importance_sampling_with_a_divergence(
    rows: list[tuple[float, float, float]], kl_coeff: float
) -> None:
    p, inputs = _inputs(rows)
    got = _losses("stable_reinforce", p, inputs, {"kl_coeff": kl_coeff})
    got.sum().backward()
    # By hand, from automatic differentiation of the definition alone.
    own = p.detach().clone().requires_grad_()
    other, advantage = (inputs[name] for name in ("logprobs", "advantages"))
    divergence = torch.distributions.kl_divergence  # of two Poisson laws: q log(q/p) - q + p
    leaving = divergence(
        torch.distributions.Poisson(torch.ones_like(other)),
        torch.distributions.Poisson(torch.exp(own) / torch.exp(other)),
    )
    weight = torch.minimum(torch.exp(own).detach() / torch.exp(other), torch.tensor(2.0))
    surrogate = torch.log(torch.exp(own)) * weight * advantage
    sampled = (other != 0) | (advantage != 0)
    loss = torch.where(sampled, kl_coeff * leaving - surrogate, 0.0)
    loss.sum().backward()
    np.testing.assert_allclose(got.detach(), loss.detach(), rtol=1e-6, atol=1e-9)
    assert p.grad is not None
    assert own.grad is not None
    np.testing.assert_allclose(p.grad, own.grad, rtol=1e-6, atol=1e-9)


def test_unsupported_losses_are_refused_with_the_supported_names() -> None:
    with pytest.raises(BadRequestError, match=r"cispo, cross_entropy.*custom"):
        loss_named("custom")


@pytest.mark.parametrize(
    ("name", "config", "said"),
    [
        ("ppo", {"beta": 1.0}, "'beta'"),
        ("ppo", {"clip_low_threshold": float("nan")}, "nan"),
        ("ppo", {"clip_low_threshold": "0.8"}, "'0.8'"),
        ("cispo", {"clip_low_threshold": 2.0}, "2.0 and 1.2"),
        ("importance_sampling", {"clip_low_threshold": 0.8}, "clip_low_threshold"),
    ],
)
def test_configuration_errors_name_the_value(
    name: str, config: dict[str, float | str], said: str
) -> None:
    with pytest.raises(BadRequestError, match=said):
        LOSSES[name].configured(config)


WHOLE = {name: np.zeros(3, np.float32) for name in ("target_tokens", "logprobs", "advantages")}


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({}, "target_tokens"),
        ({"target_tokens": np.zeros(2, np.int64)}, "3 input tokens"),
        ({"target_tokens": np.zeros(3, np.int64)}, "logprobs"),
        (WHOLE | {"advantages": np.full(3, np.inf)}, "advantages must be finite"),
        (WHOLE | {"mask": np.zeros(3)}, "'mask'"),
        (WHOLE | {"logprobs": np.zeros(2)}, r"logprobs must have the shape.*\(2,\)"),
    ],
)
def test_datum_errors_name_the_datum_and_the_rule(inputs: dict[str, np.ndarray], said: str) -> None:
    with pytest.raises(BadRequestError, match=f"datum 5: .*{said}"):
        LOSSES["ppo"].check(inputs, 3, 5)
