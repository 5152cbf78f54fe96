"""From rollouts to one advantage per turn: what is compared, by which estimator. Pure numpy."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from tokengym.agents.training.setting_groups import Algorithm
from tokengym.rewards.advantages import (
    by_turn,
    group_centred,
    group_standardised,
    leave_one_out,
    reinforce_plus_plus,
    remax,
    returns_to_go,
    turn_rows,
)
from tokengym.rewards.arrays import Flags, Floats

_COMPARING = {
    "group_centred": group_centred,
    "group_standardised": group_standardised,
    "leave_one_out": leave_one_out,
}


@dataclass(frozen=True)
class TurnTable:
    """The turns of N groups of at most G rollouts of at most T turns each; 0 where there is none.

    Attributes:
        rewards_NGT: reward of each turn.
        taken_NGT: which turns were taken.
        tokens_NGT: tokens sampled in each turn.
        credits_NGT: exact credit of each turn, 0 where none was reported.
        greedy_N: return of the greedy rollout of each group's Task; all 0 if there was none.
    """

    rewards_NGT: Floats
    taken_NGT: Flags
    tokens_NGT: Floats
    credits_NGT: Floats
    greedy_N: Floats

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
    values_NGS, counted_NGS = _compared(algorithm, table)
    if algorithm.estimator == "remax":
        greedy_N11 = table.greedy_N[:, None, None]
        values_NGS = np.concatenate([values_NGS, greedy_N11], axis=1)
        counted_NGS = np.concatenate([counted_NGS, np.ones_like(greedy_N11, np.bool_)], axis=1)
    high_NS = values_NGS.max(axis=1, initial=-np.inf, where=counted_NGS)
    low_NS = values_NGS.min(axis=1, initial=np.inf, where=counted_NGS)
    several_NS = counted_NGS.sum(axis=1) >= 2
    spread_NS = np.subtract(high_NS, low_NS, out=np.zeros_like(high_NS), where=several_NS)
    spread_N: Floats = spread_NS.max(axis=1, initial=0.0)
    return spread_N


def advantages(algorithm: Algorithm, table: TurnTable) -> Floats:
    """Return the advantage of each turn, shape (N, G, T); 0 for turns that were not taken.

    What `reinforce_plus_plus` standardises by is computed over all groups given, dead ones
    included: leave them out before where they are to have no vote.
    """
    values_NGS, counted_NGS = _compared(algorithm, table)
    least = algorithm.min_spread
    if algorithm.estimator == "remax":
        found_NG = remax(values_NGS[:, :, 0], table.greedy_N, counted_NGS[:, :, 0])
        # The one estimator without a resolution of its own.
        live_N = spreads(algorithm, table) > least
        found_NGS = np.where(live_N[:, None], found_NG, 0.0)[:, :, None]
    elif algorithm.estimator == "reinforce_plus_plus":
        tokens_NGS = table.tokens_NGT
        if algorithm.credit == "episode":
            tokens_NGS = tokens_NGS.sum(axis=2, keepdims=True)
        tokens = turn_rows(tokens_NGS)
        found_NGS = by_turn(
            lambda values, counted: reinforce_plus_plus(
                values, tokens, counted, minimum_spread=least
            ),
            values_NGS,
            counted_NGS,
        )
    else:
        estimate = partial(_COMPARING[algorithm.estimator], minimum_spread=least)
        found_NGS = by_turn(estimate, values_NGS, counted_NGS)
    return np.where(table.taken_NGT, found_NGS, 0.0)


def _compared(algorithm: Algorithm, table: TurnTable) -> tuple[Floats, Flags]:
    """The compared values and which of them count, shape (N, G, T), or (N, G, 1) for episodes."""
    if algorithm.credit == "episode":
        return table.returns_NG()[:, :, None], table.counted_NG()[:, :, None]
    if algorithm.credit == "turn":
        return returns_to_go(table.rewards_NGT), table.taken_NGT
    # What later turns lost counts as well: credited alone, as if the best replies followed, a turn
    # that puts a hard decision off would earn more than one that takes it.
    return returns_to_go(table.credits_NGT), table.taken_NGT
