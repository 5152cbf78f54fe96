"""TaskGroupBuilder: a group of rollouts of one Task, as an `EnvGroupBuilder` of tinker-cookbook."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tinker_cookbook.rl.types import Env, EnvGroupBuilder, Metrics, Trajectory

from tokengym.agents.rollouts import RolloutOrigin, RolloutRecord
from tokengym.agents.tinker.coordinator import Coordinator, Opponent
from tokengym.agents.tinker.env import Member, opponents_of
from tokengym.agents.tinker.fair_turns import take_turn
from tokengym.agents.tinker.group_records import group_records
from tokengym.agents.tinker.role_baselines import level_metrics, role_rewards, tie_metrics
from tokengym.envs.core.errors import OptionError
from tokengym.envs.core.spec import short_name
from tokengym.envs.core.task import Task
from tokengym.envs.registry import make_world, spec
from tokengym.envs.tokens.codec import Codec
from tokengym.envs.train_split import score_in_training, training_world


@dataclass(frozen=True)
class TaskGroupBuilder(EnvGroupBuilder):
    """Builds the environments of one group: all of them play the same Task.

    One trained role: each member has its own episode, and opponents play the other roles.
    Several trained roles: each episode has a member for every one of them, see `Coordinator`; all
    are sampled from one policy, and each is compared with members in its own role, see
    `role_rewards`.

    It pickles: worlds, and codecs and opponents given by name, are made where they run.

    Tie metrics. The cookbook logs, for each key, the mean over the trajectories that report it. So
    the first member alone reports the statistics of its group: the means over groups in the log are
    then exactly the pooled `reward_tie_group_rate`, `reward_uniform_group_rate` and
    `reward_unique_fraction_mean` of the step, whatever the groups' sizes. `reward_tie_pair_rate` is
    exact if all remaining groups have the same size (members are lost only with an error-tolerant
    rollout strategy); otherwise it weighs groups equally and not by their pairs.
    `reward_tie_eligible_groups` is exact if no group of the batch was dropped
    (`remove_constant_reward_groups` drops some); under one tag of several (`env/TAG/`) it counts as
    if every group of the batch had that tag. A group of one member, whose others may be
    lost, reports 0 eligible groups and no rates. `correct_rate` and `floor_mass` are reported, and
    pooled, in the same way.

    Attributes:
        task: what every member plays.
        codec: a codec, or its name for `codec_named`.
        group_size: number of episodes, at least 1.
        options: keyword options of the world. A Task of the train split is scored by what the
            world declares for training, unless that is named here: `{"label": "outcome"}`.
        role: the trained role, several of them, or the world's first role if `None`.
        opponents: who plays each other role: the name of one of the world's baselines, or a
            picklable `Opponent`. One trained role meets the world's usual opponents in those left.
        max_trajectory_tokens: see `TinkerEnv`.
        max_turn_tokens: see `TinkerEnv`.
        groups_in_batch: number of groups in this one's batch, for the count of eligible groups.
        number: of the group in its dataset, where a Task may come up several times.
        origin: what the group is played for; goes into its records.
        record: takes the records of the group's rollouts when it is complete, if they are kept.

    Raises:
        OptionError: if a size is not positive.
        UnknownWorldError: if the Task's world is not registered.
    """

    task: Task
    codec: Codec | str
    group_size: int
    options: Mapping[str, Any] = field(default_factory=dict)
    role: str | tuple[str, ...] | None = None
    opponents: Mapping[str, str | Opponent] = field(default_factory=dict)
    max_trajectory_tokens: int | None = None
    max_turn_tokens: int | None = None
    groups_in_batch: int = 1
    number: int = 0
    origin: RolloutOrigin | None = None
    record: Callable[[Sequence[RolloutRecord]], None] | None = None

    def __post_init__(self) -> None:
        """Reject settings that could not be built later."""
        for name in ("group_size", "groups_in_batch"):
            if getattr(self, name) < 1:
                raise OptionError(f"{name} must be at least 1, got {getattr(self, name)}")
        spec(self.task.world)

    async def make_envs(self) -> Sequence[Env]:
        """Create the members, each episode with its own world.

        Raises:
            OptionError: if the world does not take an option.
            RoleError: if no one plays a role, or no baseline has the given name.
        """
        await take_turn()
        opponents = opponents_of(spec(self.task.world), self.opponents, self._trained_roles())
        named = make_world(self.task.world, self.task.level, **self.options)
        world, task = score_in_training(named, training_world(named), self.task)
        openings: dict[str, list[int]] = {}
        members: list[Env] = []
        for _ in range(self.group_size):
            coordinator = Coordinator(
                world.fork(),
                task,
                self.codec,
                roles=self._trained_roles(),
                opponents=opponents,
                max_trajectory_tokens=self.max_trajectory_tokens,
                max_turn_tokens=self.max_turn_tokens,
                openings=openings,
            )
            members += [Member(coordinator, role) for role in coordinator.roles]
        return members

    async def compute_group_rewards(
        self, trajectory_group: list[Trajectory], env_group: Sequence[Env]
    ) -> list[tuple[float, Metrics]]:
        """Report how the group's returns tie; with several roles, make them comparable.

        Returns:
            with one trained role `(0.0, metrics)` per trajectory, and only the first has
            metrics; with several what `role_rewards` returns.
        """
        members = [env for env in env_group if isinstance(env, Member)]
        if isinstance(self.role, tuple):
            rewards = role_rewards(self.role, members, trajectory_group, self.groups_in_batch)
        else:
            returns = [sum(step.reward for step in one.transitions) for one in trajectory_group]
            first = tie_metrics([returns], self.groups_in_batch)
            first |= level_metrics(spec(self.task.world), self._trained_roles()[0], returns)
            rewards = [(0.0, {} if member else first) for member in range(len(returns))]
        if self.record is not None and self.origin is not None:
            added = [more for more, _ in rewards]
            self.record(group_records(self.origin, members, trajectory_group, added))
        return rewards

    def logging_tags(self) -> list[str]:
        """Name the world, and the world with its level: `forecast`, `forecast-easy`."""
        name = short_name(self.task.world)
        return [name, f"{name}-{self.task.level}"]

    def _trained_roles(self) -> tuple[str, ...]:
        role = self.role or spec(self.task.world).roles[0]
        return role if isinstance(role, tuple) else (role,)
