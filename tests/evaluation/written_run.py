"""The evaluation of a run, of rollouts written by hand: what they earn is the test's choice."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tokengym.agents.evaluation.folder import EvaluationFolder
from tokengym.agents.evaluation.plan import EvaluationPlace, EvaluationPlan
from tokengym.agents.evaluation.run import Evaluation
from tokengym.agents.evaluation.worlds import EvaluatedWorld
from tokengym.agents.rollouts import RolloutOrigin, RolloutRecord, TurnRecord
from tokengym.agents.scale.level_scale import Earned, Scale
from tokengym.agents.training.config import JobConfig
from tokengym.agents.training.folder.run import RunFolder
from tokengym.envs.core.optimum import Optimum
from tokengym.envs.registry import make_world, scripted_opponent, spec


def place_of(config: JobConfig, role: str, tasks: int) -> EvaluationPlace:
    """Return the place in which a job evaluates a role."""
    world = spec(config.world)
    scripts = {other: scripted_opponent(world, other) for other in world.roles if other != role}
    opponents = {**scripts, **config.opponents}
    options = {**config.options, **world.evaluation}
    what = world.id, config.level, role, opponents, options, "test"
    return EvaluationPlace(*what, tasks, config.temperature, config.max_tokens)  # type: ignore[arg-type]


def rollouts(
    config: JobConfig,
    returns: Sequence[float],
    role: str = "",
    ends: Sequence[Mapping[str, float]] = ({},),
    **turn: Any,
) -> list[RolloutRecord]:
    """Return rollouts of one reply that earn these returns on a job's first test Tasks.

    Args:
        config: of the job.
        returns: on each Task.
        role: the role; the world's first if empty.
        ends: what the world reports at the end, of one Task after the other, again and again.
        turn: more of the reply.
    """
    place = place_of(config, role or spec(config.world).roles[0], len(returns))
    world = make_world(place.world, place.level, **place.options)
    origin = RolloutOrigin(
        "evaluation",
        policy="p",
        opponents=place.opponents,
        options=place.options,
        temperature=place.temperature,
        max_tokens=place.max_tokens,
        seed=0,
    )
    records = []
    for group, task in enumerate(world.first_tasks("test", len(returns))):
        value, end = returns[group], ends[group % len(ends)]
        reply = TurnRecord(place.role, "asked", "said", reward=value, metrics=end, **turn)
        records.append(
            RolloutRecord(
                replace(origin, group=group),
                task.world,
                task.level,
                task.split,
                task.index,
                task.fingerprint,
                place.role,
                (reply,),
                "completed",
                value,
                answer_fingerprint=task.answer_fingerprint,
            )
        )
    return records


def scale_of(blind: Sequence[float], oracle: Sequence[float], **others: Sequence[float]) -> Scale:
    """Return a scale of these returns."""
    returns = {"blind": blind, "oracle": oracle, **others}
    earned = {name: Earned(tuple(values), None) for name, values in returns.items()}
    return Scale(earned, "blind", "best constant", [Optimum(one, True) for one in oracle])


def write_evaluation(
    run: RunFolder,
    played: Mapping[str, Sequence[Sequence[RolloutRecord]]],
    scales: Sequence[Scale] = (),
) -> None:
    """Write the evaluation of a run, with the results that follow from rollouts.

    Args:
        run: the run; its configuration is written already.
        played: by policy, such as `before`, its rollouts in each trained role.
        scales: of these; measured if not given.
    """
    config = run.config
    counts = [len(records) for records in next(iter(played.values()))]
    pairs = zip(config.trained_roles, counts, strict=True)
    places = [place_of(config, role, count) for role, count in pairs]
    plan = EvaluationPlan(tuple(places), tuple(played))
    for policy, of_place in played.items():
        for place, records in zip(places, of_place, strict=True):
            run.rollouts.append(plan.segment(place, policy), records)
        run.rollouts.seal(plan.segment(places[0], policy))
    worlds = [EvaluatedWorld.resolve(place, 0) for place in places]
    if scales:
        measured = zip(worlds, scales, strict=True)
        worlds = [replace(world, measured=scale) for world, scale in measured]
    Evaluation(plan, EvaluationFolder(run.folder), worlds).write_results()
