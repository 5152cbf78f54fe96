"""Test of a trainer's logs alone, without a model: do its advantages follow from its rewards?

It takes milliseconds, and is blind to loss, padding, averaging and penalties.
"""

from collections.abc import Callable, Sequence

import numpy as np

from tokengym.agents.probe.batch import ProbeBatch, logged
from tokengym.agents.probe.estimators import BatchAdvantages, estimators
from tokengym.agents.probe.faults import of_rewards
from tokengym.agents.probe.fit import FITS, misfit_of
from tokengym.agents.probe.rollouts import ProbeRollout
from tokengym.agents.probe.scores import COMPLETION, ScoreTable
from tokengym.agents.probe.verdict import ProbeVerdict, VerdictKind, percent
from tokengym.envs.core.errors import DataError


def judge_sent(rollouts: Sequence[ProbeRollout]) -> ProbeVerdict:
    """Say which estimator gives the advantages that were logged, of one step.

    Raises:
        DataError: if a rollout has no advantages, or the steps differ.
    """
    if any(rollout.advantages is None for rollout in rollouts):
        raise DataError("logs alone need advantages in every rollout, and some have none")
    if len(steps := {rollout.step for rollout in rollouts}) > 1:
        raise DataError(f"rollouts must be of one step, got steps {sorted(steps)}")
    batch = _unscored(rollouts)
    known = list(estimators(batch, batch.rewards_N, batch.groups_N))
    sent_K = np.where(
        batch.own_K, logged("advantages", rollouts, batch.table, batch.sampled_K), 0.0
    )
    size = float(np.linalg.norm(sent_K))
    if not size:
        if np.where(batch.own_K, known[0].advantages_K, 0.0).any():
            text = "all advantages are 0, though rewards differ"
            return ProbeVerdict(VerdictKind.WRONG, text, "zeros", 1.0)
        text = "rewards tie in every group, and all advantages are 0"
        return ProbeVerdict(VerdictKind.FOLLOWS, text, known[0].name)

    def misfit(one: BatchAdvantages) -> float:
        return misfit_of(sent_K / size, np.where(batch.own_K, one.advantages_K, 0.0))

    found = [(one, misfit(one)) for one in known]
    off = min(left for one, left in found if not one.bias)
    fitting = [(one, left) for one, left in found if left <= FITS]
    if not fitting:
        return _not_estimated(batch, known, misfit, off)
    best, left = next((pair for pair in fitting if not pair[0].bias), fitting[0])
    if not best.bias:
        notes = (best.noise,) if best.noise else ()
        text = f"{best.name} (off by {percent(left)})"
        return ProbeVerdict(VerdictKind.FOLLOWS, text, best.name, left, notes)
    text = f"{best.name}; off by {percent(off)} from an unbiased estimator"
    return ProbeVerdict(VerdictKind.CHOICE, text, best.name, off, biases=(best.bias,))


def _not_estimated(
    batch: ProbeBatch,
    known: list[BatchAdvantages],
    misfit: Callable[[BatchAdvantages], float],
    off: float,
) -> ProbeVerdict:
    """Return the fault that makes advantages what they are, or the estimator that comes nearest."""
    for name, sentence, one in of_rewards(batch, known):
        if misfit(one) <= FITS:
            text = f"{sentence}; off by {percent(off)} from an unbiased estimator"
            return ProbeVerdict(VerdictKind.WRONG, text, name, off)
    nearest = min(known, key=misfit)
    text = "no estimator known here gives these advantages from the logged rewards"
    note = f"nearest: {nearest.name}, off by {percent(misfit(nearest))}"
    return ProbeVerdict(VerdictKind.WRONG, text, "advantages", off, (note,))


def _unscored(rollouts: Sequence[ProbeRollout]) -> ProbeBatch:
    """Return a batch whose columns are the tokens of completions, without scores."""
    lengths = [len(rollout.completion_ids) for rollout in rollouts]
    count = sum(lengths)
    rollout_K = np.repeat(np.arange(len(rollouts)), lengths)
    place_K = np.concatenate([np.arange(length) for length in lengths])
    columns = rollout_K, place_K, np.full(count, COMPLETION), np.ones(count), np.zeros(count)
    nothing = np.zeros((len(rollouts), 0)), np.zeros(0, np.int64), (), np.zeros(0)
    table = ScoreTable(np.zeros((0, count)), *columns, np.zeros(count), *nothing)
    return ProbeBatch(rollouts, table, table.logprob_K)
