"""OpenAI's completions API for base models and `tinker://` paths."""

import asyncio
import json
import secrets
import time
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from typing import Any

from aiohttp import web

from tokengym.agents.service.config import CHECKPOINT_SCHEME
from tokengym.agents.service.generation.jobs import SampleRequest, SampleResult
from tokengym.agents.service.generation.sampled_weights import BASE
from tokengym.agents.service.http.chat_format import ChatFormat
from tokengym.agents.service.http.json_api import (
    CONTENT_BYTES,
    PARSED,
    Answer,
    Route,
    read_body,
)
from tokengym.agents.service.http.openai_api import (
    Body,
    ChatRequest,
    CompletionRequest,
    choice_of,
    sampling_requests,
)
from tokengym.agents.service.served_model import ServedModel
from tokengym.agents.service.state.service import Service

FORMATS: web.AppKey[Mapping[str, ChatFormat]] = web.AppKey("formats", Mapping)
"""How each model writes chats, by its name."""


async def _complete(request: web.Request, service: Service, kind: type[Body]) -> Answer:
    body: Body = await read_body(request, kind, CONTENT_BYTES)
    if body.model.startswith(CHECKPOINT_SCHEME):
        model, weights = service.weights_of(body.model)
    else:
        model, weights = service.model(body.model), BASE
    form = request.app[FORMATS][model.name]
    # Many may wait for a thread.
    give_back = service.ledger.take(PARSED * (request.content_length or CONTENT_BYTES), "a prompt")
    try:
        requests = await asyncio.to_thread(sampling_requests, body, weights, model.base_model, form)
    finally:
        give_back()
    # A client that goes cancels this, and with it what is sampled.
    with ExitStack() as sampling:
        started = [sampling.enter_context(service.sampling(model, request)) for request in requests]
        results = await asyncio.gather(*map(asyncio.wrap_future, started))
    answer = await asyncio.to_thread(_answer, body, model, form, requests, results)
    return await _stream(request, body, answer) if body.stream else answer


def _answer(
    body: Body,
    model: ServedModel,
    form: ChatFormat,
    requests: list[SampleRequest],
    results: list[SampleResult],
) -> dict[str, Any]:
    pairs = [
        (request, sequence)
        for request, result in zip(requests, results, strict=True)
        for sequence in result.sequences
    ]
    read = sum(len(request.prompt) for request in requests)
    written = sum(len(sequence.tokens) for _, sequence in pairs)
    chat = isinstance(body, ChatRequest)
    choices = [
        {"index": index, **choice_of(body, model.base_model, *pair)}
        for index, pair in enumerate(pairs)
    ]
    if isinstance(body, ChatRequest) and body.declared:
        _note_calls(form, body.declared, choices)
    return {
        "id": f"{'chatcmpl' if chat else 'cmpl'}-{secrets.token_hex(12)}",
        "object": "chat.completion" if chat else "text_completion",
        "created": int(time.time()),
        "model": body.model,
        "choices": choices,
        **({"prompt_token_ids": requests[0].prompt.tolist()} if chat else {}),
        "usage": {
            "prompt_tokens": read,
            "completion_tokens": written,
            "total_tokens": read + written,
        },
    }


def _note_calls(form: ChatFormat, tools: list[Any], choices: list[dict[str, Any]]) -> None:
    """Move the calls of whole replies from their text to where clients look for them."""
    whole = [choice for choice in choices if choice["finish_reason"] == "stop"]
    said = form.read_calls([choice["message"]["content"] for choice in whole], tools)
    for choice, (words, read) in zip(whole, said, strict=True):
        calls = [
            {"id": f"call_{secrets.token_hex(12)}", "type": "function", "function": call._asdict()}
            for call in read
        ]
        if calls:
            choice["finish_reason"] = "tool_calls"
            choice["message"] |= {"content": words or None, "tool_calls": calls}


async def _stream(request: web.Request, body: Body, answer: dict[str, Any]) -> web.StreamResponse:
    """Send an answer as a stream, each reply in one piece."""
    usage = answer.pop("usage")
    for choice in answer["choices"] if isinstance(body, ChatRequest) else ():
        choice["delta"] = choice.pop("message")
        for index, call in enumerate(choice["delta"].get("tool_calls", ())):
            call["index"] = index
        answer["object"] = "chat.completion.chunk"
    pieces = [{**answer, "choices": [choice]} for choice in answer["choices"]]
    if body.stream_options is not None and body.stream_options.include_usage:
        pieces.append({**answer, "choices": [], "usage": usage})
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    for text in [*map(json.dumps, pieces), "[DONE]"]:
        await response.write(f"data: {text}\n\n".encode())
    await response.write_eof()
    return response


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
