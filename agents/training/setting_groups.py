"""What may be set of a training job, by group: each field is an option of the commands.

A group is offered by several commands, see `COMMANDS` in `config.py`; `agents/settings.py` says
what follows from a field.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from tokengym.agents.service.config import Precision
from tokengym.agents.settings import Opt, Settings
from tokengym.envs.core.errors import OptionError

TOY_MODEL = "tokengym-start"
"""Name of the small model that comes with the package."""
SETTINGS_FILE = "settings.json"
"""The file of a run folder that makes it one."""


def absolute_run(name: str) -> str:
    """Name a run folder so that a resume finds it from anywhere; return other names as they are."""
    return str(Path(name).resolve()) if (Path(name) / SETTINGS_FILE).is_file() else name


@dataclass(frozen=True)
class MixedWorld:
    """A further world of a job that trains on several.

    Attributes:
        world: its id.
        level: its level.
        options: its options.
    """

    world: str
    level: str
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class TaskSettings(Settings):
    """What is trained on.

    Attributes:
        world: id of the world.
        level: level of the world.
        options: options of the world, such as `{"label": "expected"}`.
    """

    world: str
    level: str
    options: Annotated[
        Mapping[str, Any], Opt("name=value, an option of the world", flag="--option")
    ] = field(default_factory=dict)
    role: Annotated[str | None, Opt("the role to train; the world's first if not given")] = None
    opponents: Annotated[
        Mapping[str, str],
        Opt(
            "ROLE=WHO plays another role, in training and evaluations: a baseline, model for the "
            "job's own model untrained, a run folder or a tinker:// path",
            flag="--opponent",
            read=absolute_run,
        ),
    ] = field(default_factory=dict)
    seed: Annotated[int, Opt("seed of the training Tasks and of their order", least=0)] = 0


@dataclass(frozen=True, kw_only=True)
class SelfPlaySettings(Settings):
    """Self-play."""

    self_play: Annotated[
        bool,
        Opt(
            "train all roles, each against the others as they become; evaluations play one trained "
            "role at a time against fixed opponents"
        ),
    ] = False
    separate: Annotated[bool, Opt("one policy for each role")] = False


@dataclass(frozen=True, kw_only=True)
class PolicySettings(Settings):
    """The policy."""

    model: Annotated[str, Opt("a model directory, a name such as smollm2, or a hosted model")] = (
        TOY_MODEL
    )
    trust_remote_code: Annotated[
        bool, Opt("run Python code that comes with the model; none is run otherwise")
    ] = False
    start: Annotated[
        str | None, Opt("run folder or tinker:// path of weights to begin with", read=absolute_run)
    ] = None
    lora_rank: Annotated[
        int, Opt("rank of the LoRA adapter", least=1, most=1024, flag="--rank")
    ] = 32
    renderer: Annotated[str, Opt("name of a cookbook renderer")] = "qwen3_instruct"
    system: Annotated[str, Opt("a system text before every conversation")] = ""
    max_tokens: Annotated[
        int | None,
        Opt("token limit of a reply; measured on scripted replies if not given", least=1),
    ] = None
    temperature: Annotated[float, Opt("sampling temperature", least=0)] = 1.0


@dataclass(frozen=True, kw_only=True)
class ScheduleSettings(Settings):
    """Steps and learning rate."""

    steps: Annotated[int, Opt("optimizer steps", least=1)] = 120
    groups_per_batch: Annotated[int, Opt("Tasks of a step", least=1, flag="--groups")] = 16
    group_size: Annotated[int, Opt("rollouts of each Task", least=2)] = 8
    learning_rate: Annotated[
        float | None, Opt("of Adam; what suits the model's size if not given", above=0)
    ] = None
    lr_schedule: Annotated[
        Literal["constant", "linear", "cosine"] | None,
        Opt(
            "how the rate changes over the steps: constant, or down to 0; constant from rewards "
            "and linear on existing data if not given"
        ),
    ] = None
    lr_warmup: Annotated[int, Opt("first steps, over which the rate rises linearly", least=0)] = 0
    overrides: Annotated[
        tuple[str, ...],
        Opt("name=value, any field of tinker_cookbook.rl.train.Config", flag="--set"),
    ] = ()


@dataclass(frozen=True, kw_only=True)
class RolloutSettings(Settings):
    """Rollouts of a step.

    Attributes:
        others: further worlds to train on at once, each in its first role.
    """

    mode: Annotated[
        Literal["sync", "stream", "async"],
        Opt("sample, then update; update while still sampling; or sample one step ahead"),
    ] = "sync"
    others: tuple[MixedWorld, ...] = ()
    mix: Annotated[
        str,
        Opt(
            "of several worlds, the share of Tasks of each: progress (more where more is learned), "
            "even, or numbers such as 3,1"
        ),
    ] = "progress"
    curriculum: Annotated[
        tuple[str, ...], Opt("a level to pass first; give several, easiest first")
    ] = ()
    bar: Annotated[
        float, Opt("mean skill of three steps in a row that passes a level of the curriculum")
    ] = 0.5
    rollout_share: Annotated[float, Opt("share of each step's groups to save", least=0, most=1)] = (
        1.0
    )
    rollout_bytes: Annotated[int, Opt("limit on saved training rollouts, in bytes", least=0)] = (
        2**28
    )

    def shares(self) -> tuple[float, ...]:
        """Return the relative shares of the worlds; none where they follow progress.

        Raises:
            OptionError: if `mix` is none of its values.
        """
        worlds = 1 + len(self.others)
        if self.mix == "progress":
            return ()
        try:
            shares = tuple(
                map(float, ["1"] * worlds if self.mix == "even" else self.mix.split(","))
            )
        except ValueError:
            shares = ()
        if worlds == 1 or len(shares) != worlds or not min(shares) > 0.0:
            raise OptionError(
                f"--mix must be progress, even, or a positive number for each of several worlds, "
                f"such as 3,1 of forecast,energy; got {self.mix!r} for {worlds}"
            )
        return shares


@dataclass(frozen=True, kw_only=True)
class LearningSettings(Settings):
    """Reinforcement learning."""

    kl: Annotated[
        float, Opt("weight of the KL penalty to the policy that it starts from", least=0)
    ] = 0.0
    patience: Annotated[
        int, Opt("steps in a row without signal that end a run; 0 for never", least=0)
    ] = 5
    loop: Annotated[
        Literal["auto", "cookbook", "own"],
        Opt("which training loop; auto takes the cookbook's wherever it does what is asked"),
    ] = "auto"
    warm_start: Annotated[int, Opt("supervised steps on demonstrations before it", least=0)] = 0
    warm_start_rate: Annotated[
        float | None,
        Opt("learning rate of the first of them, from which it falls linearly", above=0),
    ] = None
    warm_start_updates: Annotated[
        int, Opt("optimizer steps in each of them, which share its demonstrations", least=1)
    ] = 1


@dataclass(frozen=True, kw_only=True)
class DemonstrationSettings(Settings):
    """Demonstrations, for supervised steps."""

    demonstrations: Annotated[
        str | None,
        Opt(
            "what they imitate: a baseline, or a run folder for the best of each group of its "
            "training rollouts; the world's choice if not given",
            read=absolute_run,
        ),
    ] = None
    demonstration_return: Annotated[
        float | None, Opt("smallest return of a run's rollout to imitate")
    ] = None


@dataclass(frozen=True, kw_only=True)
class PreferenceSettings(Settings):
    """Preferences."""

    preferences: Annotated[
        str | None,
        Opt(
            "run folder, between whose training rollouts preferences are fitted",
            read=absolute_run,
        ),
    ] = None
    margin: Annotated[float, Opt("smallest difference of return in a preference", above=0)] = 0.05
    beta: Annotated[float, Opt("weight of the penalty for leaving the initial policy", above=0)] = (
        0.1
    )


@dataclass(frozen=True, kw_only=True)
class TeacherSettings(Settings):
    """The teacher."""

    teacher: Annotated[
        str | None,
        Opt("run folder or tinker:// path of the weights to distil", read=absolute_run),
    ] = None


@dataclass(frozen=True, kw_only=True)
class EvaluationSettings(Settings):
    """Evaluation and records."""

    evaluation_tasks: Annotated[
        int, Opt("held-out Tasks, played before and after training", least=1)
    ] = 1024
    low_temperature: Annotated[
        float,
        Opt("of a second, smaller evaluation, where it is below the sampling temperature", least=0),
    ] = 0.3
    low_tasks: Annotated[int, Opt("held-out Tasks of that evaluation; 0 for none", least=0)] = 128
    tensorboard: Annotated[bool, Opt("also write the metrics for TensorBoard")] = False


@dataclass(frozen=True, kw_only=True)
class ServiceSettings(Settings):
    """The service."""

    base_url: Annotated[
        str | None,
        Opt("address of a Tinker service; a local one, or with a key the hosted one, if not given"),
    ] = None
    precision: Annotated[Precision, Opt("of a local service")] = "auto"
    memory: Annotated[
        float | None,
        Opt("GiB that a local service stays within; what suits the device if not given", above=0),
    ] = None
    deterministic: Annotated[
        bool,
        Opt(
            "let no sequence of a local service depend on others, so that equal runs are exactly "
            "equal; in float32, sampling is two to three times slower"
        ),
    ] = False
