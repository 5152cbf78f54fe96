"""A batch by columns: what every scored token belongs to, and what it was sampled with."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tokengym.agents.probe.policy import END
from tokengym.agents.probe.rollouts import ProbeRollout, groups_of
from tokengym.agents.probe.scores import COMPLETION, ScoreTable
from tokengym.rewards.arrays import Flags, Floats, Ints


@dataclass(frozen=True)
class ProbeBatch:
    """Rollouts and their scores at the weights before the update.

    Attributes:
        rollouts: N of them.
        table: scores of K columns.
        sampled_K: log-probability of each column when it was sampled; as in `table` if on policy.
        reference_K: the same under the reference policy of a KL penalty; `None` if there is none.
        seen_N: which rollouts the step saw; all, unless it is one of several steps.
    """

    rollouts: Sequence[ProbeRollout]
    table: ScoreTable
    sampled_K: Floats
    reference_K: Floats | None = None
    seen_N: Flags | None = None

    @cached_property
    def rewards_N(self) -> Floats:
        """Returns."""
        return np.array([rollout.reward for rollout in self.rollouts])

    @cached_property
    def groups_N(self) -> Ints:
        """Numbers of the groups."""
        return np.array(groups_of(self.rollouts))

    @property
    def group_size(self) -> int:
        """Rollouts of the largest group."""
        return int(np.bincount(self.groups_N).max())

    @cached_property
    def own_K(self) -> Flags:
        """Which columns are tokens of the policy."""
        return self.turn_K >= 0

    @cached_property
    def read_K(self) -> Flags:
        """Which columns are tokens of the environment within completions."""
        return np.asarray((self.table.kind_K == COMPLETION) & ~self.own_K)

    @cached_property
    def turn_K(self) -> Ints:
        """The turn of each token of the policy, from 0; -1 for all others."""
        turns = [
            {at: number for number, span in enumerate(rollout.turns) for at in span}
            for rollout in self.rollouts
        ]
        table = self.table
        columns = zip(table.rollout_K, table.place_K, table.kind_K == COMPLETION, strict=True)
        return np.array([turns[n].get(at, -1) if inside else -1 for n, at, inside in columns])

    @cached_property
    def last_turn_N(self) -> Ints:
        """Number of each rollout's last turn, from 0."""
        return np.array([max(0, len(rollout.turns) - 1) for rollout in self.rollouts])

    @cached_property
    def cut_N(self) -> Flags:
        """Which rollouts end without the end token."""
        return np.array(
            [
                not rollout.turns or rollout.completion_ids[rollout.turns[-1][-1]] != END
                for rollout in self.rollouts
            ]
        )

    @cached_property
    def log_ratio_K(self) -> Floats:
        """Logarithm of the importance ratio of each token of the policy."""
        return np.where(self.own_K, self.table.logprob_K - self.sampled_K, 0.0)

    @property
    def off_policy(self) -> bool:
        """Whether any ratio is not 1, beyond what rounding in the log-probabilities explains."""
        return bool(np.abs(self.log_ratio_K).max(initial=0.0) > 1e-4)

    def counts_N(self, mask_K: Flags) -> Floats:
        """Return the tokens of each rollout under a mask."""
        sizes_K = mask_K * self.table.size_K
        return np.bincount(self.table.rollout_K, sizes_K, len(self.rollouts)).astype(np.float64)

    def with_table(self, table: ScoreTable) -> "ProbeBatch":
        """Return the batch with its columns scored in another way."""
        return ProbeBatch(self.rollouts, table, table.logprob_K, None, self.seen_N)

    def at(self, rows_P: Flags) -> "ProbeBatch":
        """Return the batch with its scores at some of the coordinates."""
        return replace(self, table=self.table.at(rows_P))


def logged(
    name: str, rollouts: Sequence[ProbeRollout], table: ScoreTable, otherwise_K: Floats
) -> Floats:
    """Return `logprobs` or `advantages` as rollouts have them, of completions; others elsewhere."""
    values_K = otherwise_K.copy()
    for k in np.flatnonzero(table.kind_K == COMPLETION):
        values = getattr(rollouts[table.rollout_K[k]], name)
        values_K[k] = otherwise_K[k] if values is None else values[table.place_K[k]]
    return values_K
