"""A world as a taskset and an environment of verifiers: `Taskset.load`, `Env.run`."""

from collections.abc import Iterator
from typing import Any

import verifiers.v1 as vf
from openai import AsyncOpenAI, omit
from verifiers.v1.dialects.chat import message_to_wire

from tokengym.agents.tinker.chat_tools import next_messages, with_call
from tokengym.envs.core.errors import OptionError
from tokengym.envs.core.tools import openai_tools
from tokengym.envs.rollouts import Rollouts
from tokengym.loopback import bypass_proxies


class WorldData(vf.TaskData):
    """Where a Task is found; no prompt, since the world opens the conversation.

    Attributes:
        split: of the world.
        index: within the split.
        tools: of the world, as the chat API takes them.
    """

    split: str
    index: int
    tools: list[dict[str, Any]] = []


class WorldTask(vf.Task[WorldData]):
    """One Task."""

    @property
    def key(self) -> str:
        """The fingerprint of the Task, whatever its place in the taskset."""
        return self.data.id or super().key


class WorldTasksetConfig(vf.TasksetConfig):
    """Which world, and which Tasks of it.

    Attributes:
        world: id or short name of the world, also with a level: `energy:small`.
        options: further arguments of `Rollouts`: role, opponents, options of the world.
        split: where the Tasks are from; of `test` if `None`, which only evaluations may leave out.
        tasks: number of Tasks; `None` for all, without end where they are drawn: evaluations bound
            them by `-n`.
    """

    world: str = "forecast"
    options: dict[str, Any] = {}
    split: str | None = None
    tasks: int | None = None


class WorldTaskset(vf.Taskset[WorldTask, WorldTasksetConfig]):
    """The Tasks of a world.

    Attributes:
        rollouts: the world and the role to play.
    """

    def __init__(self, config: WorldTasksetConfig) -> None:
        super().__init__(config)
        self.rollouts = Rollouts(config.world, **config.options)
        self._split = config.split or "test"
        size = self.rollouts.world.size(self._split)
        self._count = size if config.tasks is None else min(config.tasks, size or config.tasks)
        self._bounded = self._count is not None

    def load(self) -> Iterator[WorldTask]:
        """Yield the Tasks in order."""
        world, split, index = self.rollouts.world, self._split, 0
        tools = openai_tools(world.tools)
        while self._count is None or index < self._count:
            name = f"{world.spec.short_name}-{world.level}-{split}-{index}"
            task_id = world.task(split, index).fingerprint
            data = WorldData(id=task_id, name=name, split=split, index=index, tools=tools)
            yield WorldTask(data, self.config.task)
            index += 1


class ChatHarness(vf.Harness[vf.HarnessConfig]):
    """A conversation, held in this process: nothing is installed or started."""

    APPENDS_SYSTEM_PROMPT = True
    SUPPORTS_RESUME = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(
        self,
        ctx: vf.ModelContext,
        trace: vf.Trace,
        runtime: vf.Runtime,
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],
        data: vf.TaskData,
    ) -> vf.ProgramResult:
        """Ask the model for its next reply; the interception records it in the trace."""
        system, prompt = self.resolve_prompt(data)
        messages: Any = [{"role": "system", "content": system}] if system else []
        if isinstance(prompt, str):
            messages.append({"role": "user", "content": prompt})
        else:
            messages.extend(map(message_to_wire, prompt or []))
        tools: Any = getattr(data, "tools", None) or omit
        bypass_proxies(endpoint)
        async with AsyncOpenAI(base_url=endpoint, api_key=secret, max_retries=0) as client:
            await client.chat.completions.create(model=ctx.model, messages=messages, tools=tools)
        return vf.ProgramResult(0, "", "")


class WorldEnvConfig(vf.EnvConfig):
    """The one role that is played."""

    player: vf.AgentConfig = vf.AgentConfig(runtime=vf.SubprocessConfig())


class WorldEnv(vf.Env[WorldEnvConfig]):
    """Each episode has its own world; the reward is the role's return."""

    async def run(self, task: vf.Task[WorldData], agents: vf.Agents) -> None:
        """Play one Task.

        Raises:
            OptionError: if it is to train on, and the taskset names no split.
        """
        taskset = self.taskset
        assert isinstance(taskset, WorldTaskset)
        trains = isinstance(agents.player.ctx.client, vf.TrainClientConfig)
        if trains and taskset.config.split is None:
            raise OptionError("training needs the taskset's split, such as 'train'; got none")
        rollout = taskset.rollouts.start_at(task.data.split, task.data.index)
        async with agents.player.interaction(task) as interaction:
            trace = interaction.trace
            reply = None
            while not rollout.done:
                segment = await interaction.turn(next_messages(rollout.text, reply))
                if segment.terminated:
                    break
                reply = next(m for m in reversed(segment.messages) if m.role == "assistant")
                said = with_call(str(reply.content or ""), reply)
                rollout.say(said, trace.calls[-1].finish_reason)
        rollout.stop()  # a limit of the run's own ended it: the rest counts as empty replies
        trace.record_reward("return", rollout.total)
        trace.record_metric("well_formed", rollout.share_well_formed)
