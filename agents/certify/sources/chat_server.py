"""An OpenAI-compatible server in this process whose model is whoever plays an episode.

Environments that ask a model for every reply by themselves are played through it.
"""

import asyncio
import json
import queue
import threading
from collections.abc import Callable, Coroutine
from itertools import count
from typing import Any, NamedTuple

from tokengym.agents.certify.source import SourceStep
from tokengym.agents.certify.sources import message_text
from tokengym.loopback import Answering, LocalServer, bypass_proxies, local_address


class _Conversation(NamedTuple):
    """Prompts of an episode (`None` at its end) and the replies to them."""

    asked: "queue.SimpleQueue[str | None]"
    replies: "queue.SimpleQueue[str]"


class ChatServer:
    """Serves chat completions; an event loop beside it runs the environment.

    Attributes:
        url: of the API, ending in `/v1`.
        loop: the event loop.
    """

    def __init__(self) -> None:
        self._conversations: dict[str, _Conversation] = {}
        self._numbers = count()
        server = LocalServer(local_address(), 0, _handler(self._conversations))
        self.url = f"http://{server.location}/v1"
        self.loop = asyncio.new_event_loop()
        bypass_proxies(self.url)
        for serve in (server.serve_forever, self.loop.run_forever):
            threading.Thread(target=serve, daemon=True).start()

    def begin(
        self, run: Callable[[str], Coroutine[Any, Any, Any]], reward: Callable[[Any], Any]
    ) -> tuple[str, Callable[[str], SourceStep]]:
        """Run an episode up to its first request for a reply.

        Args:
            run: from the name of the model to ask to the episode.
            reward: what the episode's result pays; it may raise.

        Returns:
            the first text, and a function that plays a reply.

        Raises:
            RuntimeError: if the episode ends without a request.
        """
        name = f"certify-{next(self._numbers)}"
        talk = self._conversations[name] = _Conversation(queue.SimpleQueue(), queue.SimpleQueue())
        episode = asyncio.run_coroutine_threadsafe(run(name), self.loop)
        episode.add_done_callback(lambda _: talk.asked.put(None))

        def reply(text: str) -> SourceStep:
            talk.replies.put(text)
            shown = talk.asked.get()
            if shown is not None:
                return SourceStep(0.0, False, shown)
            return SourceStep(reward(episode.result()), True)

        prompt = talk.asked.get()
        if prompt is None:
            reward(episode.result())
            raise RuntimeError("the episode ended without a reply")
        return prompt, reply


def _handler(conversations: dict[str, _Conversation]) -> type[Answering]:
    """Return a server's handler that passes requests on by the name of their model."""

    class Handler(Answering):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            talk = conversations[request["model"]]
            messages = request["messages"]
            roles = [message["role"] for message in messages]
            last = len(roles) - roles[::-1].index("assistant") if "assistant" in roles else 0
            talk.asked.put("\n\n".join(map(message_text, messages[last:])))
            message = {"role": "assistant", "content": talk.replies.get()}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
            answer = {"id": "certify", "object": "chat.completion", "created": 0, "usage": usage}
            sent = json.dumps({**answer, "model": request["model"], "choices": [choice]}).encode()
            self.answer(sent)

    return Handler
