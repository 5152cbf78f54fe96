"""The settings of a training job: plain data that a run folder holds as JSON; rules across them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, Self

from tokengym.agents.settings import Setting, Settings, settings_of
from tokengym.agents.training.setting_groups import (
    Algorithm,
    DemonstrationSettings,
    EvaluationSettings,
    LearningSettings,
    MixedWorld,
    PolicySettings,
    PreferenceSettings,
    RolloutSettings,
    ScheduleSettings,
    SelfPlaySettings,
    ServiceSettings,
    TaskSettings,
    TeacherSettings,
)
from tokengym.envs.core.errors import OptionError
from tokengym.envs.registry import spec

Command = Literal["train", "sft", "dpo", "distil"]
"""What a job learns from: rewards, demonstrations, preferences, or a teacher's probabilities."""


class Offer(NamedTuple):
    """A training command.

    Attributes:
        summary: what it does.
        groups: the settings it takes.
    """

    summary: str
    groups: tuple[type[Settings], ...]


_SHARED = (TaskSettings, PolicySettings, ScheduleSettings, EvaluationSettings, ServiceSettings)
COMMANDS: Mapping[Command, Offer] = {
    "train": Offer(
        "Train a policy on the rewards it earns.",
        (
            *_SHARED,
            SelfPlaySettings,
            RolloutSettings,
            LearningSettings,
            Algorithm,
            DemonstrationSettings,
        ),
    ),
    "sft": Offer(
        "Fit demonstrations by cross-entropy.", (*_SHARED, SelfPlaySettings, DemonstrationSettings)
    ),
    "dpo": Offer(
        "Fit preferences between a run's rollouts by direct preference optimisation.",
        (*_SHARED, PreferenceSettings),
    ),
    "distil": Offer(
        "Learn on the policy's own rollouts what a teacher's probabilities are.",
        (*_SHARED, RolloutSettings, TeacherSettings),
    ),
}
"""The training commands, which share one loop and one kind of run folder."""


@dataclass(frozen=True, kw_only=True)
class TrainConfig(
    ServiceSettings,
    EvaluationSettings,
    TeacherSettings,
    PreferenceSettings,
    DemonstrationSettings,
    Algorithm,
    LearningSettings,
    RolloutSettings,
    ScheduleSettings,
    PolicySettings,
    SelfPlaySettings,
    TaskSettings,
):
    """The settings of one training job, by groups. `Job.resolve` resolves its names.

    Attributes:
        command: what it learns from. Settings of groups that the command does not offer keep their
            defaults.

    Raises:
        OptionError: if a value is not allowed, or two do not go together.
    """

    command: Command = "train"

    def __post_init__(self) -> None:
        """Check values, and what does not go together."""
        super().__post_init__()
        world_spec = spec(self.world)
        for level in (self.level, *self.curriculum):
            world_spec.require_level(level)
        self._check_command()
        self._check_learning()
        self._check_roles(world_spec.id, world_spec.roles)
        self._check_mixture()
        if self.credit == "exact":
            object.__setattr__(self, "options", {**self.options, "credit": True})

    @property
    def trained_roles(self) -> tuple[str, ...]:
        """The roles that are trained, the one that figures are about first."""
        roles = spec(self.world).roles
        return roles if self.self_play else (self.role or roles[0],)

    @property
    def schedule(self) -> Literal["constant", "linear", "cosine"]:
        """How the learning rate changes over the steps."""
        return self.lr_schedule or ("constant" if self.rolls_out else "linear")

    @property
    def token_loss(self) -> Literal["importance_sampling", "ppo", "cispo"]:
        """The loss on rollouts; samples of earlier weights want a clipped one."""
        return self.loss or ("ppo" if self.mode == "async" else "importance_sampling")

    @property
    def rolls_out(self) -> bool:
        """Whether steps train on rollouts of the policy, not on existing data."""
        return self.command in ("train", "distil")

    def for_world(self, other: MixedWorld) -> Self:
        """Return the configuration of one of the further worlds by itself."""
        return replace(
            self,
            world=other.world,
            level=other.level,
            options=other.options,
            others=(),
            mix="progress",
        )

    def without_rewards(self, **changes: Any) -> Self:
        """Return the settings of `tokengym sft` that fit the demonstrations named here.

        Args:
            changes: what else differs.
        """
        usual = {name: setting.default for name, setting in _not_offered("sft").items()}
        return replace(self, command="sft", **{**usual, **changes})

    def _check_command(self) -> None:
        """Refuse settings that the command does not offer, and demand what it needs."""
        for name, setting in _not_offered(self.command).items():
            if getattr(self, name) != setting.default:
                raise OptionError(
                    f"tokengym {self.command} has no {setting.flag}, got {getattr(self, name)!r}"
                )
        needed = {"dpo": "preferences", "distil": "teacher"}.get(self.command)
        if needed is not None and getattr(self, needed) is None:
            raise OptionError(f"tokengym {self.command} needs --{needed}, got none")

    def _check_learning(self) -> None:
        if self.curriculum and self.filter == "resample":
            raise OptionError(
                f"--curriculum {list(self.curriculum)} does not go with --filter resample"
            )
        if self.warm_start and self.separate:
            raise OptionError(f"--warm-start {self.warm_start} does not go with --separate")
        for name, usual in (("warm_start_rate", None), ("warm_start_updates", 1)):
            value = getattr(self, name)
            if value != usual and not self.warm_start:
                raise OptionError(
                    f"--{name.replace('_', '-')} {value} is for --warm-start, which is 0"
                )

    def _check_roles(self, world: str, roles: tuple[str, ...]) -> None:
        for role in [*self.opponents, *([self.role] if self.role else [])]:
            if role not in roles:
                raise OptionError(f"{world} has the roles {list(roles)}, got {role!r}")
        trained = self.role or roles[0]
        if trained in self.opponents and not self.self_play:
            raise OptionError(f"{trained} is trained and needs no opponent to play it")
        if self.self_play and len(roles) < 2:
            raise OptionError(f"--self-play needs several roles, {world} has {list(roles)}")
        if self.self_play and self.role is not None:
            raise OptionError(f"--self-play trains every role, got --role {self.role}")
        if self.separate and not self.self_play:
            raise OptionError("--separate is for --self-play, which is off")

    def _check_mixture(self) -> None:
        worlds = [(self.world, self.level), *((more.world, more.level) for more in self.others)]
        if len(set(worlds)) < len(worlds):
            raise OptionError(f"the worlds of a mixture must differ, got {worlds}")
        self.shares()
        if not self.others:
            return
        single = ("role", "opponents", "self_play", "curriculum", "warm_start")
        single_world = [f"{name}={getattr(self, name)!r}" for name in single if getattr(self, name)]
        single_world += ["filter='resample'"] if self.filter == "resample" else []
        single_world += ["credit='exact'"] if self.credit == "exact" else []
        single_world += [] if self.rolls_out else [f"tokengym {self.command}"]
        if single_world:
            raise OptionError(f"{', '.join(single_world)} is for one world, got {len(worlds)}")
        for other in self.others:
            self.for_world(other)


def _not_offered(command: Command) -> dict[str, Setting]:
    """Return the settings that a command does not offer, by name."""
    offered = [name for group in COMMANDS[command].groups for name in settings_of(group)]
    return {
        name: setting for name, setting in settings_of(TrainConfig).items() if name not in offered
    }
