"""What a trainer's logs say alone: whether its advantages follow from its rewards, without a model.

It takes milliseconds, and is blind to loss, padding, averaging and penalties.
"""

from collections.abc import Sequence

import numpy as np

from tokengym.agents.probe.batch import ProbeBatch
from tokengym.agents.probe.estimators import LOGGED, estimators
from tokengym.agents.probe.fit import FITS
from tokengym.agents.probe.rollouts import ProbeRollout
from tokengym.agents.probe.scores import COMPLETION, ScoreTable
from tokengym.agents.probe.verdict import ProbeVerdict, VerdictKind, percent
from tokengym.envs.core.errors import DataError
from tokengym.rewards.arrays import Floats


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
    (logged,) = (one for one in known if one.name == LOGGED)
    sent_K = np.where(batch.own_K, logged.advantages_K, 0.0)
    size = float(np.linalg.norm(sent_K))
    due_K = np.where(batch.own_K, known[0].advantages_K, 0.0)
    if not size:
        if due_K.any():
            return ProbeVerdict(
                VerdictKind.SUSPECT, "all advantages are 0, though rewards differ", "zeros", 1.0
            )
        return ProbeVerdict(
            VerdictKind.FOLLOWS, "rewards tie in every group, and all advantages are 0"
        )
    found = [
        (one, _misfit(sent_K / size, np.where(batch.own_K, one.advantages_K, 0.0)))
        for one in known
        if one.name != LOGGED
    ]
    off = min(left for one, left in found if one.unbiased)
    fitting = [(one, left) for one, left in found if left <= FITS]
    if not fitting:
        nearest, left = min(found, key=lambda pair: pair[1])
        text = f"no estimator known here gives these advantages; nearest: {nearest.name}"
        return ProbeVerdict(VerdictKind.SUSPECT, f"{text}, off by {percent(left)}", off=left)
    best, left = next((pair for pair in fitting if pair[0].unbiased), fitting[0])
    if best.unbiased:
        notes = (best.noise,) if best.noise else ()
        text = f"{best.name} (off by {percent(left)})"
        return ProbeVerdict(VerdictKind.FOLLOWS, text, best.name, left, notes)
    text = f"{best.name}; off by {percent(off)} from an unbiased estimator"
    return ProbeVerdict(VerdictKind.CHOICE, text, best.name, off)


def _misfit(sent_K: Floats, due_K: Floats) -> float:
    """Return the share of logged advantages, of norm 1, that a positive multiple leaves."""
    size, along = float(due_K @ due_K), float(sent_K @ due_K)
    if size == 0.0 or along <= 0.0:
        return 1.0
    return float(np.linalg.norm(sent_K - along / size * due_K))


def _unscored(rollouts: Sequence[ProbeRollout]) -> ProbeBatch:
    """Return a batch whose columns are the tokens of completions, without scores."""
    lengths = [len(rollout.completion_ids) for rollout in rollouts]
    count = sum(lengths)
    table = ScoreTable(
        np.zeros((0, count)),
        np.repeat(np.arange(len(rollouts)), lengths),
        np.concatenate([np.arange(length) for length in lengths]),
        np.full(count, COMPLETION),
        np.ones(count),
        np.zeros(count),
        np.zeros(0),
        np.zeros(0),
        np.zeros(0, np.int64),
        (),
        np.zeros(0),
    )
    return ProbeBatch(rollouts, table, table.logprob_K)
