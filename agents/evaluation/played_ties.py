"""The group-size study of a policy: the evaluator plays groups, whoever the policy is."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from tokengym.agents.evaluation.chat_client import EndpointSettings
from tokengym.agents.evaluation.first_play import FirstPlay
from tokengym.agents.evaluation.plan import EvaluationPlan
from tokengym.agents.evaluation.play_missing import PolicyRollouts
from tokengym.agents.evaluation.policies import resolve_policy
from tokengym.agents.evaluation.ties import (
    USUAL_READING,
    TieReading,
    TieStudy,
    fallen_of,
    require_sizes,
    study_of,
)
from tokengym.agents.evaluation.worlds import EvaluatedWorld
from tokengym.agents.reports.progress import StageProgress, unseen
from tokengym.agents.rollouts import RolloutLog

if TYPE_CHECKING:
    from tokengym.agents.training.job import Job


def tie_study(
    world: EvaluatedWorld,
    plan: EvaluationPlan,
    sizes: Sequence[int],
    reading: TieReading = USUAL_READING,
    confirm: Callable[[Sequence["Job"]], None] = lambda jobs: None,
    progress: StageProgress = unseen,
) -> TieStudy:
    """Play groups of the largest size with a policy and describe what each size is like.

    Args:
        world: the setting, with its Tasks; its executor plays the groups of scripts.
        plan: of this setting and one policy; its rollouts are those of the largest size.
        sizes: group sizes, each at least 2.
        reading: how their rewards are read.
        confirm: is called with the jobs that a model plays by before anything is sampled.
        progress: shows how it goes.

    Raises:
        OptionError: if there is no Task, no such policy, or a size below 2.
    """
    require_sizes(world.tasks, sizes)
    (name,) = plan.policies
    policy = resolve_policy(name, plan, [world], EndpointSettings())
    confirm(policy.jobs)
    with TemporaryDirectory() as scratch:
        log = RolloutLog(Path(scratch))
        shown = PolicyRollouts(name, plan, log, progress, executor=world.executor)
        policy.play([world], shown)
        records = list(log.read(plan.segment(world.place, name)))
    groups = [records[at : at + plan.rollouts] for at in range(0, len(records), plan.rollouts)]
    turns = [turn for record in records for turn in record.own_turns]
    study = study_of(
        world.world,
        name,
        [[record.total for record in group] for group in groups],
        sizes,
        reading,
        tasks=[task.fingerprint for task in world.tasks],
        fallen=fallen_of([[record.metrics for record in group] for group in groups]),
        malformed=sum(turn.malformed for turn in turns) / max(len(turns), 1),
        role=world.role,
    )
    if not policy.jobs:
        return study
    useful = {row.size: row.useful.value for row in study.sizes}
    return replace(study, first=FirstPlay.of(policy.jobs[0], world, groups, useful))
