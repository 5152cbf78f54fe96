"""Models in evaluations: which model a policy's name means, and one service for all worlds."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from tinker_cookbook.completers import TokenCompleter

from tokengym.agents.evaluation.plan import EvaluationPlan
from tokengym.agents.evaluation.play_missing import PolicyRollouts
from tokengym.agents.evaluation.worlds import EvaluatedWorld
from tokengym.agents.execution.run_async import run_async
from tokengym.agents.rollouts import RolloutOrigin, RolloutRecord
from tokengym.agents.service import CHECKPOINT_SCHEME
from tokengym.agents.tinker.coordinator import Coordinator, Opponent
from tokengym.agents.tinker.env import Member
from tokengym.agents.tinker.fair_turns import take_turn
from tokengym.agents.tinker.group_records import group_records
from tokengym.agents.training.batches.sampling import SeededRollouts
from tokengym.agents.training.config import JobConfig
from tokengym.agents.training.connection import Connection, ServiceTarget
from tokengym.agents.training.folder.run import RunFolder, is_run
from tokengym.agents.training.job import Job
from tokengym.agents.training.presets import preset
from tokengym.agents.training.session import TrainingSession
from tokengym.envs.core.errors import OptionError
from tokengym.envs.core.task import Task


@dataclass(frozen=True)
class ModelPlayer:
    """A model that a service samples.

    Attributes:
        job: the job whose world and codec it plays with.
        role: the role it plays.
        opponents: by other role, who plays it.
        completer: samples its replies.
        origin: what its rollouts have in common.
    """

    job: Job
    role: str
    opponents: Mapping[str, Opponent]
    completer: TokenCompleter
    origin: RolloutOrigin

    @classmethod
    async def open(
        cls, session: TrainingSession, role: str, path: str | None, policy: str = ""
    ) -> "ModelPlayer":
        """Return the player of saved weights.

        Args:
            session: a job on a service.
            role: the role it plays.
            path: the `tinker://` path of the weights; `None` for the base model.
            policy: what records call it; the path or the model's name if empty.
        """
        job = session.job
        origin = cls.origin_of(session, role, path, policy)
        completer = await session.completer(path)
        return cls(job, role, job.players(session.opponents[role]), completer, origin)

    @staticmethod
    def origin_of(
        session: TrainingSession, role: str, path: str | None, policy: str = ""
    ) -> RolloutOrigin:
        """Return the origin of the player that `open` returns for the same arguments."""
        job = session.job
        return _origin(job, policy or path or job.config.model, session.opponents[role])

    async def play(self, task: Task, origin: RolloutOrigin) -> RolloutRecord:
        """Play one rollout."""
        await take_turn()
        episode = Coordinator(
            self.job.world.fork(),
            task,
            self.job.codec,
            roles=(self.role,),
            opponents=self.opponents,
            max_turn_tokens=self.job.max_tokens,
        )
        member = Member(episode, self.role)
        # The same seeds for all weights: what differs between them is due to the weights.
        strategy = SeededRollouts(("evaluation", origin.seed or 0, origin.member))
        rollouts = await strategy.roll_out([member], self.completer, (0, task.fingerprint))
        (record,) = group_records(origin, [member], rollouts, [0.0])
        return replace(record, origin=origin)


def _origin(job: Job, policy: str, opponents: Mapping[str, Any]) -> RolloutOrigin:
    """Return what the rollouts of a job's weights have in common."""
    return replace(job.origin("evaluation", policy, opponents), seed=job.config.seed)


@dataclass(frozen=True)
class ModelPolicy:
    """A model as a policy of an evaluation.

    Attributes:
        name: as the user named it.
        target: the service that samples it.
        jobs: for each world, the job whose codec, weights and settings it plays with.
    """

    name: str
    target: ServiceTarget
    jobs: Sequence[Job]

    @classmethod
    def resolve(cls, name: str, plan: EvaluationPlan, worlds: Sequence[EvaluatedWorld]) -> Self:
        """Return the model that a name means.

        Args:
            name: a run folder, a `tinker://` path, or a model's name or directory.
            plan: of the evaluation.
            worlds: its settings.

        Raises:
            OptionError: if a path comes without its model, or a setting is not allowed.
            ModelError: if there is no such model, or it cannot be had.
        """
        settings = _settings(name, plan)
        configs = [_train_config(settings, plan, world) for world in worlds]
        target = ServiceTarget.resolve(configs[0])
        return cls(name, target, [Job.resolve_on(target, train_config) for train_config in configs])

    def play(self, worlds: Sequence[EvaluatedWorld], rollouts: PolicyRollouts) -> None:
        """Play the missing rollouts, one world after the other, on one service."""
        missing = [
            (world, job)
            for world, job in zip(worlds, self.jobs, strict=True)
            if not rollouts.are_complete(world, _origin(job, self.name, job.opponents[world.role]))
        ]
        if not missing:
            return

        async def all_worlds() -> None:
            for world, job in missing:
                async with TrainingSession.open(job, connection) as session:
                    start = session.start(state=False)
                    player = await ModelPlayer.open(session, world.role, start, self.name)
                    await connection.guard(rollouts.play(world, player, session.episodes))

        if notice := missing[0][1].renderer_notice:
            print(notice, file=sys.stderr)
        with Connection.open(self.target) as connection:
            run_async(all_worlds())


def _settings(name: str, plan: EvaluationPlan) -> dict[str, Any]:
    """Return what a policy's name and an evaluation settle of a training configuration.

    Raises:
        OptionError: if a path comes without its model.
    """
    named = {"system": plan.system, "base_url": plan.base_url, "renderer": plan.renderer or None}
    requested = {key: value for key, value in named.items() if value is not None}
    if is_run(name):
        run = RunFolder.open(Path(name)).config
        names = ("model", "renderer", "system", "base_url", "temperature", "max_tokens")
        prompt = {key: value for key, value in run.options.items() if key == "prompt"}
        own = {key: getattr(run, key) for key in names}
        return {**own, **requested, "start": str(Path(name).resolve()), "options": prompt}
    if not name.startswith(CHECKPOINT_SCHEME):
        return {**requested, "model": name}
    if plan.model is None:
        raise OptionError(f"{name} needs --model, the model that its weights belong to")
    return {**requested, "model": plan.model, "start": name}


def _train_config(
    settings: Mapping[str, Any], plan: EvaluationPlan, world: EvaluatedWorld
) -> JobConfig:
    """Return the configuration of a job that plays a world with a model."""
    place = world.place
    sampled = {"temperature": place.temperature, "max_tokens": place.max_tokens}
    own = {key: value for key, value in settings.items() if key != "options"}
    own |= {key: value for key, value in sampled.items() if value is not None}
    base = preset(
        place.world,
        place.level,
        role=place.role,
        opponents=place.opponents,
        evaluation_tasks=place.tasks,
        seed=plan.seed,
        warm_start=0,
        **own,
    )
    prompt = {key: value for key, value in base.options.items() if key == "prompt"}
    return replace(base, options={**prompt, **settings.get("options", {}), **place.options})
