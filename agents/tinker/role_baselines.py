"""Per-role reward baselines for groups whose members play different roles."""

import statistics
from collections.abc import Sequence

from tinker_cookbook.rl.types import Metrics, Trajectory, TrajectoryGroup

from tokengym.agents.tinker.env import Member
from tokengym.envs.core.spec import WorldSpec
from tokengym.envs.registry import spec
from tokengym.rewards.ties import tie_statistics

_ELIGIBLE = "reward_tie_eligible_groups"


def role_rewards(
    roles: Sequence[str],
    members: Sequence[Member],
    rollouts: Sequence[Trajectory],
    groups_in_batch: int,
) -> list[tuple[float, Metrics]]:
    """Return for every member what to add to its return, and its metrics.

    Rewards of different roles differ in scale, so the mean over all members, which the trainer
    subtracts, is a baseline for none of them. The sum added here moves the mean of every role to
    that of the first one: the trainer's advantage is then the return minus the mean of the member's
    own role, and its `reward/total` is the mean return of the first role.

    Members of abandoned episodes and members that never replied have nothing to learn: they are
    left out of means and ties, and get an advantage of 0.

    Metrics: for every member `ROLE/reward`, its return, and `ROLE/malformed`, the share of its
    replies that were; for the first member of every role the tie statistics of the role as
    `ROLE/NAME`; for the first member of all the statistics over the groups of all roles. A role
    with fewer than two members that count reports 0 eligible groups and no rates.

    Args:
        roles: the trained roles; `reward/total` is that of the first.
        members: the members.
        rollouts: their trajectories, in the same order.
        groups_in_batch: number of Tasks in the batch, for the count of eligible groups.
    """
    returns = [sum(step.reward for step in rollout.transitions) for rollout in rollouts]
    counts = [_counts(*pair) for pair in zip(members, rollouts, strict=True)]
    returns_of: dict[str, list[float]] = {role: [] for role in roles}
    for member, value, counted in zip(members, returns, counts, strict=True):
        if counted:
            returns_of[member.role].append(value)
    means = {role: statistics.fmean(values) for role, values in returns_of.items() if values}
    target = next((means[role] for role in roles if role in means), 0.0)
    added: list[tuple[float, Metrics]] = []
    reported: set[str] = set()
    for member, rollout, value, counted in zip(members, rollouts, returns, counts, strict=True):
        role = member.role
        metrics: Metrics = {f"{role}/reward": value}
        malformed = [
            float(s.metrics["malformed"]) for s in rollout.transitions if "malformed" in s.metrics
        ]
        if malformed:
            metrics[f"{role}/malformed"] = statistics.fmean(malformed)
        if not reported:
            metrics |= tie_metrics(list(returns_of.values()), groups_in_batch)
            metrics |= level_metrics(spec(member.task.world), roles[0], returns_of[roles[0]])
        if role not in reported:
            ties = tie_metrics([returns_of[role]], groups_in_batch)
            metrics |= {f"{role}/{name}": number for name, number in ties.items()}
            reported.add(role)
        added.append((target - (means[role] if counted else value), metrics))
    return added


def split_roles(group: TrajectoryGroup, roles: Sequence[str]) -> dict[str, TrajectoryGroup]:
    """Return each role's rollouts as a separate group, with the role's returns.

    Rollouts with nothing to learn from are left out, see `role_rewards`, and roles without any.

    Args:
        group: members of several roles, with the metrics that `role_rewards` gave them.
        roles: the trained roles.
    """
    groups: dict[str, TrajectoryGroup] = {}
    for role in roles:
        places = [
            place
            for place, (rollout, metrics) in enumerate(
                zip(group.trajectories_G, group.metrics_G, strict=True)
            )
            if f"{role}/reward" in metrics
            and not rollout.transitions[-1].metrics.get("abandoned")
            and any(step.ac.tokens for step in rollout.transitions)
        ]
        if places:
            groups[role] = TrajectoryGroup(
                [group.trajectories_G[place] for place in places],
                [0.0] * len(places),
                [group.metrics_G[place] for place in places],
            )
    return groups


def level_metrics(world: WorldSpec, role: str, returns: Sequence[float]) -> Metrics:
    """Return where the returns of a group lie in the world's range; nothing of no return.

    Returns:
        `correct_rate`: the share above the middle of the declared range; `floor_mass`: the share
        below the threshold of the world's flat floor, where it declares one.
    """
    if not returns:
        return {}
    declared, floor = world.return_range[role], world.flat_floor
    middle = (declared.low + declared.high) / 2.0
    shares: Metrics = {"correct_rate": statistics.fmean(value > middle for value in returns)}
    if floor is not None:
        shares["floor_mass"] = statistics.fmean(value < floor.below for value in returns)
    return shares


def _counts(member: Member, rollout: Trajectory) -> bool:
    return not member.coordinator.abandoned and any(step.ac.tokens for step in rollout.transitions)


def tie_metrics(groups: Sequence[Sequence[float]], groups_in_batch: int) -> Metrics:
    """Return how returns tie, by group; without an eligible group nothing but their number."""
    statistics: Metrics = dict(tie_statistics(groups))  # type: ignore[arg-type]
    eligible = statistics[_ELIGIBLE] * groups_in_batch
    return {**(statistics if eligible else {}), _ELIGIBLE: eligible}
