"""Playing the evaluation that a run folder holds: its policy before and after training."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from tokengym.agents.evaluation.folder import EvaluationFolder
from tokengym.agents.evaluation.models import ModelPlayer
from tokengym.agents.evaluation.plan import (
    BEFORE,
    RUN_POLICIES,
    WARM,
    EvaluationPlace,
    EvaluationPlan,
)
from tokengym.agents.evaluation.play_missing import PolicyRollouts
from tokengym.agents.evaluation.results import Results
from tokengym.agents.evaluation.run import Evaluation
from tokengym.agents.evaluation.scripted import play_all
from tokengym.agents.evaluation.worlds import EvaluatedWorld
from tokengym.agents.execution.executors import Executor, InProcess
from tokengym.agents.reports.progress import StageProgress, unseen
from tokengym.agents.scale.level_scale import Earned, Scale, blind_policies, ladder_of
from tokengym.agents.tinker.scripted_rollout import ScriptedRollout, roll_out_scripted
from tokengym.agents.training.earlier_runs import opponent_labels
from tokengym.agents.training.job import Job
from tokengym.agents.training.session import TrainingSession
from tokengym.envs.core.display import shorten
from tokengym.envs.core.play import PlayedEpisode, Policy
from tokengym.envs.core.task import Task
from tokengym.envs.tokens.codec import ByteCodec

_BYTES = ByteCodec()
_LONGEST_REPLY = 200
_AGAINST_MODELS = ("null", "random", "scripted", "oracle")


def plan_of(job: Job, policies: Sequence[str]) -> EvaluationPlan:
    """Return what a job evaluates: what it trains."""
    places: list[EvaluationPlace] = []
    config, world = job.evaluated.config, job.world
    for role in job.roles:
        opponents = opponent_labels(job.opponents[role])
        what = world.spec.id, world.level, role, opponents, config.options
        sampling = config.evaluation_tasks, config.temperature, job.max_tokens
        places.append(EvaluationPlace(*what, "test", *sampling))
    names = ("seed", "system", "model", "base_url", "renderer")
    return EvaluationPlan(
        tuple(places),
        tuple(policies),
        first_tasks=dict.fromkeys((BEFORE, WARM), job.config.tasks_before),
        **{name: getattr(job.config, name) for name in names},
    )


@dataclass(frozen=True)
class HeldOutEvaluation:
    """The evaluation of a run under way.

    Attributes:
        session: the job.
        folder: the run folder.
        worlds: the settings of its plan, with their scales.
    """

    session: TrainingSession
    folder: EvaluationFolder
    worlds: Sequence[EvaluatedWorld]

    @classmethod
    async def of_run(
        cls,
        session: TrainingSession,
        folder: EvaluationFolder,
        path: str | None,
        progress: StageProgress = unseen,
    ) -> "HeldOutEvaluation":
        """Evaluate the policy as it is, while what scripted policies earn is measured.

        Args:
            session: the job.
            folder: the run folder.
            path: the `tinker://` path of the policy's weights; `None` for the base model.
            progress: shows how it goes.
        """
        watched = InProcess(watch=partial(progress, "scripted policies"))
        # In a thread: drawing a Task may take a solver.
        worlds = await asyncio.to_thread(_worlds, session.job, watched)
        evaluation = cls(session, folder, worlds)
        *scales, _ = await asyncio.gather(
            *(_scale(session, world) for world in worlds),
            evaluation._play(BEFORE, path, progress),
        )
        pairs = zip(worlds, scales, strict=True)
        measured = [replace(world, measured=scale) for world, scale in pairs]
        evaluation = replace(evaluation, worlds=measured)
        evaluation._write()
        return evaluation

    async def play(
        self, policy: str, path: str | None, progress: StageProgress = unseen
    ) -> Results:
        """Play every setting with some weights, and write the results of all policies so far.

        All settings are played at once: a service samples for many episodes in little more time
        than for one. Rollouts of the same weights that are on record already are not played again.

        Args:
            policy: what to call it, one of `RUN_POLICIES`.
            path: as for `of_run`.
            progress: shows how it goes.
        """
        await self._play(policy, path, progress)
        return self._write()

    async def _play(self, policy: str, path: str | None, progress: StageProgress) -> None:
        plan = plan_of(self.session.job, RUN_POLICIES)
        rollouts = PolicyRollouts(policy, plan, self.folder.rollouts, progress)
        if plan.first_tasks.get(policy) == 0:
            return

        session = replace(self.session, job=self.session.job.evaluated)

        async def in_place(world: EvaluatedWorld) -> None:
            origin = ModelPlayer.origin_of(session, world.role, path)
            if not rollouts.are_complete(world, origin):
                player = await ModelPlayer.open(session, world.role, path)
                await rollouts.play(world, player, session.episodes)

        await asyncio.gather(*map(in_place, self.worlds))

    def _write(self) -> Results:
        """Write the results of the policies that have played all of their Tasks."""
        job = self.session.job
        every = plan_of(job, RUN_POLICIES)

        def is_complete(name: str) -> bool:
            return all(
                0
                < len(world.tasks[: every.first_tasks.get(name)])
                == sum(1 for _ in self.folder.records(every, world.place, name))
                for world in self.worlds
            )

        played = [*filter(is_complete, RUN_POLICIES)]
        return Evaluation(plan_of(job, played), self.folder, self.worlds).write_results()


def _worlds(job: Job, executor: Executor) -> list[EvaluatedWorld]:
    """Return the settings of a job's plan, each world made and each Task drawn once."""
    # Each plays by itself, at once with the others.
    return [
        EvaluatedWorld.resolve(place, job.config.seed, executor, job.evaluated_world.fork())
        for place in plan_of(job, ()).places
    ]


async def _scale(session: TrainingSession, world: EvaluatedWorld) -> Scale:
    """Return the scale of one setting, measured by scripted policies.

    Against a model, whose replies cost tokens, only the most informative policies play, and the
    input-independent baseline is chosen against a script.
    """
    if world.scripted:
        # In a thread of its own, so that what is sampled meanwhile does not wait.
        return await asyncio.to_thread(_measured, world)
    scale = await asyncio.to_thread(world.measure)
    policies = {name: world.baselines[name] for name in _AGAINST_MODELS if name in world.baselines}
    policies[scale.blind] = blind_policies(world.world)[scale.blind]
    played = await asyncio.gather(
        *(_against_models(session, world, policy) for policy in policies.values())
    )
    return replace(scale, returns=dict(zip(policies, played, strict=True)))


def _measured(world: EvaluatedWorld) -> Scale:
    scale = world.measure(world.baselines)
    oracle = {**world.opponents, world.role: world.baselines["oracle"]}
    episodes = play_all(world.world.fork(), world.tasks, oracle)
    return replace(scale, replies=tuple(_said(episode, world.role) for episode in episodes))


def _said(record: PlayedEpisode, role: str) -> str:
    """Return a role's replies on one line, shortened."""
    turns = zip(record.turns, record.replies, strict=False)
    return shorten(" / ".join(said for turn, said in turns if turn.role == role), _LONGEST_REPLY)


async def _against_models(
    session: TrainingSession, world: EvaluatedWorld, policy: Policy
) -> Earned:
    role = world.role
    opponents = session.job.players(session.opponents[role])

    async def play(task: Task) -> ScriptedRollout:
        async with session.episodes:
            return await roll_out_scripted(world.world, task, _BYTES, role, policy, opponents, 0, 0)

    rollouts = await asyncio.gather(*(play(task) for task in world.tasks))
    ladder = ladder_of(world.world.spec, world.world.level, role)
    return Earned.of(((each.total_reward, each.metrics) for each in rollouts), role, ladder)
