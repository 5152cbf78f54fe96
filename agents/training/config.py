"""The settings of a training job: plain data that a run folder holds as JSON; rules across them."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, ClassVar, Literal, Self, TypeVar

from tokengym.agents.settings import Settings, plain, read_plain, settings_of
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
Schedule = Literal["constant", "linear", "cosine"]
TokenLoss = Literal["importance_sampling", "ppo", "cispo", "cross_entropy"]
G = TypeVar("G", bound=Settings)


@dataclass(frozen=True, kw_only=True)
class JobConfig(
    ServiceSettings, EvaluationSettings, ScheduleSettings, PolicySettings, TaskSettings
):
    """The settings that every training command takes. `Job.resolve` resolves their names.

    Attributes:
        command: the command.
        rolls_out: whether steps train on rollouts of the policy, not on existing data.

    Raises:
        OptionError: if a value is not allowed, or two do not go together.
    """

    command: ClassVar[Command]
    rolls_out: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Check values, and what does not go together."""
        super().__post_init__()
        world_spec = spec(self.world)
        world_spec.require_level(self.level)
        self._check_roles(world_spec.id, world_spec.roles)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON values that `read_config` takes."""
        return {"command": self.command, **asdict(self)}

    def group(self, kind: type[G]) -> G:
        """Return these settings as a group's; its defaults where the command does not take it."""
        return self if isinstance(self, kind) else kind()

    @property
    def trained_roles(self) -> tuple[str, ...]:
        """The roles that are trained, the one that figures are about first."""
        roles = spec(self.world).roles
        return roles if self.group(SelfPlaySettings).self_play else (self.role or roles[0],)

    @property
    def tag(self) -> str:
        """The world with its level in names of metrics and policies: `energy-small`."""
        return f"{spec(self.world).short_name}-{self.level}"

    @property
    def trained(self) -> "dict[str, tuple[JobConfig, str]]":
        """What is trained, by name: its configuration in one world, and its role.

        In one world the trained roles, by their names; else the first role of each world, by the
        world's tag.
        """
        if not self.further:
            return {role: (self, role) for role in self.trained_roles}
        return {part.tag: (part, part.trained_roles[0]) for part in (self, *self.further)}

    @property
    def schedule(self) -> Schedule:
        """How the learning rate changes over the steps."""
        return self.lr_schedule or ("constant" if self.rolls_out else "linear")

    @property
    def token_loss(self) -> TokenLoss:
        """The loss of a token."""
        return "cross_entropy"

    @property
    def further(self) -> "tuple[JobConfig, ...]":
        """The configuration of each further world by itself."""
        return ()

    def _check_roles(self, world: str, roles: tuple[str, ...]) -> None:
        for role in [*self.opponents, *([self.role] if self.role else [])]:
            if role not in roles:
                raise OptionError(f"{world} has the roles {list(roles)}, got {role!r}")
        trained, play = self.role or roles[0], self.group(SelfPlaySettings)
        self_play = play.self_play
        if trained in self.opponents and not self_play:
            raise OptionError(f"{trained} is trained and needs no opponent to play it")
        if self_play and len(roles) < 2:
            raise OptionError(f"--self-play needs several roles, {world} has {list(roles)}")
        if self_play and self.role is not None:
            raise OptionError(f"--self-play trains every role, got --role {self.role}")
        if play.separate and not self_play:
            raise OptionError("--separate is for --self-play, which is off")


@dataclass(frozen=True, kw_only=True)
class RolloutConfig(RolloutSettings, JobConfig):
    """The settings of every training command whose steps are rollouts."""

    rolls_out: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Check the levels of a curriculum, and what several worlds do not take."""
        super().__post_init__()
        for level in self.curriculum:
            spec(self.world).require_level(level)
        worlds = [(self.world, self.level), *((more.world, more.level) for more in self.others)]
        if len(set(worlds)) < len(worlds):
            raise OptionError(f"the worlds of a mixture must differ, got {worlds}")
        self.shares()
        names = ("role", "opponents", "self_play", "curriculum", "warm_start")
        single = [f"{name}={value!r}" for name in names if (value := getattr(self, name, None))]
        algorithm = self.group(Algorithm)
        single += ["filter='resample'"] if algorithm.filter == "resample" else []
        single += ["credit='exact'"] if algorithm.credit == "exact" else []
        if self.others and single:
            raise OptionError(f"{', '.join(single)} is for one world, got {len(worlds)}")
        _ = self.further  # each is checked as it is made

    @property
    def token_loss(self) -> TokenLoss:
        """The loss on rollouts; samples of earlier weights want a clipped one."""
        return self.loss or ("ppo" if self.mode == "async" else "importance_sampling")

    @property
    def further(self) -> tuple[Self, ...]:
        """The configuration of each further world by itself."""
        return tuple(map(self._for_world, self.others))

    def _for_world(self, other: MixedWorld) -> Self:
        named: Any = {"world": other.world, "level": other.level, "options": other.options}
        return replace(self, **named, others=(), mix="progress")


@dataclass(frozen=True, kw_only=True)
class SftConfig(DemonstrationSettings, SelfPlaySettings, JobConfig):
    """Fit demonstrations by cross-entropy."""

    command: ClassVar[Command] = "sft"


@dataclass(frozen=True, kw_only=True)
class TrainConfig(
    DemonstrationSettings, Algorithm, LearningSettings, SelfPlaySettings, RolloutConfig
):
    """Train a policy on the rewards it earns."""

    command: ClassVar[Command] = "train"

    def __post_init__(self) -> None:
        """Check what does not go together."""
        super().__post_init__()
        if self.curriculum and self.filter == "resample":
            raise OptionError(
                f"--curriculum {list(self.curriculum)} does not go with --filter resample"
            )
        if self.warm_start and self.separate:
            raise OptionError(f"--warm-start {self.warm_start} does not go with --separate")
        if self.credit == "exact":
            object.__setattr__(self, "options", {**self.options, "credit": True})


@dataclass(frozen=True, kw_only=True)
class DpoConfig(PreferenceSettings, JobConfig):
    """Fit preferences between a run's rollouts by direct preference optimisation."""

    command: ClassVar[Command] = "dpo"


@dataclass(frozen=True, kw_only=True)
class DistilConfig(TeacherSettings, RolloutConfig):
    """Learn a teacher's probabilities on the policy's own rollouts."""

    command: ClassVar[Command] = "distil"


CONFIGS: Mapping[Command, type[JobConfig]] = {
    kind.command: kind for kind in (TrainConfig, SftConfig, DpoConfig, DistilConfig)
}
"""The settings of each training command; all share one loop and one kind of run folder."""


def read_config(data: Mapping[str, Any]) -> JobConfig:
    """Return a configuration from its JSON values; see `JobConfig.to_dict`.

    Before 0.3 settings of other commands stood there too, with their defaults.

    Raises:
        OptionError: if there is no such command, or a setting is missing, unknown or not allowed.
    """
    kind = CONFIGS.get(data.get("command", ""))
    if kind is None:
        raise OptionError(f"command must be one of {list(CONFIGS)}, got {data.get('command')!r}")
    usual: dict[str, Any] = {"command": kind.command, "others": []}
    for other in CONFIGS.values():
        usual |= {name: plain(setting.default) for name, setting in settings_of(other).items()}
    taken = {field.name for field in fields(kind)}
    foreign = {name for name in data.keys() - taken if data[name] in (None, usual.get(name))}
    return read_plain(kind, {name: data[name] for name in data if name not in foreign})
