"""Evaluating models: which model a policy's name means, and one service for all worlds."""

import asyncio
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tokengym.agents.evaluation.config import EvaluationConfig, WorldLevel
from tokengym.agents.evaluation.models import ModelPlayer
from tokengym.agents.event_loop import run_async
from tokengym.agents.service import CHECKPOINT_SCHEME
from tokengym.agents.training.config import TrainConfig
from tokengym.agents.training.connection import Connection, ServiceTarget
from tokengym.agents.training.job import Job
from tokengym.agents.training.presets import preset
from tokengym.agents.training.renderer import renderer_notice
from tokengym.agents.training.run import Run, is_run
from tokengym.agents.training.session import Session
from tokengym.envs.core.errors import OptionError
from tokengym.envs.core.task import Task
from tokengym.envs.registry import spec

Play = Callable[[WorldLevel, ModelPlayer, Sequence[Task], asyncio.Semaphore], Any]
"""Plays the Tasks of one world; awaited."""


@dataclass(frozen=True)
class ModelPolicy:
    """A model, and how it is sampled.

    Attributes:
        name: as the user named it.
        settings: fields of a training configuration: model, renderer, weights to start from.
    """

    name: str
    settings: Mapping[str, Any]

    @classmethod
    def resolve(cls, name: str, config: EvaluationConfig) -> "ModelPolicy":
        """Return the model that a policy's name means.

        Args:
            name: a run folder, a `tinker://` path, or a model's name or directory.
            config: of the evaluation.

        Raises:
            OptionError: if a path comes without its model.
        """
        given: dict[str, Any] = {
            "temperature": config.temperature,
            "max_tokens": config.max_tokens,
            "system": config.system or None,
            "base_url": config.base_url,
        }
        given = {key: value for key, value in given.items() if value is not None}
        if is_run(name):
            run = Run.open(Path(name)).config
            kept = ("model", "renderer", "system", "base_url", "temperature", "max_tokens")
            settings = {key: getattr(run, key) for key in kept} | given
            prompt = run.options.get("prompt")
            return cls(
                name,
                {
                    **settings,
                    "start": str(Path(name).resolve()),
                    "options": {} if prompt is None else {"prompt": prompt},
                },
            )
        if name.startswith(CHECKPOINT_SCHEME):
            if config.model is None:
                raise OptionError(f"{name} needs --model, the model that its weights belong to")
            return cls(name, {**given, "model": config.model, "start": name})
        return cls(name, {**given, "model": name})

    def config_for(self, world: WorldLevel, evaluation: EvaluationConfig) -> TrainConfig:
        """Return the configuration of a job that plays a world with this model."""
        settings = dict(self.settings)
        # A world's token limit is the toy model's; preset leaves it out for others.
        if settings.get("max_tokens") is None:
            settings.pop("max_tokens", None)
        own = settings.pop("options", {})
        row = spec(world.world)
        base = preset(
            world.world,
            world.level,
            role=evaluation.role_in(row),
            opponents=evaluation.opponents_in(row),
            evaluation_tasks=evaluation.tasks,
            seed=evaluation.seed,
            **settings,
        )
        prompt = {key: value for key, value in base.options.items() if key == "prompt"}
        return replace(base, options={**prompt, **own, **evaluation.options_in(row)})


def play_model(
    policy: ModelPolicy,
    config: EvaluationConfig,
    tasks: Mapping[WorldLevel, Sequence[Task]],
    folder: Path,
    play: Play,
) -> None:
    """Play a model in all worlds, on one service.

    Args:
        policy: the model.
        config: the evaluation.
        tasks: of each world.
        folder: where a local service keeps its state.
        play: plays one world.
    """
    first = policy.config_for(config.worlds[0], config)
    target = ServiceTarget.resolve(first)
    if notice := renderer_notice(first):
        print(notice, file=sys.stderr)
    with Connection.open(target, folder) as connection:
        run_async(_connected(policy, config, tasks, target, connection, play))


async def _connected(
    policy: ModelPolicy,
    config: EvaluationConfig,
    tasks: Mapping[WorldLevel, Sequence[Task]],
    target: ServiceTarget,
    connection: Connection,
    play: Play,
) -> None:
    for world in config.worlds:
        job = Job.resolve(policy.config_for(world, config), target)
        async with Session.open(job, connection) as session:
            path = session.start(state=False)
            player = await ModelPlayer.open(session, job.roles[0], path, policy.name)
            await connection.guard(play(world, player, tasks[world], session.episodes))
