"""Environments of verifiers before 0.4, by id; their own loop plays, with us for a model."""

import asyncio
import queue
import threading
from typing import Any

import verifiers as vf
from verifiers.types import Response, ResponseMessage

from tokengym.agents.certify.source import Episode, Facts, Place, Source, Step
from tokengym.agents.certify.sources import package, since_the_reply

_TURNS = 64


class Verifiers(Source):
    """An environment; a Task is a row of its training or evaluation data.

    Args:
        name: id, as `verifiers.load_environment` takes it.
        **options: arguments of the environment.
    """

    def __init__(self, name: str, **options: Any) -> None:
        self._env = vf.load_environment(name, **options)
        self._rows = {"train": self._env.get_dataset()}
        self._env.build_eval_dataset()
        if self._env.eval_dataset is not None:
            self._rows["test"] = self._env.get_eval_dataset()
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self.facts = Facts(
            package=package("verifiers"),
            splits=tuple(self._rows) if len(self._rows) > 1 else (),
            size=min(map(len, self._rows.values())),
            turns=1 if isinstance(self._env, vf.SingleTurnEnv) else _TURNS,
        )

    def start(self, place: Place) -> Episode:
        """Let the environment begin a rollout, up to its first request for a reply."""
        row = {**self._rows[place.split or "train"][place.index], "example_id": place.index}
        player = _Player()
        rollout = asyncio.run_coroutine_threadsafe(
            self._env.run_rollout(row, player, "certify", {}), self._loop
        )
        rollout.add_done_callback(lambda _: player.asked.put(None))

        def reply(text: str) -> Step:
            self._loop.call_soon_threadsafe(player.replies.put_nowait, text)
            shown = player.asked.get()
            if shown is None:
                return Step(rollout.result()["reward"], True)
            return Step(0.0, False, shown)

        prompt = player.asked.get()
        if prompt is None:
            rollout.result()
            raise RuntimeError(f"the rollout of {place} ended without a reply")
        answer = row.get("answer")
        return Episode(prompt, reply, (answer,) if answer else ())


class _Player(vf.Client):
    """A client whose model is whoever fills `replies`; `asked` has what was new to it."""

    def __init__(self) -> None:
        super().__init__(self)
        self.asked: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self.replies: asyncio.Queue[str] = asyncio.Queue()

    async def to_native_prompt(self, messages: Any) -> tuple[str, dict[str, Any]]:
        """Return what was said since the last reply."""
        return since_the_reply(messages), {}

    async def get_native_response(self, prompt: Any, *args: Any, **more: Any) -> str:
        """Show it and wait for the next reply."""
        self.asked.put(prompt)
        return await self.replies.get()

    async def from_native_response(self, response: str) -> Response:
        """Wrap a reply."""
        message = ResponseMessage(content=response, finish_reason="stop", is_truncated=False)
        return Response(id="certify", created=0, model="certify", message=message)

    def setup_client(self, config: Any) -> "_Player":
        """Return itself: nothing is behind it."""
        return self

    async def to_native_tool(self, tool: Any) -> Any:
        """Return a tool as it is: replies in text call none."""
        return tool

    async def raise_from_native_response(self, response: Any) -> None:
        """Do nothing: any text is a reply."""

    async def close(self) -> None:
        """Do nothing: nothing is behind it."""
