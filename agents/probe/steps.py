"""From the checkpoints of one batch to verdicts: every optimizer step on it is judged."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

from tokengym.agents.probe.batch import ProbeBatch, logged
from tokengym.agents.probe.documented import DocumentedUpdate
from tokengym.agents.probe.judge import judge
from tokengym.agents.probe.policy import Checkpoint, Weights
from tokengym.agents.probe.rollouts import ProbeRollout
from tokengym.agents.probe.scores import ScoreTable, draw_coordinates, score_table
from tokengym.agents.probe.update import ProbedUpdate, shared, update
from tokengym.agents.probe.verdict import ProbeVerdict
from tokengym.envs.core.errors import DataError
from tokengym.rewards.arrays import Floats, Ints

_TIED = "lm_head.weight"
"""Saved by some trainers though it is the embedding."""


@dataclass(frozen=True)
class Training:
    """One batch and the update that a trainer made of it.

    Attributes:
        model: the architecture, and the weights that are not in checkpoints.
        rollouts: the batch.
        checkpoints: before it and after each optimizer step on it.
        temperature: at which replies were sampled.
        reference: the checkpoint that a KL penalty refers to; `None` if there is no penalty.
        documents: returns what the settings say of a step, given its batch and its number, from 0;
            `None` if that is not known.
    """

    model: Any
    rollouts: Sequence[ProbeRollout]
    checkpoints: Sequence[Checkpoint]
    temperature: float = 1.0
    reference: Checkpoint | None = None
    documents: Callable[[ProbeBatch, int], Sequence[DocumentedUpdate]] | None = None

    def verdicts(self) -> list[ProbeVerdict]:
        """Judge every step.

        Raises:
            DataError: if the checkpoints do not belong together or to the model.
        """
        found = []
        for number, (before, after) in enumerate(pairwise(self.checkpoints)):
            batch, one = self.steps[number]
            said = self.documents(batch, number) if self.documents else ()
            if said:
                batch = replace(batch, seen_N=said[0].seen_N)
            found.append(judge(batch, one, said, partial(self._table, before, after)))
        return found

    @cached_property
    def steps(self) -> list[tuple[ProbeBatch, ProbedUpdate]]:
        """Each optimizer step as the batch, scored at the weights before, and the update."""
        return [self._step(before, after) for before, after in pairwise(self.checkpoints)]

    def _step(self, before: Checkpoint, after: Checkpoint) -> tuple[ProbeBatch, ProbedUpdate]:
        table = self._table(before, after)
        first = self.checkpoints[0]
        sampled_K = table.logprob_K if first is before else self._logprobs(first)
        sampled_K = logged("logprobs", self.rollouts, table, sampled_K)
        reference_K = None if self.reference is None else self._logprobs(self.reference)
        batch = ProbeBatch(self.rollouts, table, sampled_K, reference_K)
        return batch, update(before, after, self._places(before, after))

    def _places(self, before: Checkpoint, after: Checkpoint) -> dict[str, Ints]:
        """Return the coordinates, also of what did not move though it is to be trained."""
        trained = {name for name, value in self.model.named_parameters() if value.requires_grad}
        names = [name for name in shared(before, after) if name in trained]
        return draw_coordinates({name: after.weights[name].numel() for name in names})

    def _table(
        self,
        before: Checkpoint,
        after: Checkpoint,
        temperature: float | None = None,
        left_padding: bool = False,
        padding: bool = False,
    ) -> ScoreTable:
        places, own = self._places(before, after), self._weights(before)
        how = {"left_padding": left_padding, "padding": padding}
        heat = temperature or self.temperature
        return score_table(self.model, own, self.rollouts, places, temperature=heat, **how)

    def _logprobs(self, at: Checkpoint) -> Floats:
        """Return the log-probability of every column at other weights."""
        at_weights, heat = self._weights(at), self.temperature
        return score_table(self.model, at_weights, self.rollouts, {}, temperature=heat).logprob_K

    def _weights(self, at: Checkpoint) -> Weights:
        known = {name for name, _ in self.model.named_parameters()}
        weights = {name: value for name, value in at.weights.items() if name != _TIED}
        if strange := weights.keys() - known:
            raise DataError(f"the model has no parameter {min(strange)!r}, which a checkpoint has")
        return weights
