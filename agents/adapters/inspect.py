"""Every world and level as an Inspect task: plays the turns and scores return and form."""

from collections.abc import Callable, Mapping
from statistics import fmean
from typing import Any

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessageTool, ChatMessageUser
from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, metric, scorer
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.tool import ToolCall, ToolDef, ToolError, ToolParams

from tokengym.agents.tinker.chat_tools import NativeCall, next_messages, with_call
from tokengym.envs.core.spec import WorldSpec
from tokengym.envs.core.tools import NOT_PLAYED, Tool
from tokengym.envs.registry import specs
from tokengym.envs.rollouts import Rollouts

_REPLIES = "tokengym_replies"
_MESSAGES = {"user": ChatMessageUser, "tool": ChatMessageTool}


def world_task(
    world: str,
    level: str | None = None,
    *,
    split: str = "test",
    samples: int = 100,
    tools: bool = True,
    **options: Any,
) -> Task:
    """Return a world as an Inspect task; each sample is a Task of the world.

    Args:
        world: id or short name of the world.
        level: one of the world's levels; the first one if `None`.
        split: where the Tasks are from.
        samples: number of Tasks, the first ones.
        tools: whether the world's tools are declared: some models and servers take none, and can
            still call them by lines.
        **options: further arguments of `Rollouts`: role, opponents, options of the world.
    """
    rollouts = Rollouts(world, level, **options)
    tasks = rollouts.world.first_tasks(split, samples)
    rows = [
        Sample(
            id=one.fingerprint,
            input=[ChatMessageUser(content=rollouts.start(one).text)],
            metadata={"split": split, "index": one.index},
        )
        for one in tasks
    ]
    name = f"{rollouts.world.spec.short_name}-{rollouts.world.level}"
    return Task(
        dataset=MemoryDataset(rows, name=name),
        solver=play_turns(rollouts, tools),
        scorer=score_episode(rollouts),
        name=name,
        metadata={"role": rollouts.role},
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
            state.messages.extend([_MESSAGES[answer["role"]](**answer) for answer in answers])
        return state

    return solve


def _tool_def(tool: Tool) -> ToolDef:
    async def call(**arguments: Any) -> str:
        # The world plays calls; Inspect's own loop would run every call of a reply.
        raise ToolError(NOT_PLAYED)

    return ToolDef(call, tool.name, tool.description, ToolParams(**tool.parameters))


def _native(call: ToolCall) -> NativeCall:
    """Return a call; instead of arguments that Inspect could not read, what is no JSON."""
    return NativeCall(call.id, call.function, call.parse_error or call.arguments)


def _mean_of(name: str) -> Callable[[], Metric]:
    """Return the metric that averages a value of the samples' scores."""

    @metric(name=name)
    def mean() -> Metric:
        def compute(scores: list[SampleScore]) -> float:  # Inspect reads the annotation
            # Of several epochs a sample's value is their mean.
            return fmean(float(one.score.as_dict()[name]) for one in scores)

        return compute

    return mean


METRICS = tuple(map(_mean_of, ("return", "well_formed")))
"""Mean return, and share of well-formed replies."""


@scorer(metrics=[one() for one in METRICS])
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
        found = {"return": rollout.total, "well_formed": rollout.share_well_formed}
        return Score(
            value=found,
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
