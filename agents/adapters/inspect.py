"""Every world and level as an Inspect task: plays the turns and scores return, skill and form."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessageTool, ChatMessageUser
from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, metric, scorer
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.tool import ToolCall, ToolDef, ToolError, ToolParams

from tokengym.agents.adapters.skill import earned_by, measure_scales
from tokengym.agents.scale import skill_of
from tokengym.agents.tinker.chat_tools import NativeCall, next_messages, with_call
from tokengym.envs.core.spec import WorldSpec
from tokengym.envs.core.tools import NOT_PLAYED, Tool
from tokengym.envs.registry import specs
from tokengym.envs.rollouts import Rollouts
from tokengym.rewards.skill import Yardstick

_REPLIES = "tokengym_replies"
_MESSAGES = {"user": ChatMessageUser, "tool": ChatMessageTool}


def world_task(
    world: str,
    level: str | None = None,
    *,
    split: str = "test",
    samples: int = 100,
    role: str | None = None,
    opponents: Mapping[str, str] | None = None,
    tools: bool = True,
    **options: Any,
) -> Task:
    """Return a world as an Inspect task; each sample is a Task of the world.

    Args:
        world: id or short name of the world.
        level: one of the world's levels; the first one if `None`.
        split: where the Tasks are from.
        samples: number of Tasks, the first ones.
        role: the role to play, see `Rollouts`.
        opponents: baselines' names of the other roles.
        tools: whether the world's tools are declared: some models and servers take none, and can
            still call them by lines.
        **options: options of the world.
    """
    rollouts = Rollouts(world, level, role=role, opponents=opponents, **options)
    tasks = rollouts.world.first_tasks(split, samples)
    blind_name, scales = measure_scales(rollouts, tasks)
    rows = [
        Sample(
            id=one.fingerprint,
            input=[ChatMessageUser(content=rollouts.start(one).text)],
            metadata={"split": split, "index": one.index, **scale._asdict()},
        )
        for one, scale in zip(tasks, scales, strict=True)
    ]
    name = f"{rollouts.world.spec.short_name}-{rollouts.world.level}"
    return Task(
        dataset=MemoryDataset(rows, name=name),
        solver=play_turns(rollouts, tools),
        scorer=score_episode(rollouts),
        name=name,
        metadata={"blind policy": blind_name, "role": rollouts.role},
    )


@solver
def play_turns(rollouts: Rollouts, tools: bool = True) -> Solver:
    """Let the model reply, maybe by calls of the world's tools, until the episode is over.

    Args:
        rollouts: the world and the role to play.
        tools: whether the world's tools are declared.
    """
    declared = rollouts.world.tools if tools else ()

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        rollout = rollouts.start_at(state.metadata["split"], state.metadata["index"])
        state.tools = [_tool_def(tool) for tool in declared]
        while not rollout.done and not state.completed:
            state = await generate(state, tool_calls="none")
            said = {"tool_calls": [*map(_native, state.output.message.tool_calls or [])]}
            reply = [with_call(state.output.completion, said), state.output.stop_reason]
            state.store.set(_REPLIES, [*state.store.get(_REPLIES, []), reply])
            rollout.say(*reply)
            answers = next_messages(rollout.text, said)
            state.messages.extend([_MESSAGES[one["role"]](**one) for one in answers])
        return state

    return solve


def _tool_def(tool: Tool) -> ToolDef:
    async def call(**arguments: Any) -> str:
        # The world plays calls; Inspect's own loop would run every call of a reply.
        raise ToolError(NOT_PLAYED)

    return ToolDef(call, tool.name, tool.description, ToolParams(**tool.parameters))


def _native(call: ToolCall) -> NativeCall:
    """Return a call; in place of arguments that Inspect could not read, what is no JSON."""
    return NativeCall(call.id, call.function, call.parse_error or call.arguments)


@metric(name="return")
def mean_return() -> Metric:
    """Mean return of the role."""
    return _over_samples(_mean, "return")


@metric
def well_formed() -> Metric:
    """Share of well-formed replies, by sample."""
    return _over_samples(_mean, "well_formed")


@metric
def skill() -> Metric:
    """0 for the best policy that ignores the Task, 1 for the oracle, on the same Tasks.

    All three are expected returns where the world knows them, and free of the noise of outcomes.
    """
    return _over_samples(_skill, "earned")


@metric
def reachable() -> Metric:
    """Skill of the best policy known that reads only the Turns; NaN where none is declared."""
    return _over_samples(_skill, "reachable")


def _over_samples(statistic: Callable[[list[SampleScore], str], float], name: str) -> Metric:
    def compute(scores: list[SampleScore]) -> float:  # Inspect reads the annotation
        return statistic(scores, name)

    return compute


def _mean(scores: list[SampleScore], name: str) -> float:
    return float(np.mean(_values(scores, name)))


def _skill(scores: list[SampleScore], who: str) -> float:
    ends = Yardstick(tuple(_values(scores, "blind")), tuple(_values(scores, "oracle")), "")
    return skill_of(ends, _values(scores, who)).value


def _values(scores: list[SampleScore], name: str) -> list[float]:
    """Return one value of each sample's score; of several epochs it is their mean."""
    return [float(one.score.as_dict()[name]) for one in scores]


@scorer(metrics=[mean_return(), skill(), reachable(), well_formed()])
def score_episode(rollouts: Rollouts) -> Scorer:
    """Replay the replies of a sample and score them, so that a log can be scored again.

    Args:
        rollouts: the world and the role to play.
    """

    async def score(state: TaskState, target: Target) -> Score:
        rollout = rollouts.start_at(state.metadata["split"], state.metadata["index"])
        for text, reason in state.store.get(_REPLIES, []):
            rollout.say(text, reason)
        rollout.stop()  # a limit of Inspect's ended it: the rest counts as empty replies
        found = {
            "return": rollout.total,
            "earned": earned_by(rollout),
            "well_formed": rollout.share_well_formed,
        }
        ends = {end: state.metadata[end] for end in ("blind", "oracle", "reachable")}
        return Score(
            value={**found, **ends},
            explanation=f"rewards {rollout.rewards}, ended by {rollout.turn.stop_reason}",
            metadata={"rewards": rollout.rewards},
        )

    return score


def _declare(spec: WorldSpec) -> Callable[..., Task]:
    """Declare a world's task by its short name, as `inspect eval tokengym/NAME` finds it."""

    def declared(
        level: str | None = None, split: str = "test", samples: int = 100, **options: Any
    ) -> Task:
        return world_task(spec.id, level, split=split, samples=samples, **options)

    declared.__doc__ = spec.summary
    return task(name=spec.short_name)(declared)


TASKS: Mapping[str, Callable[..., Task]] = {
    row.short_name: _declare(row) for row in specs().values()
}
"""The task of each registered world, by short name."""
