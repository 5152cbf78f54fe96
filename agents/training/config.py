"""The settings of the training commands, which a run folder holds as JSON, and rules across them.

Each field is an option, see `agents/settings`; a class of fields is a panel of the help, and a
command takes those that its class inherits.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar

from tokengym.agents.service.config import ComputeSettings
from tokengym.agents.settings import Settings, option, read_plain
from tokengym.agents.toy_model import TOY_MODEL
from tokengym.agents.training.losses import IMITATION, LOSSES, default_loss
from tokengym.envs.core.errors import OptionError
from tokengym.envs.registry import spec
from tokengym.rewards.advantages import MINIMUM_SPREAD
from tokengym.rewards.estimators import ESTIMATORS

Command = Literal["train", "sft", "dpo"]
"""Source of learning: rewards, demonstrations or preferences."""
Schedule = Literal["constant", "linear", "cosine"]
G = TypeVar("G", bound=Settings)

_TASKS_BEFORE = 64
"""Tasks played before training: an untrained model's replies run to the limit, so they are the most
expensive part of a short run."""

SETTINGS_FILE = "settings.json"
"""The file of a run folder that makes it one."""


def absolute_run(name: str) -> str:
    """Name a run folder so that a resume finds it from anywhere; return other names as they are."""
    return str(Path(name).resolve()) if (Path(name) / SETTINGS_FILE).is_file() else name


@dataclass(frozen=True, kw_only=True)
class WorldOptions(Settings):
    """World options.

    Attributes:
        options: of the world, such as `{"label": "expected"}`.
    """

    options: Mapping[str, Any] = option({}, "name=value, an option of the world", flag="--option")


@dataclass(frozen=True, kw_only=True)
class TaskSettings(WorldOptions):
    """Tasks and roles.

    Attributes:
        world: id of the world.
        level: level of the world.
    """

    world: str
    level: str
    role: str | None = option(None, "the role to train; the world's first if not given")
    opponents: Mapping[str, str] = option(
        {},
        "ROLE=WHO plays another role: a baseline, model (untrained), a run or a tinker:// path",
        flag="--opponent",
        read=absolute_run,
    )
    seed: int = option(0, "seed of the training Tasks and of their order", least=0)


@dataclass(frozen=True, kw_only=True)
class SelfPlaySettings(Settings):
    """Self-play."""

    self_play: bool = option(
        False, "train all roles against each other; evaluations are against fixed opponents"
    )


@dataclass(frozen=True, kw_only=True)
class PolicySettings(Settings):
    """The policy."""

    model: str = option(TOY_MODEL, "a model directory, a name such as smollm2, or a hosted model")
    trust_remote_code: bool = option(
        False, "run Python code that comes with the model; none is run otherwise"
    )
    start: str | None = option(
        None, "run folder or tinker:// path of weights to begin with", read=absolute_run
    )
    lora_rank: int = option(32, "rank of the LoRA adapter", least=1, most=1024, flag="--rank")
    renderer: str = option(
        "", "name of a cookbook renderer; the one recommended for the model if not given"
    )
    system: str | None = option(
        None, "a system text before every conversation; the chat template's own if not given"
    )
    max_tokens: int | None = option(
        None,
        "token limit of a reply; if not given room to think with full prompts, and what scripted "
        "replies need with others",
        least=1,
    )
    temperature: float = option(1.0, "sampling temperature", least=0)


@dataclass(frozen=True, kw_only=True)
class ScheduleSettings(Settings):
    """Steps and learning rate."""

    steps: int = option(120, "optimizer steps", least=1)
    groups_per_batch: int = option(16, "Tasks of a step", least=1, flag="--groups")
    group_size: int = option(8, "rollouts of each Task", least=2)
    learning_rate: float | None = option(
        None, "Adam's learning rate; one that suits the model's size if not given", above=0
    )
    lr_schedule: Schedule | None = option(
        None, "change of the rate; linear on existing data, else constant, if not given"
    )
    lr_warmup: int = option(0, "steps over which the rate rises linearly at first", least=0)
    substeps: int = option(1, "optimizer steps that share the data of a step", least=1)
    save_every: int = option(
        10, "steps between checkpoints that are kept; others only resume the run", least=1
    )


@dataclass(frozen=True, kw_only=True)
class RolloutSettings(Settings):
    """Rollouts of a step."""

    mode: Literal["sync", "async"] = option("sync", "async samples one step ahead of the update")
    loss: str | None = option(
        None,
        "Tinker's loss per token; ppo in mode async, else importance_sampling, if not given",
        choices=LOSSES,
    )
    loss_options: Mapping[str, Any] = option(
        {}, "name=number, an argument of the loss", flag="--loss-option"
    )
    rollout_share: float = option(1.0, "share of each step's groups to save", least=0, most=1)
    rollout_bytes: int = option(2**28, "limit on saved training rollouts, in bytes", least=0)


@dataclass(frozen=True, kw_only=True)
class LearningSettings(Settings):
    """Reinforcement learning."""

    kl: float = option(0.0, "weight of the KL penalty to the initial policy", least=0)
    patience: int = option(5, "steps in a row without signal that end a run; 0 for never", least=0)
    warm_start: int = option(0, "supervised steps before reinforcement learning", least=0)
    warm_start_rate: float | None = option(
        None,
        "learning rate of the first warm-start step, from which it falls linearly",
        above=0,
        needs="warm_start",
    )
    warm_start_updates: int = option(
        1,
        "optimizer steps per warm-start step",
        least=1,
        needs="warm_start",
    )


@dataclass(frozen=True)
class Algorithm(Settings):
    """From rewards to advantages.

    A group is *dead* if what its rollouts are compared by spreads no more than `min_spread`: the
    returns, or with credit by turn what is compared at a turn, at every turn. Whole groups are dead
    or live, never single rollouts. Whatever the estimator, a dead group's advantages are exactly 0.

    Attributes:
        estimator: from rewards to advantages, one of `tokengym.rewards.estimators`, by name.
        credit: `episode`, one advantage for all tokens of a rollout, from its return; `turn`, one
            for each turn, from the returns to go; `exact`, one for each turn, from the credit to go
            that the world knows exactly and reports as the metric `credit`.
        filter: what becomes of dead groups. `keep`: they are sent like the others. `drop`: they are
            not sent. `resample`: not sent, and groups of further Tasks are sampled instead.
        min_spread: largest spread that counts as none, in the unit of what is compared.
        resample_tokens: most tokens, read and sampled, that a step may spend on further groups, if
            a group costs no more than the most expensive one of the step so far; `None` for as
            many as the step's own groups cost.
        denominator: Tinker's losses are sums over tokens. `all`: sums as they are, in which dead
            groups take up their places with zeros. `live`: what is sent is scaled by the batch's
            groups / its live groups, so that a live group weighs 1 / (number of live ones).

    Raises:
        OptionError: if a value is not one of these.
    """

    estimator: str = option(
        next(iter(ESTIMATORS)), "how rewards become advantages", choices=ESTIMATORS
    )
    credit: Literal["episode", "turn", "exact"] = option(
        "episode",
        "one advantage for a rollout, or one for each turn; exact where the world knows it",
    )
    filter: Literal["keep", "drop", "resample"] = option(
        "keep", "train on dead groups, drop them, or sample other groups instead"
    )
    min_spread: float = option(MINIMUM_SPREAD, "largest spread of rewards in a dead group", least=0)
    resample_tokens: int | None = option(
        None,
        "token budget of a step for other groups; the cost of its own if not given",
        least=0,
        needs="filter=resample",
    )
    denominator: Literal["all", "live"] = option("all", "the groups that normalise the loss")


@dataclass(frozen=True, kw_only=True)
class DemonstrationSettings(Settings):
    """Demonstrations, for supervised steps."""

    demonstrations: str | None = option(
        None,
        "a baseline to imitate, or a run for its best rollouts; the world's choice if not given",
        read=absolute_run,
    )
    demonstration_return: float | None = option(
        None, "smallest return of a run's rollout to imitate"
    )


@dataclass(frozen=True, kw_only=True)
class PreferenceSettings(Settings):
    """Preferences."""

    preferences: str = option(
        ..., "run folder whose training rollouts give the preference pairs", read=absolute_run
    )
    margin: float = option(0.05, "smallest difference of return in a preference", above=0)
    beta: float = option(0.1, "weight of the penalty for leaving the initial policy", above=0)


@dataclass(frozen=True, kw_only=True)
class EvaluationSettings(Settings):
    """Evaluation and records.

    Attributes:
        tasks_before: how many of the held-out Tasks are played before training.

    Raises:
        OptionError: if they are more than there are, or too few for an interval.
    """

    evaluation_tasks: int = option(64, "held-out Tasks, played after training", least=2)
    evaluate_before: int | None = option(
        None,
        "of them, Tasks that are played before training too, and after a warm start; the smaller "
        f"of {_TASKS_BEFORE} and --evaluation-tasks if not given, 0 for none",
        least=0,
    )
    wandb: str | None = option(None, "a project of Weights & Biases to log to as well")

    def __post_init__(self) -> None:
        """Refuse a number of Tasks that cannot be compared."""
        super().__post_init__()
        most = self.evaluation_tasks
        if self.evaluate_before == 1 or self.tasks_before > most:
            raise OptionError(
                f"--evaluate-before must be 0, or from 2 to --evaluation-tasks {most}, "
                f"got {self.evaluate_before}"
            )

    @property
    def tasks_before(self) -> int:
        """How many of the held-out Tasks are played before training."""
        if self.evaluate_before is None:
            return min(_TASKS_BEFORE, self.evaluation_tasks)
        return self.evaluate_before


@dataclass(frozen=True, kw_only=True)
class ServiceSettings(ComputeSettings):
    """The service."""

    base_url: str | None = option(
        None, "address of a Tinker service; a local one, or with a key the hosted one, if not given"
    )


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
    def schedule(self) -> Schedule:
        """How the learning rate changes over the steps."""
        return self.lr_schedule or ("constant" if self.rolls_out else "linear")

    @property
    def token_loss(self) -> str:
        """The loss of a token."""
        return IMITATION

    def _check_roles(self, world: str, roles: tuple[str, ...]) -> None:
        for role in [*self.opponents, *([self.role] if self.role else [])]:
            if role not in roles:
                raise OptionError(f"{world} has the roles {list(roles)}, got {role!r}")
        trained, self_play = self.role or roles[0], self.group(SelfPlaySettings).self_play
        if trained in self.opponents and not self_play:
            raise OptionError(f"{trained} is trained and needs no opponent to play it")
        if self_play and len(roles) < 2:
            raise OptionError(f"--self-play needs several roles, {world} has {list(roles)}")
        if self_play and self.role is not None:
            raise OptionError(f"--self-play trains every role, got --role {self.role}")


@dataclass(frozen=True, kw_only=True)
class SftConfig(DemonstrationSettings, SelfPlaySettings, JobConfig):
    """Fit demonstrations by cross-entropy."""

    command: ClassVar[Command] = "sft"


@dataclass(frozen=True, kw_only=True)
class TrainConfig(
    DemonstrationSettings, Algorithm, LearningSettings, SelfPlaySettings, RolloutSettings, JobConfig
):
    """Train a policy on the rewards it earns."""

    command: ClassVar[Command] = "train"
    rolls_out: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Check what does not go together."""
        super().__post_init__()
        LOSSES[self.token_loss].check(self.token_loss, self.loss_options)
        if self.credit == "turn" and self.level in spec(self.world).paid_at_end:
            raise OptionError(
                f"--credit turn would be --credit episode at {self.tag}, which pays once, at the "
                "end; --credit exact compares what each turn lost, where the world knows it"
            )
        if self.credit == "exact":
            object.__setattr__(self, "options", {**self.options, "credit": True})

    @property
    def sampling_notice(self) -> str | None:
        """A notice if replies are sampled from another distribution than the loss is for."""
        if self.temperature == 1.0:
            return None
        return (
            f"replies sampled at --temperature {self.temperature:g} are trained on by their "
            "log-probabilities at 1, another distribution; for a model that is incoherent at 1 "
            "teach the form first with --warm-start"
        )

    @property
    def token_loss(self) -> str:
        """The loss on rollouts; samples of earlier weights want a clipped one."""
        return self.loss or default_loss(off_policy=self.mode == "async")


@dataclass(frozen=True, kw_only=True)
class DpoConfig(PreferenceSettings, JobConfig):
    """Fit preferences between a run's rollouts by direct preference optimisation."""

    command: ClassVar[Command] = "dpo"


CONFIGS: Mapping[Command, type[JobConfig]] = {
    kind.command: kind for kind in (TrainConfig, SftConfig, DpoConfig)
}
"""The settings of each training command; all share one loop and one kind of run folder."""


def read_config(data: Mapping[str, Any]) -> JobConfig:
    """Return a configuration from its JSON values; see `JobConfig.to_dict`.

    Raises:
        OptionError: if there is no such command, or a setting is missing, unknown or not allowed.
    """
    kind = CONFIGS.get(data.get("command", ""))
    if kind is None:
        raise OptionError(f"command must be one of {list(CONFIGS)}, got {data.get('command')!r}")
    return read_plain(kind, {name: value for name, value in data.items() if name != "command"})
