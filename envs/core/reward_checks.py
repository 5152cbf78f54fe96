"""Rewarding a step: terms on the reward grid, within the ranges that a world declares."""

from collections.abc import Mapping, MutableMapping

from tokengym.envs.core.spec import WorldSpec
from tokengym.rewards.bounds import dyadic


def pay_terms(
    spec: WorldSpec,
    returns: MutableMapping[str, float],
    terms: Mapping[str, Mapping[str, float]],
    *,
    final: bool,
) -> tuple[dict[str, float], dict[str, dict[str, float]]]:
    """Round terms to the grid, add their sums to the returns, and check the declared ranges.

    Args:
        spec: declares the ranges.
        returns: what each role has earned so far; what it earns now is added.
        terms: by role, the named parts of this step's reward.
        final: whether the episode ends here, so that the returns are checked too.

    Returns:
        the rewards by role and the rounded terms by role.

    Raises:
        RewardRangeError: if a reward or return leaves its declared range.
    """
    rewards: dict[str, float] = {}
    rounded: dict[str, dict[str, float]] = {}
    for role, parts in terms.items():
        grid, reward = {}, 0.0
        for name, value in parts.items():
            grid[name] = part = dyadic(value)
            reward += part
        bounds = spec.step_range[role]
        if not bounds.low <= reward <= bounds.high:
            bounds.require(reward, f"{spec.id}: reward of {role!r}")
        returns[role] += reward
        rewards[role] = reward
        rounded[role] = grid
    if final:
        for role, value in returns.items():
            bounds = spec.return_range[role]
            if not bounds.low <= value <= bounds.high:
                bounds.require(value, f"{spec.id}: return of {role!r}")
    return rewards, rounded
