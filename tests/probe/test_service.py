"""The losses of the local service, probed: two updates of an adapter on one batch each."""

from typing import Any

import numpy as np
import pytest
import torch
from tinker.types import AdamParams
from torch.func import functional_call

from tests.probe.probing import batch_of
from tokengym.agents.probe.policy import Checkpoint, tiny_model, write_tiny_model
from tokengym.agents.probe.rollouts import ProbeRollout
from tokengym.agents.probe.steps import Training
from tokengym.agents.probe.verdict import Kind
from tokengym.agents.service.engine.adapters import LoraSpec
from tokengym.agents.service.engine.base_model import BaseModel, load_base_model
from tokengym.agents.service.engine.compute_thread import at_once
from tokengym.agents.service.engine.forward import packed_forward
from tokengym.agents.service.engine.trainer import Datum, LossRequest, Trainer

SPEC = LoraSpec(4, train_unembed=False, seed=3)
RATIOS = {
    "importance_sampling": "times the importance ratio",
    "ppo": "times the ratio, clipped at 0.2, 0.2",
    "cispo": "times the bounded ratio (0.2, 0.2)",
    "gspo": "times the ratio of its sequence (GSPO)",
    "stable_reinforce": "times the ratio, at most 2",
}
"""What the second update weighs tokens with, by loss."""
WIDE = {"clip_low_threshold": 0.0, "clip_high_threshold": 1e3}
"""The narrow bounds of gspo leave nothing of a step of this size."""


class Adapted(torch.nn.Module):
    """The tiny model as a function of an adapter's matrices alone."""

    def __init__(self, adapter: dict[str, torch.Tensor]) -> None:
        super().__init__()
        # In a list, its weights are not parameters of this module.
        self.models = [tiny_model().double()]
        self.layers = sorted({name.rpartition("/")[0] for name in adapter})
        for name, value in adapter.items():
            self.register_parameter(name, torch.nn.Parameter(value.clone()))

    def forward(self, **inputs: torch.Tensor) -> Any:
        (model,) = self.models
        own, weights = model.state_dict(), {}
        for layer in self.layers:
            matrices = getattr(self, f"{layer}/B") @ getattr(self, f"{layer}/A")
            name = f"{layer.replace('/', '.')}.weight"
            weights[name] = own[name] + SPEC.scaling * matrices
        return functional_call(model, weights, kwargs=inputs)


@pytest.fixture(scope="module")
def base_model(tmp_path_factory: pytest.TempPathFactory) -> BaseModel:
    folder = tmp_path_factory.mktemp("model")
    write_tiny_model(folder)
    return load_base_model(folder, "cpu", "float32")


def saved(trainer: Trainer) -> Checkpoint:
    run = trainer.run("run")
    named = {name.replace(".", "/"): value for name, value in run.parameters.items()}
    moments = {
        name: run.optimizer.state[value]["exp_avg"].clone()
        for name, value in named.items()
        if value in run.optimizer.state
    }
    return Checkpoint({name: value.detach().clone() for name, value in named.items()}, moments)


def data_of(rollouts: list[ProbeRollout], trainer: Trainer) -> list[Datum]:
    """Return what a loop would send, with log-probabilities of the weights as they are."""
    data = []
    for rollout in rollouts:
        tokens = np.array([*rollout.prompt_ids, *rollout.completion_ids])
        rewards = [other.reward for other in rollouts if other.group == rollout.group]
        mask = np.array([*[0] * len(rollout.prompt_ids), *rollout.mask])[1:]
        targets = {"target_tokens": tokens[1:].astype(np.int64)}
        datum = Datum(tokens[:-1].astype(np.int32), targets)
        request = LossRequest([datum], "cross_entropy", forward_only=True)
        (logprobs,) = at_once(trainer.forward_backward("run", request)).logprobs
        advantages = ((rollout.reward - np.mean(rewards)) * mask).astype(np.float32)
        sent = {"logprobs": (logprobs * mask).astype(np.float32), "advantages": advantages}
        data.append(Datum(datum.tokens, {**targets, **sent}))
    return data


@pytest.mark.parametrize("loss", RATIOS)
def test_a_loss_of_the_service_follows_on_and_off_policy(base_model: BaseModel, loss: str) -> None:
    forward = packed_forward(base_model.trained, base_model.device, share=True)
    trainer = Trainer(forward, base_model.vocabulary, base_model.context)
    trainer.create("run", SPEC)
    rollouts = batch_of(0, few=True)
    data, checkpoints = data_of(rollouts, trainer), [saved(trainer)]
    for _ in range(2):
        request = LossRequest(data, loss, WIDE if loss == "gspo" else {})
        at_once(trainer.forward_backward("run", request))
        trainer.optim_step("run", AdamParams(learning_rate=0.01))
        checkpoints.append(saved(trainer))
    model = Adapted(checkpoints[0].weights)
    first, second = Training(model, rollouts, checkpoints).verdicts()
    plain = "centred by group, summed over tokens"
    assert (first.kind, first.name) == (Kind.FOLLOWS, plain), first
    assert (second.kind, second.name) == (Kind.FOLLOWS, f"{plain}, {RATIOS[loss]}"), second
