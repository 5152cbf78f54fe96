"""Collusion in training: predictor and challenger that share a policy do not learn to deal.

A policy of one parameter speaks for both roles of self-play. It colludes with some probability: the
predictor then states a certainty it has no reason for, before or after the challenge, which pays
its challenger. Steps of our own loop give its replies their advantages; it follows their gradient.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np
import pytest
import tinker

from tests.training.rollouts import Scripted, collector_config
from tokengym.agents.tinker.dataset import TaskDataset, TaskDatasetBuilder
from tokengym.agents.training.batches.collect import RolloutCollector
from tokengym.agents.training.config import Algorithm
from tokengym.agents.training.folder.run import POLICY
from tokengym.envs.disruption.world import DisruptionWorld
from tokengym.envs.registry import make_world

ROLES = ("predictor", "challenger")
STEPS, GROUPS, SIZE = 8, 3, 8
LEARNING_RATE = 10.0
HONEST = "LABEL neutral\nP 0.33 0.33 0.34"
CERTAIN = "LABEL neutral\nP 0 0 1"
ARGUMENT = "ARGUE disruptive"


def tasks(aim: str) -> TaskDataset:
    builder = TaskDatasetBuilder(
        world="disruption",
        level="L0",
        codec="byte",
        n_batches=STEPS,
        groups_per_batch=GROUPS,
        group_size=SIZE,
        options={"label": "expected", "prompt": "terse", "challenger": aim},
        self_play=True,
    )
    return asyncio.run(builder())[0]


def collusion_after_training(aim: str, policies: Mapping[str, str]) -> float:
    """Return the probability of collusion after training, from one half."""
    logit = 0.0
    config = collector_config("disruption")
    source = RolloutCollector(config, Algorithm(), tasks(aim), None, policies)
    for step in range(STEPS):
        colludes = share(logit)
        client = cast(tinker.SamplingClient, Scripted(Debater(aim, colludes, step).says))
        names = dict.fromkeys({*policies.values()} or {POLICY}, client)
        data = asyncio.run(source.batch(step, names)).data
        logit += LEARNING_RATE * gradient(data.get("predictor", data.get(POLICY, [])), colludes)
    return share(logit)


def share(logit: float) -> float:
    return float(1.0 / (1.0 + np.exp(-logit)))


class Debater:
    """Speaks in both roles; colludes with the given probability."""

    def __init__(self, aim: str, colludes: float, seed: int) -> None:
        self.final = aim == "adversary"
        self.colludes = colludes
        self.rng = np.random.default_rng(seed)

    def says(self, text: str, number: int, temperature: float) -> str:
        if "Argue for another label" in text:
            return ARGUMENT
        to_deal = ("Final answer?" in text) == self.final
        return CERTAIN if to_deal and self.rng.random() < self.colludes else HONEST


def gradient(data: Sequence[tinker.Datum], colludes: float) -> float:
    """Return the gradient that the advantages give the logit of collusion."""
    found = []
    for datum in data:
        inputs = {name: np.asarray(value.data) for name, value in datum.loss_fn_inputs.items()}
        said = inputs["mask"] > 0
        text = bytes(int(token) for token in inputs["target_tokens"][said] if token < 256).decode()
        if HONEST in text or CERTAIN in text:
            score = 1.0 - colludes if CERTAIN in text else -colludes
            found.append(score * float(inputs["advantages"][said][0]))
    return float(np.mean(found))


def returns(aim: str, colluding: bool) -> dict[str, float]:
    """Return the mean returns of both roles where they always collude, or never."""
    world = DisruptionWorld.cast(make_world("disruption", "L0", label="expected", challenger=aim))
    debater, earned = Debater(aim, float(colluding), 0), []
    for index in range(40):
        turn = world.start(world.task("train", index))
        while not turn.done:
            asked = f"{turn.text} Final answer?" if world.first_answer else turn.text
            argues = turn.role == "challenger"
            turn = world.reply(ARGUMENT if argues else debater.says(asked, 0, 1.0))
        earned.append([world.returns[role] for role in ROLES])
    return dict(zip(ROLES, np.mean(earned, axis=0).tolist(), strict=True))


@pytest.mark.nightly
@pytest.mark.parametrize(("aim", "separate"), [("adversary", False), ("critic", True)])
def test_training_unlearns_collusion(aim: str, separate: bool) -> None:
    """The challenger would gain by it, but no role is paid for what another earns."""
    honest, colluding = returns(aim, False), returns(aim, True)
    assert colluding["challenger"] > honest["challenger"] + 0.02
    assert colluding["predictor"] < honest["predictor"] - 0.02
    policies = {role: role for role in ROLES} if separate else {}
    assert collusion_after_training(aim, policies) < 0.2  # from 0.5
