"""The probe knows every registered estimator, and computes those it lists by code of its own."""

import numpy as np
import pytest

from tests.probe.probing import batch_of, first_table
from tokengym.agents.probe.batch import ProbeBatch
from tokengym.agents.probe.estimators import estimators, independent, registered
from tokengym.agents.probe.tinker_trainers import OWN
from tokengym.agents.training.config import Algorithm
from tokengym.rewards.estimators import ESTIMATORS


@pytest.mark.nightly
def test_registered_estimators_agree_with_independent_ones() -> None:
    table = first_table(0, False, 1.0, False)
    batch = ProbeBatch(batch_of(0), table, table.logprob_K)
    asked = (batch, batch.rewards_N, batch.groups_N)
    known = {each.name: each for each in independent(*asked)}
    for entry in registered(*asked):
        ours, other = entry.advantages_K, known[entry.name].advantages_K
        # Known up to one factor, which is a step size.
        factor = (ours @ other) / (other @ other)
        assert ours == pytest.approx(factor * np.asarray(other), abs=1e-9), entry.name
        assert bool(entry.bias) == bool(known[entry.name].bias)
    assert len({each.name for each in estimators(*asked)}) == len(list(estimators(*asked)))


def test_our_trainer_is_probed_with_every_estimator() -> None:
    probed = {settings.get("estimator") for settings in OWN.values()} | {Algorithm().estimator}
    assert ESTIMATORS.keys() <= probed
