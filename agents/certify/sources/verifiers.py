"""Environments of verifiers, by the id of their taskset."""

import asyncio
from functools import lru_cache
from itertools import islice
from typing import Any

import verifiers.v1 as vf
from verifiers.v1.utils.loaders import environment_class, load_environment, taskset_config_type

from tokengym.agents.certify.source import Facts, Source, SourceEpisode, TaskPlace
from tokengym.agents.certify.sources import MANY_TURNS, package
from tokengym.agents.certify.sources.chat_server import ChatServer

_KEPT = 1000


class Verifiers(Source):
    """An environment; a Task is one of its taskset, in order.

    All its agents are played alike, and the first one that is declared is paid.

    Args:
        name: id of the taskset.
        harness: id of what holds the conversation; ours, which starts no program, by default.
        **options: of the taskset.
    """

    def __init__(self, name: str, harness: str = "tokengym-verifiers", **options: Any) -> None:
        taskset = taskset_config_type(name)(id=name, **options)
        config = environment_class(name).__orig_bases__[0].__args__[0](taskset=taskset)
        agents = {name: agent for name, agent in config if isinstance(agent, vf.AgentConfig)}
        chat = {"harness": vf.HarnessConfig(id=harness), "runtime": vf.SubprocessConfig()}
        for field, agent in agents.items():
            setattr(config, field, agent.model_copy(update=chat))
        self._others = list(agents)[1:]
        self._env = load_environment(config)
        tasks = self._env.taskset
        self._task = lru_cache(_KEPT)(lambda index: next(islice(iter(tasks), index, None)))
        self._server = ChatServer()
        self._client = vf.EvalClientConfig(base_url=self._server.url, api_key_var="UNSET")
        self._serving = self._env.serving()
        asyncio.run_coroutine_threadsafe(self._serving.__aenter__(), self._server.loop).result()
        size = len(list(tasks)) if tasks.bounded else None
        self.facts = Facts(package=package("verifiers"), size=size, turns=MANY_TURNS)

    def start(self, place: TaskPlace) -> SourceEpisode:
        """Let the environment begin an episode, up to its first request for a reply."""
        task = self._task(place.index)
        (slot,) = self._env.slots(task, 1)

        def run(model: str) -> Any:
            return self._env.run_slot(slot, vf.ModelContext(model=model, client=self._client))

        answer = getattr(task.data, "answer", None)
        prompt, reply = self._server.begin(run, self._paid)
        return SourceEpisode(prompt, reply, (str(answer),) if answer else ())

    def _paid(self, episode: Any) -> float:
        if not episode.ok:
            errors = [*episode.errors, *(e for trace in episode.traces for e in trace.errors)]
            raise RuntimeError("; ".join(f"{error.type}: {error.message}" for error in errors))
        own = [trace for trace in episode.traces if trace.agent.name not in self._others]
        return sum(trace.reward for trace in own)
