"""From rollouts to one advantage per turn: what is compared, by which estimator. Pure numpy."""

from dataclasses import dataclass

import numpy as np

from tokengym.agents.training.config import Algorithm
from tokengym.rewards.advantages import returns_to_go, turn_rows
from tokengym.rewards.arrays import Flags, Floats
from tokengym.rewards.estimators import ESTIMATORS, Batch, group_spreads


@dataclass(frozen=True)
class TurnTable:
    """The turns of N groups of at most G rollouts of at most T turns each; 0 where there is none.

    Attributes:
        rewards_NGT: reward of each turn.
        taken_NGT: which turns were taken.
        tokens_NGT: tokens sampled in each turn.
        credits_NGT: exact credit of each turn, 0 where none was reported.
    """

    rewards_NGT: Floats
    taken_NGT: Flags
    tokens_NGT: Floats
    credits_NGT: Floats

    def returns_NG(self) -> Floats:
        """Return of each rollout, shape (N, G)."""
        returns: Floats = self.rewards_NGT.sum(axis=2)
        return returns

    def counted_NG(self) -> Flags:
        """Which rollouts there are, shape (N, G)."""
        return np.asarray(self.taken_NGT.any(axis=2))


def spreads(algorithm: Algorithm, table: TurnTable) -> Floats:
    """Return the spread of the compared values in each group, shape (N,).

    With credit by turn that is the spread at the turn where it is largest. Fewer than two rollouts,
    or two at a turn, have nothing to be compared with: their spread is 0.
    """
    batch, turns = _batch(algorithm, table)
    return np.asarray(group_spreads(batch).reshape(-1, turns).max(axis=1, initial=0.0))


def advantages(algorithm: Algorithm, table: TurnTable) -> Floats:
    """Return the advantage of each turn, shape (N, G, T); 0 for turns that were not taken.

    An estimator that looks at the whole batch sees all groups given, dead ones included: leave them
    out before where they are to have no vote.
    """
    batch, turns = _batch(algorithm, table)
    found_RG = ESTIMATORS[algorithm.estimator].advantages(batch)
    groups, size = len(table.taken_NGT), found_RG.shape[1]  # there may be no group
    found_NGT = found_RG.reshape(groups, turns, size).transpose(0, 2, 1)
    return np.where(table.taken_NGT, found_NGT, 0.0)


def _batch(algorithm: Algorithm, table: TurnTable) -> tuple[Batch, int]:
    """Return each group at each turn as a group of a batch, and the number of turns."""
    values_NGT, counted_NGT = _compared(algorithm, table)
    turns, tokens_NGT = values_NGT.shape[2], table.tokens_NGT
    if algorithm.credit == "episode":
        tokens_NGT = tokens_NGT.sum(axis=2, keepdims=True)
    rows = (turn_rows(values_NGT), turn_rows(counted_NGT), turn_rows(tokens_NGT))
    return Batch(*rows, algorithm.min_spread), turns


def _compared(algorithm: Algorithm, table: TurnTable) -> tuple[Floats, Flags]:
    """The compared values and which of them count, shape (N, G, T), or (N, G, 1) for episodes."""
    if algorithm.credit == "episode":
        return table.returns_NG()[:, :, None], table.counted_NG()[:, :, None]
    if algorithm.credit == "turn":
        return returns_to_go(table.rewards_NGT), table.taken_NGT
    # Losses of later turns count as well: credited alone, as if the best replies followed, a turn
    # that puts a hard decision off would earn more than one that takes it.
    return returns_to_go(table.credits_NGT), table.taken_NGT
