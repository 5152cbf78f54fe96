"""The probe knows every registered estimator, and computes it by code of its own."""

import numpy as np
import pytest

from tests.probe.probing import batch_of, first_table
from tokengym.agents.probe.batch import ProbeBatch
from tokengym.agents.probe.estimators import estimators
from tokengym.agents.probe.tinker_trainers import OWN
from tokengym.agents.training.config import Algorithm
from tokengym.rewards.estimators import ESTIMATORS, Batch


@pytest.mark.nightly
def test_registered_estimators_agree_with_the_probe_s() -> None:
    table = first_table(0, False, 1.0, False)
    batch = ProbeBatch(batch_of(0), table, table.logprob_K)
    known = list(estimators(batch, batch.rewards_N, batch.groups_N))
    by_name = {each.name: each for each in known}
    assert len(by_name) == len(known)
    shape = (-1, batch.group_size)
    rewards, tokens = batch.rewards_N.reshape(shape), batch.counts_N(batch.own_K).reshape(shape)
    asked = Batch(rewards, np.ones_like(rewards, np.bool_), tokens)
    for entry in ESTIMATORS.values():
        ours = entry.advantages(asked).ravel()[table.rollout_K]
        other = by_name[entry.title]
        # Known up to one factor, which is a step size.
        factor = (ours @ other.advantages_K) / (other.advantages_K @ other.advantages_K)
        assert ours == pytest.approx(factor * np.asarray(other.advantages_K), abs=1e-9)
        assert bool(other.bias) is not entry.unbiased


def test_our_trainer_is_probed_with_every_estimator() -> None:
    probed = {settings.get("estimator") for settings in OWN.values()} | {Algorithm().estimator}
    assert ESTIMATORS.keys() <= probed
