"""Advantage estimators for groups of rollouts, with one rule for ties.

Arrays are (N, G): N groups of G rollouts, those of a group on the same prompt. `counted_NG` marks
the rollouts that count (default: all): ragged groups are padded, and truncated or unscored rollouts
excluded. Excluded rollouts enter no mean, may hold NaN, and get advantage 0.

The rule for ties: the spread of a group is its largest minus its smallest reward. A spread of at
most `minimum_spread` counts as none, and such a group gets exactly 0 from every estimator that
compares rollouts of a group, as do groups with fewer than two rollouts that count. Only groups with
a spread are divided by their standard deviation, so a standardised advantage never exceeds
(n - 1) / √n, and rounding residue is never amplified into a signal.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from tokengym.rewards.arrays import Flags, Floats

Scalar = TypeVar("Scalar", bound=np.generic)

MINIMUM_SPREAD = 1e-6
"""Default of `minimum_spread`: the `eps` of ties, below the grid of 2⁻¹⁶ of a world's rewards."""


def informative_groups(
    rewards_NG: npt.ArrayLike,
    counted_NG: npt.ArrayLike | None = None,
    *,
    minimum_spread: float = MINIMUM_SPREAD,
) -> Flags:
    """Flag the groups whose rewards have a spread, shape (N,).

    This is a property of a whole group's rewards, whatever the estimator: in [1, 0, 0, 0] all four
    rollouts are informative, although for one of them the other three have no spread.

    Args:
        rewards_NG: rewards, shape (N, G).
        counted_NG: which rollouts count, shape (N, G).
        minimum_spread: largest spread that counts as none, `>= 0`. Set it to the resolution of the
            reward to treat groups that differ by noise alone as ties.

    Raises:
        ValueError: if shapes differ, a reward that counts is not finite, or the spread is negative.
    """
    return _read(rewards_NG, counted_NG, minimum_spread).informative_N


def group_centred(
    rewards_NG: npt.ArrayLike,
    counted_NG: npt.ArrayLike | None = None,
    *,
    minimum_spread: float = MINIMUM_SPREAD,
) -> Floats:
    """Return reward minus the group's mean, shape (N, G): GRPO without the standard deviation.

    Liu et al. (2025), Understanding R1-Zero-Like Training ("Dr. GRPO"); tinker-cookbook's choice.
    Arguments and errors are those of `informative_groups`.
    """
    return _centred(_read(rewards_NG, counted_NG, minimum_spread))


def group_standardised(
    rewards_NG: npt.ArrayLike,
    counted_NG: npt.ArrayLike | None = None,
    *,
    minimum_spread: float = MINIMUM_SPREAD,
) -> Floats:
    """Return (reward - mean) / standard deviation of the group, shape (N, G): GRPO.

    Shao et al. (2024), DeepSeekMath. The deviation is the sample's (n - 1 in the denominator), from
    centred rewards: squares of the rewards themselves cancel badly. Every informative group gets
    the same size of update, however small its spread; `minimum_spread` bounds what that amplifies.
    Arguments and errors are those of `informative_groups`.
    """
    groups = _read(rewards_NG, counted_NG, minimum_spread)
    # In units of the spread no square underflows, and the deviation of a live group is far from 0.
    unit_N = np.where(groups.informative_N, groups.spread_N, 1.0)
    scaled_NG = _centred(groups) / unit_N[:, None]
    degrees_N = np.maximum(groups.size_N - 1.0, 1.0)
    deviation_N = np.sqrt((scaled_NG**2).sum(axis=1) / degrees_N)
    deviation_N[~groups.informative_N] = 1.0
    standardised_NG: Floats = scaled_NG / deviation_N[:, None]
    return standardised_NG


def leave_one_out(
    rewards_NG: npt.ArrayLike,
    counted_NG: npt.ArrayLike | None = None,
    *,
    minimum_spread: float = MINIMUM_SPREAD,
) -> Floats:
    """Return reward minus the mean of the *other* rewards of the group, shape (N, G): RLOO.

    Ahmadian et al. (2024), Back to Basics. It is n / (n - 1) times the centred reward, and unbiased
    because no reward is part of its own baseline. Arguments and errors are those of
    `informative_groups`.
    """
    groups = _read(rewards_NG, counted_NG, minimum_spread)
    factor_N = groups.size_N / np.maximum(groups.size_N - 1.0, 1.0)
    others_NG: Floats = _centred(groups) * factor_N[:, None]
    return others_NG


def reinforce_plus_plus(
    rewards_NG: npt.ArrayLike,
    tokens_NG: npt.ArrayLike,
    counted_NG: npt.ArrayLike | None = None,
    *,
    cap: float | None = None,
    minimum_spread: float = MINIMUM_SPREAD,
) -> Floats:
    """Return rewards centred by group, then standardised over the tokens of the batch, (N, G).

    Hu (2025), REINFORCE++ (the variant with a group baseline). Every token of a rollout has its
    rollout's advantage, so mean and (population) deviation weigh rollouts by their tokens.

    Uninformative groups enter these two numbers as zeros, as in the paper, but stay exactly 0,
    where the paper would shift all of their rollouts by -mean / deviation. To exclude them from
    the two numbers too, pass `counted_NG & informative_groups(...)[:, None]`.

    Args:
        rewards_NG: rewards, shape (N, G).
        tokens_NG: tokens trained on of each rollout, shape (N, G), `>= 0`.
        counted_NG: which rollouts count, shape (N, G).
        cap: advantages are clipped to [-cap, cap]; not at all if `None`.
        minimum_spread: largest spread that counts as none, of a group and of the batch.

    Raises:
        ValueError: as `informative_groups`; also if token counts or the cap are out of range.
    """
    groups = _read(rewards_NG, counted_NG, minimum_spread)
    tokens = np.asarray(tokens_NG, np.float64)
    if tokens.shape != groups.counted_NG.shape:
        raise ValueError(f"tokens_NG must have shape {groups.counted_NG.shape}, got {tokens.shape}")
    weights_NG = np.where(groups.counted_NG, tokens, 0.0)
    if not (np.isfinite(weights_NG) & (weights_NG >= 0.0)).all():
        raise ValueError("tokens_NG must be finite and >= 0")
    if cap is not None and not cap > 0.0:
        raise ValueError(f"cap must be positive, got {cap!r}")
    centred_NG = _centred(groups)
    spoken = centred_NG[weights_NG > 0.0]
    spread = np.ptp(spoken) if spoken.size else 0.0
    if spread <= minimum_spread:
        return np.zeros_like(centred_NG)
    scaled_NG = centred_NG / spread
    mean = np.average(scaled_NG, weights=weights_NG)
    deviation = np.sqrt(np.average((scaled_NG - mean) ** 2, weights=weights_NG))
    live_NG = groups.counted_NG & groups.informative_N[:, None]
    advantages_NG = np.where(live_NG, (scaled_NG - mean) / deviation, 0.0)
    return advantages_NG if cap is None else np.clip(advantages_NG, -cap, cap)


def remax(
    rewards_NG: npt.ArrayLike,
    greedy_N: npt.ArrayLike,
    counted_NG: npt.ArrayLike | None = None,
    *,
    minimum_spread: float = 0.0,
) -> Floats:
    """Return reward minus the reward of the prompt's greedy rollout, shape (N, G): ReMax.

    Li et al. (2023), ReMax. The baseline is a separate rollout, so a group that ties still has an
    advantage wherever the greedy rollout earned something else, and a group of one is no special
    case.

    Args:
        rewards_NG: rewards, shape (N, G).
        greedy_N: reward of the greedy rollout of each prompt, shape (N,).
        counted_NG: which rollouts count, shape (N, G).
        minimum_spread: largest spread of a group and its greedy rollout that counts as none.

    Raises:
        ValueError: if shapes differ or a reward that counts is not finite.
    """
    groups = _read(rewards_NG, counted_NG, minimum_spread)
    baseline_N = np.asarray(greedy_N, np.float64)
    if baseline_N.shape != groups.size_N.shape or not np.isfinite(baseline_N).all():
        raise ValueError(
            f"greedy_N must be {len(groups.size_N)} finite rewards, got shape {baseline_N.shape}"
        )
    beyond_NG = np.where(groups.counted_NG, groups.rewards_NG - baseline_N[:, None], 0.0)
    high_N, low_N = beyond_NG.max(axis=1, initial=0.0), beyond_NG.min(axis=1, initial=0.0)
    return np.where((high_N - low_N > minimum_spread)[:, None], beyond_NG, 0.0)


def returns_to_go(rewards_NGT: npt.ArrayLike, discount: float = 1.0) -> Floats:
    """Return Σ_k≥t discount^(k - t) r_k for every turn t, shape (N, G, T).

    Args:
        rewards_NGT: reward of each turn, shape (N, G, T); 0 for turns that were not taken.
        discount: in [0, 1].

    Raises:
        ValueError: if the array has another number of axes or the discount is out of range.
    """
    rewards = np.asarray(rewards_NGT, np.float64)
    if rewards.ndim != 3:
        raise ValueError(f"rewards_NGT must have three axes, got shape {rewards.shape}")
    if not 0.0 <= discount <= 1.0:
        raise ValueError(f"discount must be in [0, 1], got {discount!r}")
    returns_NGT = rewards.copy()
    for turn in reversed(range(rewards.shape[2] - 1)):
        returns_NGT[:, :, turn] += discount * returns_NGT[:, :, turn + 1]
    return returns_NGT


def by_turn(
    estimate: Callable[[Floats, Flags], Floats], values_NGT: Floats, taken_NGT: Flags
) -> Floats:
    """Apply an estimator to each turn separately, shape (N, G, T).

    With `group_centred` and `returns_to_go` a turn is credited with what was earned from then on,
    less the mean over the rollouts of the group that took a turn at the same place; where fewer
    than two did, it gets 0. Rewards already earned do not count against later turns. Rollouts of a
    group share the prompt, not the states they get to: the baseline lowers the variance but ignores
    the state. (Where a world has an exact value function, its credit does not: `credit=True` of the
    energy world.)

    Args:
        estimate: from values and flags of what counts, both (N * T, G) as `turn_rows` makes them,
            to advantages.
        values_NGT: what is compared at each turn, such as returns to go, shape (N, G, T).
        taken_NGT: which turns were taken and count, shape (N, G, T).

    Raises:
        ValueError: if the shapes differ.
    """
    if values_NGT.shape != taken_NGT.shape:
        raise ValueError(f"taken_NGT must have shape {values_NGT.shape}, got {taken_NGT.shape}")
    groups, rollouts, turns = values_NGT.shape
    rows = estimate(turn_rows(values_NGT), turn_rows(taken_NGT))
    return rows.reshape(groups, turns, rollouts).transpose(0, 2, 1)


def turn_rows(array_NGT: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
    """Reshape an array by turn into rows: row n * T + t is turn t of group n, shape (N * T, G)."""
    groups, rollouts, turns = array_NGT.shape
    return array_NGT.transpose(0, 2, 1).reshape(groups * turns, rollouts)


class _Groups(NamedTuple):
    """Validated input: excluded rollouts have reward 0, and `size_N` rollouts of a group count."""

    rewards_NG: Floats
    counted_NG: Flags
    size_N: Floats
    spread_N: Floats
    informative_N: Flags


def _read(
    rewards_NG: npt.ArrayLike, counted_NG: npt.ArrayLike | None, minimum_spread: float
) -> _Groups:
    rewards = np.asarray(rewards_NG, np.float64)
    if rewards.ndim != 2:
        raise ValueError(f"rewards_NG must have two axes (N, G), got shape {rewards.shape}")
    counted = np.ones(rewards.shape, np.bool_) if counted_NG is None else np.asarray(counted_NG)
    if counted.shape != rewards.shape or counted.dtype != np.bool_:
        raise ValueError(
            f"counted_NG must be flags of shape {rewards.shape}, got shape {counted.shape} "
            f"and dtype {counted.dtype}"
        )
    if not np.isfinite(rewards[counted]).all():
        raise ValueError("rewards that count must be finite, got NaN or an infinite one")
    if not minimum_spread >= 0.0:
        raise ValueError(f"minimum_spread must be >= 0, got {minimum_spread!r}")
    size_N = counted.sum(axis=1, dtype=np.float64)
    high_N = rewards.max(axis=1, initial=-np.inf, where=counted)
    low_N = rewards.min(axis=1, initial=np.inf, where=counted)
    spread_N = np.where(size_N >= 2.0, high_N - low_N, 0.0)
    rewards_NG = np.where(counted, rewards, 0.0)
    return _Groups(rewards_NG, counted, size_N, spread_N, spread_N > minimum_spread)


def _centred(groups: _Groups) -> Floats:
    mean_N = groups.rewards_NG.sum(axis=1) / np.maximum(groups.size_N, 1.0)
    live_NG = groups.counted_NG & groups.informative_N[:, None]
    return np.where(live_NG, groups.rewards_NG - mean_N[:, None], 0.0)
