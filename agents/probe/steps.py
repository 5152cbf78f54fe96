"""From the checkpoints of one batch to verdicts: every optimizer step on it is judged."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np

from tokengym.agents.probe.batch import ProbeBatch, logged_logprobs
from tokengym.agents.probe.estimators import group_means
from tokengym.agents.probe.fit import Fit
from tokengym.agents.probe.judge import Claims, judge
from tokengym.agents.probe.policy import Checkpoint, Weights
from tokengym.agents.probe.rollouts import ProbeRollout
from tokengym.agents.probe.scores import ScoreTable, draw_coordinates, score_table
from tokengym.agents.probe.update import ProbedUpdate, moved, update
from tokengym.agents.probe.verdict import ProbeVerdict, VerdictKind
from tokengym.envs.core.errors import DataError
from tokengym.rewards.arrays import Flags, Floats, Ints

_SEEN = 1e-4
"""Share of a step below which a rollout has no part in it."""
_TIED = "lm_head.weight"
"""Saved by some trainers though it is the embedding."""


@dataclass(frozen=True)
class Training:
    """What a trainer did with one batch.

    Attributes:
        model: the architecture, and the weights that are not in checkpoints.
        rollouts: the batch.
        checkpoints: before it and after each optimizer step on it.
        temperature: at which replies were sampled.
        reference: the checkpoint that a KL penalty refers to; `None` if there is no penalty.
    """

    model: Any
    rollouts: Sequence[ProbeRollout]
    checkpoints: Sequence[Checkpoint]
    temperature: float = 1.0
    reference: Checkpoint | None = None

    def verdicts(self, claims: Claims | None = None) -> list[ProbeVerdict]:
        """Judge every step; one more verdict follows where no step saw some of the rollouts.

        Raises:
            DataError: if the checkpoints do not belong together or to the model.
        """
        found = [
            judge(batch, one, claims, partial(self._table, before, after))
            for (batch, one), (before, after) in zip(
                self.steps, pairwise(self.checkpoints), strict=True
            )
        ]
        return [*found, *_never_seen([batch for batch, _ in self.steps])]

    @cached_property
    def steps(self) -> list[tuple[ProbeBatch, ProbedUpdate]]:
        """Each optimizer step as the batch, scored at the weights before, and the update."""
        steps = [self._step(before, after) for before, after in pairwise(self.checkpoints)]
        if len(steps) > 1:
            steps = [(replace(batch, seen_N=_seen(batch, one)), one) for batch, one in steps]
        return steps

    def _step(self, before: Checkpoint, after: Checkpoint) -> tuple[ProbeBatch, ProbedUpdate]:
        table = self._table(before, after)
        first = self.checkpoints[0]
        sampled_K = table.logprob_K if first is before else self._logprobs(first)
        sampled_K = logged_logprobs(self.rollouts, table, sampled_K)
        reference_K = None if self.reference is None else self._logprobs(self.reference)
        batch = ProbeBatch(self.rollouts, table, sampled_K, reference_K)
        return batch, update(before, after, _places(before, after))

    def _table(
        self,
        before: Checkpoint,
        after: Checkpoint,
        temperature: float | None = None,
        left_padding: bool = False,
    ) -> ScoreTable:
        return score_table(
            self.model,
            self._weights(before),
            self.rollouts,
            _places(before, after),
            temperature=temperature or self.temperature,
            left_padding=left_padding,
        )

    def _logprobs(self, at: Checkpoint) -> Floats:
        """Return the log-probability of every column at other weights."""
        return score_table(
            self.model, self._weights(at), self.rollouts, {}, temperature=self.temperature
        ).logprob_K

    def _weights(self, at: Checkpoint) -> Weights:
        known = {name for name, _ in self.model.named_parameters()}
        weights = {name: value for name, value in at.weights.items() if name != _TIED}
        if strange := weights.keys() - known:
            raise DataError(f"the model has no parameter {min(strange)!r}, which a checkpoint has")
        return weights


def _places(before: Checkpoint, after: Checkpoint) -> dict[str, Ints]:
    """Return the coordinates: of what moved, or of everything if nothing did."""
    names, still = moved(before, after)
    sizes = {name: after.weights[name].numel() for name in names or still}
    return draw_coordinates({name: size for name, size in sizes.items() if name != _TIED})


def _seen(batch: ProbeBatch, step: ProbedUpdate) -> Flags:
    """Return which rollouts a step was taken on: those whose tokens have a share in it."""
    everything = np.ones(len(batch.rollouts), np.bool_)
    if not step.size:
        return everything
    table, weights_K = batch.table, Fit(batch.table, step.change_P).weights_K()
    shares_N = np.array(
        [
            np.linalg.norm(table.scores_PK[:, here] @ weights_K[here])
            for here in (table.rollout_K == n for n in range(len(batch.rollouts)))
        ]
    )
    return np.asarray(shares_N > max(_SEEN, 3 * step.rounding))


def _never_seen(batches: Sequence[ProbeBatch]) -> list[ProbeVerdict]:
    """Return a verdict if no step saw a rollout that would have moved the weights."""
    masks = [batch.seen_N for batch in batches if batch.seen_N is not None]
    if not masks:
        return []
    batch = batches[0]
    due_N = batch.rewards_N - group_means(batch.rewards_N, batch.groups_N)
    left = ~np.any(masks, axis=0) & (np.abs(due_N) > 0.01 * np.abs(due_N).max())
    if not left.any():
        return []
    share = float(np.linalg.norm(due_N[left]) / np.linalg.norm(due_N))
    sentence = f"{left.sum()} of {len(left)} rollouts are in no step of the batch"
    return [ProbeVerdict(VerdictKind.WRONG, sentence, "rollouts left out", share)]
