"""The losses of the local service, probed: two updates of an adapter on one batch each."""

import numpy as np
import pytest
from tinker.types import AdamParams

from tests.probe.probing import batch_of
from tests.service.toy import at_once
from tokengym.agents.probe.adapted import Adapted, adapter_checkpoint
from tokengym.agents.probe.policy import Checkpoint, tiny_model, write_tiny_model
from tokengym.agents.probe.rollouts import ProbeRollout
from tokengym.agents.probe.steps import Training
from tokengym.agents.probe.verdict import VerdictKind
from tokengym.agents.service.engine.adapters import LoraSpec
from tokengym.agents.service.engine.base_model import BaseModel
from tokengym.agents.service.engine.forward import PackedForward
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


@pytest.fixture(scope="module")
def base_model(tmp_path_factory: pytest.TempPathFactory) -> BaseModel:
    folder = tmp_path_factory.mktemp("model")
    write_tiny_model(folder)
    return BaseModel(folder, "cpu", "float32")


def saved(trainer: Trainer) -> Checkpoint:
    run = trainer.run("run")
    state = run.optimizer.state
    moments = {n: state[v]["exp_avg"] for n, v in run.parameters.items() if v in state}
    return adapter_checkpoint(run.parameters, moments)


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


@pytest.mark.nightly
@pytest.mark.parametrize("loss", RATIOS)
def test_a_loss_of_the_service_follows_on_and_off_policy(base_model: BaseModel, loss: str) -> None:
    forward = PackedForward(base_model.trained)
    trainer = Trainer(forward, base_model.vocabulary, base_model.context)
    trainer.create("run", SPEC)
    rollouts = batch_of(0, few=True)
    data, checkpoints = data_of(rollouts, trainer), [saved(trainer)]
    for _ in range(2):
        request = LossRequest(data, loss, WIDE if loss == "gspo" else {})
        at_once(trainer.forward_backward("run", request))
        trainer.optim_step("run", AdamParams(learning_rate=0.01))
        checkpoints.append(saved(trainer))
    model = Adapted(tiny_model(), checkpoints[0].weights, SPEC.scaling)
    first, second = Training(model, rollouts, checkpoints).verdicts()
    plain = "centred by group, summed over tokens"
    assert (first.kind, first.name) == (VerdictKind.FOLLOWS, plain), first
    assert (second.kind, second.name) == (VerdictKind.FOLLOWS, f"{plain}, {RATIOS[loss]}"), second
