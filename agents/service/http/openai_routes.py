"""OpenAI's completions API for base models and `tinker://` paths."""

import asyncio
import json
import secrets
import time
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self

from aiohttp import web

from tokengym.agents.service.config import CHECKPOINT_SCHEME
from tokengym.agents.service.generation.jobs import SampleRequest, SampleResult, Sequence
from tokengym.agents.service.generation.sampled_weights import BASE
from tokengym.agents.service.http.chat_format import ChatFormat
from tokengym.agents.service.http.json_api import (
    BODY,
    PARSED,
    Answer,
    Route,
    read_body,
)
from tokengym.agents.service.http.openai_api import (
    Body,
    ChatRequest,
    CompletionRequest,
    ReplyStream,
    chat_logprobs,
    completion_logprobs,
    sampling_requests,
)
from tokengym.agents.service.served_model import ServedModel
from tokengym.agents.service.state.service import Service

# How often a handler looks whether its client is still there.
CHECK_S = 1.0
FORMATS: web.AppKey[Mapping[str, ChatFormat]] = web.AppKey("formats", Mapping)
"""How each model writes chats, by its name."""
_THREADS = ThreadPoolExecutor(2, "prompts")
"""Where prompts are tokenised: a large one leaves a thread to the small ones of others."""
# How long a client may take to read a piece of a stream.
WRITE_S = 60.0


@dataclass
class _Prompt:
    """A prompt in progress: its request, its samples as they grow, and the text of each.

    Attributes:
        ended: whether the result is whole.
        told: whether the client has all of it.
    """

    request: SampleRequest
    replies: list[ReplyStream]
    done: asyncio.Future[SampleResult] = field(init=False)
    result: SampleResult | None = None
    ended: bool = False
    told: bool = False


class _Completion:
    """One request in progress."""

    def __init__(
        self,
        service: Service,
        body: Body,
        model: ServedModel,
        form: ChatFormat,
        requests: list[SampleRequest],
    ) -> None:
        self.body = body
        self._form = form
        self.chat = isinstance(body, ChatRequest)
        self.model = model
        self.base_model = model.base_model
        self.tools = body.declared if isinstance(body, ChatRequest) else []
        self.prompts = [
            _Prompt(request, [ReplyStream(self.base_model, request) for _ in range(request.count)])
            for request in requests
        ]
        self.id = f"{'chatcmpl' if self.chat else 'cmpl'}-{secrets.token_hex(12)}"
        self.created = int(time.time())
        self._service = service
        self._fresh = asyncio.Event()
        self._started = ExitStack()

    def __enter__(self) -> Self:
        loop = asyncio.get_running_loop()
        for prompt in self.prompts:

            def grown(result: SampleResult, prompt: _Prompt = prompt) -> None:
                prompt.result = result
                loop.call_soon_threadsafe(self._fresh.set)

            future: Future[SampleResult] = self._started.enter_context(
                self._service.sampling(self.model, prompt.request, grown)
            )
            prompt.done = asyncio.wrap_future(future)
        return self

    def __exit__(self, *_error: object) -> None:
        self._started.close()

    async def wait(self, request: web.Request, *, streaming: bool) -> bool:
        """Wait for the end, or for new tokens; returns whether all prompts have ended.

        Raises:
            ConnectionResetError: if the client has gone.
        """
        ends = [prompt.done for prompt in self.prompts if not prompt.done.done()]
        fresh = asyncio.ensure_future(self._fresh.wait())
        try:
            waits: list[asyncio.Future[Any]] = [*ends, fresh] if streaming else [*ends]
            if waits:
                await asyncio.wait(waits, timeout=CHECK_S, return_when=asyncio.FIRST_COMPLETED)
        finally:
            fresh.cancel()
        self._fresh.clear()
        if request.transport is None or request.transport.is_closing():
            raise ConnectionResetError("the client has gone")
        for prompt in self.prompts:
            if prompt.done.done():
                prompt.result, prompt.ended = prompt.done.result(), True
        return all(prompt.ended for prompt in self.prompts)

    async def choices(self, *, delta: bool) -> list[dict[str, Any]]:
        """Return new text since the last call, for each sequence that has any."""
        choices = await asyncio.to_thread(self._fresh_choices, delta)
        if self.tools:
            await self._note_calls([c for c in choices if c["finish_reason"] == "stop"], delta)
        return choices

    def _fresh_choices(self, delta: bool) -> list[dict[str, Any]]:
        choices: list[dict[str, Any]] = []
        for at, prompt in enumerate(self.prompts):
            # `wait` sets both: the end is not looked up in between.
            ended = prompt.ended
            # A call is known at its end.
            if prompt.result is None or prompt.told or (self.tools and not ended):
                continue
            prompt.told = ended
            pairs = zip(prompt.replies, prompt.result.sequences, strict=True)
            for index, (reply, sequence) in enumerate(pairs, at * len(prompt.replies)):
                start = reply.tokens
                text = reply.grow(sequence, ended=ended)
                if ended or reply.tokens > start:
                    choice = self._choice(prompt, sequence, slice(start, reply.tokens), text, delta)
                    if ended:
                        choice["finish_reason"] = "stop" if sequence.stopped else "length"
                    choices.append({"index": index, **choice})
        return choices

    def _choice(
        self, prompt: _Prompt, sequence: Sequence, fresh: slice, text: str, delta: bool
    ) -> dict[str, Any]:
        """Return the choice of a sequence with its fresh tokens and text."""
        choice: dict[str, Any] = {"finish_reason": None, "logprobs": None}
        if self.chat:
            name = "delta" if delta else "message"
            choice[name] = {"role": "assistant", "content": text}
        else:
            choice["text"] = text
            choice["prompt_token_ids"] = prompt.request.prompt.tolist()
        if self.body.logprobs is not None and self.body.logprobs is not False:
            report = chat_logprobs if self.chat else completion_logprobs
            choice["logprobs"] = report(self.base_model, sequence, fresh.start, fresh.stop)
        choice["token_ids"] = sequence.tokens[fresh].tolist()
        return choice

    async def _note_calls(self, choices: list[dict[str, Any]], delta: bool) -> None:
        """Move the calls of whole replies from their text to where clients look for them."""
        messages = [choice["delta" if delta else "message"] for choice in choices]
        replies = [
            (message["content"], choice["token_ids"])
            for message, choice in zip(messages, choices, strict=True)
        ]
        said = await self._form.read_calls(replies, self.tools)
        for choice, message, (words, read) in zip(choices, messages, said, strict=True):
            calls: list[dict[str, Any]] = [
                {
                    **({"index": index} if delta else {}),
                    **{"id": f"call_{secrets.token_hex(12)}", "type": "function"},
                    "function": call._asdict(),
                }
                for index, call in enumerate(read)
            ]
            if calls:
                choice["finish_reason"] = "tool_calls"
                message |= {"content": words or None, "tool_calls": calls}

    def usage(self) -> dict[str, int]:
        """Return the number of tokens."""
        prompts = sum(len(prompt.request.prompt) for prompt in self.prompts)
        replies = sum(reply.tokens for prompt in self.prompts for reply in prompt.replies)
        return {
            "prompt_tokens": prompts,
            "completion_tokens": replies,
            "total_tokens": prompts + replies,
        }

    def envelope(self, choices: list[dict[str, Any]], *, streaming: bool) -> dict[str, Any]:
        """Return an answer, or a piece of one."""
        kind = "chat.completion" if self.chat else "text_completion"
        prompt = {"prompt_token_ids": self.prompts[0].request.prompt.tolist()} if self.chat else {}
        return {
            "id": self.id,
            "object": f"{kind}.chunk" if streaming and self.chat else kind,
            "created": self.created,
            "model": self.body.model,
            "choices": choices,
            **prompt,
        }


async def _complete(request: web.Request, service: Service, kind: type[Body]) -> Answer:
    body: Body = await read_body(request, kind)
    if body.model.startswith(CHECKPOINT_SCHEME):
        model, weights = service.weights_of(body.model)
    else:
        model, weights = service.model(body.model), BASE
    form = request.app[FORMATS][model.name]
    # Many may wait for a thread.
    give_back = service.ledger.take(PARSED * len(request[BODY]), "a prompt")
    try:
        requests = await asyncio.get_running_loop().run_in_executor(
            _THREADS, sampling_requests, body, weights, model.base_model, form
        )
    finally:
        give_back()
    with _Completion(service, body, model, form, requests) as completion:
        if body.stream:
            return await _stream(request, completion)
        while not await completion.wait(request, streaming=False):
            pass
        choices = await completion.choices(delta=False)
        answer = completion.envelope(choices, streaming=False)
        answer["usage"] = completion.usage()
        return answer


async def _stream(request: web.Request, completion: _Completion) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    try:
        async for piece in _pieces(request, completion):
            async with asyncio.timeout(WRITE_S):
                await response.write(f"data: {piece}\n\n".encode())
    except (ConnectionResetError, TimeoutError):
        return response
    except Exception as error:
        # The status is sent already: the error is a piece of the stream.
        message = {"error": {"message": str(error), "type": type(error).__name__}}
        await response.write(f"data: {json.dumps(message)}\n\n".encode())
    await response.write_eof()
    return response


async def _pieces(request: web.Request, completion: _Completion) -> AsyncIterator[str]:
    ended = False
    while not ended:
        ended = await completion.wait(request, streaming=True)
        choices = await completion.choices(delta=True)
        if choices:
            yield json.dumps(completion.envelope(choices, streaming=True))
    options = completion.body.stream_options
    if options is not None and options.include_usage:
        last = completion.envelope([], streaming=True)
        yield json.dumps({**last, "usage": completion.usage()})
    yield "[DONE]"


async def _models(request: web.Request, service: Service) -> Answer:
    models = [
        {"id": name, "object": "model", "created": 0, "owned_by": "local"}
        for name in dict.fromkeys([*service.named, *(model.name for model in service.models)])
    ]
    return {"object": "list", "data": models}


ROUTES: list[Route] = [
    ("GET", "models", _models),
    ("POST", "chat/completions", partial(_complete, kind=ChatRequest)),
    ("POST", "completions", partial(_complete, kind=CompletionRequest)),
]
