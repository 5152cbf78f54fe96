"""Environments of verifiers since 0.4, by id; they ask a server that we answer."""

import asyncio
import json
import queue
import threading
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count, islice
from typing import Any, NamedTuple

import verifiers.v1 as vf
from verifiers.v1.utils.loaders import environment_class, load_environment, taskset_config_type

from tokengym.agents.certify.source import Episode, Facts, Place, Source, Step
from tokengym.agents.certify.sources import package, since_the_reply

_TURNS = 64
_KEPT = 1000


class VerifiersV1(Source):
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
        size = len(list(tasks)) if tasks.bounded else None
        self._task = lru_cache(_KEPT)(lambda index: next(islice(iter(tasks), index, None)))
        self._conversations: dict[str, _Conversation] = {}
        self._numbers = count()
        server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self._conversations))
        self._url = f"http://127.0.0.1:{server.server_address[1]}/v1"
        self._loop = asyncio.new_event_loop()
        for serve in (server.serve_forever, self._loop.run_forever):
            threading.Thread(target=serve, daemon=True).start()
        self._serving = self._env.serving()
        asyncio.run_coroutine_threadsafe(self._serving.__aenter__(), self._loop).result()
        self.facts = Facts(package=package("verifiers"), size=size, turns=_TURNS)

    def start(self, place: Place) -> Episode:
        """Let the environment begin an episode, up to its first request for a reply."""
        task, name = self._task(place.index), f"certify-{next(self._numbers)}"
        talk = self._conversations[name] = _Conversation(queue.SimpleQueue(), queue.SimpleQueue())
        client = vf.EvalClientConfig(base_url=self._url, api_key_var="UNSET")
        context = vf.ModelContext(model=name, client=client)
        (slot,) = self._env.slots(task, 1)
        run = asyncio.run_coroutine_threadsafe(self._env.run_slot(slot, context), self._loop)
        run.add_done_callback(lambda _: talk.asked.put(None))

        def ended() -> float:
            episode = run.result()
            if not episode.ok:
                errors = [*episode.errors, *(e for trace in episode.traces for e in trace.errors)]
                raise RuntimeError("; ".join(f"{error.type}: {error.message}" for error in errors))
            own = [trace for trace in episode.traces if trace.agent.name not in self._others]
            return sum(trace.reward for trace in own)

        def reply(text: str) -> Step:
            talk.replies.put(text)
            shown = talk.asked.get()
            return Step(ended(), True) if shown is None else Step(0.0, False, shown)

        prompt = talk.asked.get()
        if prompt is None:
            ended()
            raise RuntimeError(f"the episode of {place} ended without a reply")
        answer = getattr(task.data, "answer", None)
        return Episode(prompt, reply, (str(answer),) if answer else ())


class _Conversation(NamedTuple):
    """What an episode asks, `None` at its end, and what it is answered."""

    asked: "queue.SimpleQueue[str | None]"
    replies: "queue.SimpleQueue[str]"


def _handler(conversations: dict[str, _Conversation]) -> type[BaseHTTPRequestHandler]:
    """Return a server's handler that passes requests on by the name of their model."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            talk = conversations[request["model"]]
            talk.asked.put(since_the_reply(request["messages"]))
            message = {"role": "assistant", "content": talk.replies.get()}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
            answer = {"id": "certify", "object": "chat.completion", "created": 0}
            body = {**answer, "model": request["model"], "choices": [choice], "usage": usage}
            sent = json.dumps(body).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

        def log_message(self, *args: object) -> None:
            """Write nothing."""

    return Handler
