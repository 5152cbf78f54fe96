"""A Job: a configuration with all its names resolved, once, before anything is started."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import chz

from tokengym.agents.rollouts import RolloutOrigin
from tokengym.agents.tinker.codec import codec_name, codec_named, recommended_renderer, renderer_for
from tokengym.agents.tinker.coordinator import Opponent
from tokengym.agents.tinker.dataset import TASKS_A_SEED, TaskDatasetBuilder
from tokengym.agents.tinker.scripted_rollout import TurnTokens
from tokengym.agents.tinker.tokenizer_loading import template_system, trust_tokenizer
from tokengym.agents.training.config import (
    Algorithm,
    DemonstrationSettings,
    JobConfig,
    LearningSettings,
    PreferenceSettings,
    SftConfig,
    TrainConfig,
)
from tokengym.agents.training.connection import ServiceTarget
from tokengym.agents.training.earlier_runs import EarlierRuns, Opponents, TokenPair, opponent_labels
from tokengym.agents.training.fill_in import fill_in
from tokengym.agents.training.presets import is_toy
from tokengym.envs.core.errors import OptionError
from tokengym.envs.core.play import Policy
from tokengym.envs.core.world import World
from tokengym.envs.registry import baselines, import_object, make_world, scripted_opponent
from tokengym.envs.tokens.codec import Codec, codec_for
from tokengym.envs.train_split import standardising_notice
from tokengym.installed import require_extra

_FURTHER_TASKS = 500_000  # of a seed's Tasks, the last ones stand in for others


@dataclass(frozen=True, kw_only=True)
class PlayedWorld:
    """A world of a job, made.

    Attributes:
        world: the world; fork it to play.
        evaluated_world: the same with the options that its spec sets for evaluations.
        baselines: the world's scripted policies by name.
        scripts: by role, the name of the one that plays it against others.
        demonstrations: the scripted policy that supervised learning fits.
    """

    world: World
    evaluated_world: World
    baselines: Mapping[str, Policy]
    scripts: Mapping[str, str]
    demonstrations: Policy

    @classmethod
    def make(cls, config: JobConfig) -> "PlayedWorld":
        """Make the world of a configuration.

        Raises:
            UnknownWorldError, OptionError, DataError: if there is no such world, it does not take
                an option, or its data cannot be used.
        """
        try:
            world = make_world(config.world, config.level, **config.options)
        except OptionError as error:
            if config.group(Algorithm).credit != "exact":
                raise
            raise OptionError(f"--credit exact is not known here: {error}") from error
        spec, evaluated = world.spec, world
        if spec.evaluation:
            evaluated = make_world(spec, world.level, **{**config.options, **spec.evaluation})
        policies = baselines(spec)
        imitated = policies.get(config.group(DemonstrationSettings).demonstrations or "")
        if imitated is None and spec.demonstrations:
            imitated = import_object(spec.demonstrations)
        return PlayedWorld(
            world=world,
            evaluated_world=evaluated,
            baselines=policies,
            scripts={role: scripted_opponent(spec, role) for role in spec.roles},
            demonstrations=imitated or policies["oracle"],
        )


@dataclass(frozen=True, kw_only=True)
class Job(PlayedWorld, EarlierRuns):
    """A resolved training job, which everything after the command line takes.

    Attributes:
        config: what was asked for, with renderer, system text, `max_tokens` and learning rates
            filled in.
        codec: how the conversation is written in tokens.
        target: the service.
    """

    config: JobConfig
    codec: Codec
    target: ServiceTarget

    @classmethod
    def resolve(cls, config: JobConfig) -> "Job":
        """Resolve the names of a configuration, beginning with its service; see `resolve_on`."""
        return cls.resolve_on(ServiceTarget.resolve(config), config)

    @classmethod
    def resolve_on(cls, target: ServiceTarget, config: JobConfig) -> "Job":
        """Resolve the names of a configuration whose service is known.

        In one pass: the world, how it is read and written, what that fills in, earlier runs.

        Args:
            target: the service.
            config: what was asked for.

        Raises:
            UnknownWorldError, OptionError, DataError: if a name is unknown, a value is not
                allowed, or the world's data cannot be used.
        """
        if config.wandb is not None:
            require_extra("wandb", "logging to Weights & Biases")
        if config.trust_remote_code and Path(target.model).is_dir():
            trust_tokenizer(target.model)
        part = PlayedWorld.make(config)
        renderer, system = renderer_for(config.model, config.renderer), config.system
        system = template_system(target.model) if system is None else system
        config = replace(config, renderer=renderer, system=system)
        bare = codec_named(codec_name(renderer, target.model, system=system))
        codec = codec_for(bare, part.world.declared_tools)
        played = part.world, part.baselines
        config = fill_in(config, target.model, codec, *played, local=target.local)
        runs = EarlierRuns.of(config, part.world, codec, part.scripts, part.baselines)
        job = cls(**vars(part), **vars(runs), config=config, codec=codec, target=target)
        _ = job.recorded, job.preferences  # an unusable run is refused now
        return job

    @property
    def max_tokens(self) -> int:
        """Most tokens of one reply."""
        assert self.config.max_tokens is not None
        return self.config.max_tokens

    @cached_property
    def recorded(self) -> Sequence[Sequence[TurnTokens]]:
        """Rollouts to imitate; none where a script is imitated."""
        if self.rollouts is None or isinstance(self.config, PreferenceSettings):
            return []
        return self.rollouts.best(self.config.group(DemonstrationSettings).demonstration_return)

    @cached_property
    def preferences(self) -> Sequence[TokenPair]:
        """Pairs of replies that `tokengym dpo` fits."""
        if self.rollouts is None or not isinstance(self.config, PreferenceSettings):
            return []
        return self.rollouts.preferences(self.config.margin)

    @property
    def roles(self) -> tuple[str, ...]:
        """The trained roles, the one that figures are about first."""
        return self.config.trained_roles

    @property
    def title(self) -> str:
        """The world with its level, for people."""
        return f"{self.world.spec.id} ({self.world.level})"

    @property
    def renderer_notice(self) -> str | None:
        """A notice if the renderer is not the recommended one; `None` if it is."""
        config, recommended = self.config, recommended_renderer(self.config.model)
        if config.renderer == recommended or is_toy(config.model):
            return None
        advice = "does not list it" if recommended is None else f"recommends {recommended}"
        return (
            f"{config.model} is read and written by the renderer {config.renderer}; "
            f"the cookbook {advice}"
        )

    @property
    def notices(self) -> tuple[str | None, ...]:
        """Warning before a job starts; `None` where there is none."""
        config = self.config
        sampling = config.sampling_notice if isinstance(config, TrainConfig) else None
        return self.renderer_notice, self.estimator_notice, sampling

    @property
    def estimator_notice(self) -> str | None:
        """A notice if the estimator standardises a proper score; `None` if it does not."""
        if self.algorithm.estimator != "group_standardised":
            return None
        cause = "group_standardised divides by each group's deviation (take group_centred)"
        return standardising_notice(self.world.spec, cause)

    @property
    def learning(self) -> LearningSettings:
        """How it learns from rewards; the defaults where it learns from something else."""
        return self.config.group(LearningSettings)

    @property
    def algorithm(self) -> Algorithm:
        """Settings that turn groups of rollouts into advantages."""
        return self.config.group(Algorithm)

    def warm_start(self) -> "Job":
        """Return the supervised job that comes before this one's reinforcement learning."""
        shared = {field.name: getattr(self.config, field.name) for field in fields(SftConfig)}
        own = {
            "steps": self.learning.warm_start,
            "learning_rate": self.learning.warm_start_rate,
            "lr_schedule": None,
            "lr_warmup": 0,
            "substeps": self.learning.warm_start_updates,
        }
        return replace(self, config=SftConfig(**{**shared, **own}))

    @property
    def self_play(self) -> bool:
        """Whether several roles are trained, against each other."""
        return len(self.roles) > 1

    @cached_property
    def evaluated(self) -> "Job":
        """This job with the world options that its spec sets for evaluations.

        Training may use exact probabilities; what is reported is earned on outcomes.
        """
        options = {**self.config.options, **self.world.spec.evaluation}
        config = replace(self.config, options=options)
        return replace(self, config=config, world=self.evaluated_world)

    def players(self, opponents: Opponents) -> dict[str, Opponent]:
        """Return the opponents with the world's own policies instead of their names."""
        return {
            role: self.baselines[who] if isinstance(who, str) else who
            for role, who in opponents.items()
        }

    def origin(self, kind: str, policy: str, opponents: Mapping[str, Any]) -> RolloutOrigin:
        """Return what rollouts of a kind have in common; see `RolloutOrigin`."""
        return RolloutOrigin(
            kind,
            policy=policy,
            opponents=opponent_labels(opponents),
            options=self.config.options,
            temperature=self.config.temperature,
            max_tokens=self.max_tokens,
        )

    def dataset(self, opponents: Mapping[str, Opponents]) -> TaskDatasetBuilder:
        """Return the builder of every step's groups.

        Args:
            opponents: by trained role, who plays each other role; not looked at in self-play.
        """
        config = self.config
        return TaskDatasetBuilder(
            world=config.world,
            level=config.level,
            options=dict(config.options),
            first_task=self.first_task,
            n_batches=config.steps,
            groups_per_batch=config.groups_per_batch,
            group_size=config.group_size,
            codec=self.codec.name,
            role=None if self.self_play else self.roles[0],
            self_play=self.self_play,
            opponents={} if self.self_play else dict(opponents[self.roles[0]]),
            max_turn_tokens=self.max_tokens,
            prefetch=True,
        )

    def further_dataset(self, opponents: Mapping[str, Opponents]) -> TaskDatasetBuilder:
        """Return the builder of single groups, on Tasks that no step starts with; see `dataset`."""
        first, dataset = self.first_task + TASKS_A_SEED - _FURTHER_TASKS, self.dataset(opponents)
        return chz.replace(
            dataset, first_task=first, n_batches=_FURTHER_TASKS, groups_per_batch=1, prefetch=False
        )

    def epoch_begun(self, step: int) -> str | None:
        """Return which epoch of a user's own data begins in a step; `None` in the first one.

        Also `None` where steps do not go through the data of the world.
        """
        config, size = self.config, self.world.size("train")
        if not size or self.recorded or self.preferences:
            return None
        taken = config.groups_per_batch * (1 if config.rolls_out else config.group_size)
        before, epoch = (step * taken - 1) // size, ((step + 1) * taken - 1) // size
        return f"epoch {epoch + 1} of {size} questions" if epoch > max(before, 0) else None

    @property
    def first_task(self) -> int:
        """Index of the first training Task; jobs of different seeds share none."""
        return self.config.seed * TASKS_A_SEED
