"""OpenAI's completions API for base models and `tinker://` paths.

Fields that do not change the result are accepted; those that would change it and cannot be
served are refused by name. Token ids go in the fields that vLLM has for them: `prompt_token_ids`,
and `token_ids` of each choice.
"""

import asyncio
import json
import secrets
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property, partial
from itertools import accumulate
from typing import Annotated, Any, Literal

import pydantic
from aiohttp import web
from tinker import types

from tokengym.agents.service.config import CHECKPOINT_SCHEME
from tokengym.agents.service.engine.base_model import BaseModel
from tokengym.agents.service.errors import BadRequestError
from tokengym.agents.service.generation.jobs import SampleRequest, SampleResult, Sequence
from tokengym.agents.service.generation.sampled_weights import BASE
from tokengym.agents.service.http.chat_format import ChatFormat
from tokengym.agents.service.http.json_api import CONTENT_BYTES, PARSED, Answer, Route, read_body
from tokengym.agents.service.http.tool_calls import check_parameters, value_of
from tokengym.agents.service.http.wire import MAX_SAMPLES, sample_request
from tokengym.agents.service.served_model import ServedModel
from tokengym.agents.service.state.service import Service

FORMATS: web.AppKey[Mapping[str, ChatFormat]] = web.AppKey("formats", Mapping)
"""How each model writes chats, by its name."""
# OpenAI's default for completions.
DEFAULT_TOKENS = 16
Penalty = Literal[0] | None


class _Part(pydantic.BaseModel):
    """A part of a request: unknown fields are refused, unless they say nothing."""

    model_config = pydantic.ConfigDict(extra="forbid")

    @pydantic.model_validator(mode="before")
    @classmethod
    def _drop_empty(cls, sent: Any) -> Any:
        # Clients send null, or an empty list, instead of what they leave out.
        if isinstance(sent, dict):
            return {name: value for name, value in sent.items() if value not in (None, [], {})}
        return sent


class StreamOptions(_Part):
    """How a stream ends: with the number of tokens, if `include_usage`."""

    include_usage: bool = False
    include_obfuscation: bool = False


class Sampling(_Part):
    """Fields that both types of request share."""

    model: str
    n: int = 1
    max_tokens: int | None = None
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = -1
    seed: int | None = None
    stop: str | list[str] | None = None
    stop_token_ids: list[int] = []
    stream: bool = False
    stream_options: StreamOptions | None = None
    # Time is shared among users.
    user: Annotated[str | None, pydantic.Field(max_length=256)] = None
    # They change nothing here, or have to be neutral.
    store: bool | None = None
    metadata: dict[str, str] | None = None
    return_token_ids: bool | None = None
    frequency_penalty: Penalty = None
    presence_penalty: Penalty = None
    logit_bias: dict[str, Penalty] | None = None


class TextPart(_Part):
    """A part of a message."""

    type: Literal["text"]
    text: str


class Function(_Part):
    """A tool as it is declared; nothing holds a model to its schema, `strict` or not."""

    name: str
    description: str | None = None
    parameters: Annotated[dict[str, Any], pydantic.AfterValidator(check_parameters)] | None = None
    strict: bool | None = pydantic.Field(None, exclude=True)


class ToolPart(_Part):
    """A tool of a request."""

    type: Literal["function"]
    function: Function


class CalledFunction(_Part):
    """The name of a function, and its arguments as JSON."""

    name: str
    arguments: str


class ToolCall(_Part):
    """A call in a message of the model's."""

    id: str | None = None
    index: int | None = None
    type: Literal["function"] = "function"
    function: CalledFunction

    def plain(self) -> dict[str, Any]:
        """Return the call as chat templates take it: with an object for its arguments."""
        called = self.function.model_dump()
        if isinstance(read := value_of(called["arguments"] or "{}"), dict):
            called["arguments"] = read
        return {"id": self.id, "type": "function", "function": called}


class ChatMessage(_Part):
    """A message."""

    role: str
    content: str | list[TextPart]
    name: str | None = None
    tool_calls: list[ToolCall] = []
    tool_call_id: str | None = None

    @pydantic.model_validator(mode="before")
    @classmethod
    def _allow_calls_alone(cls, sent: Any) -> Any:
        if isinstance(sent, dict) and sent.get("tool_calls"):
            return {**sent, "content": sent.get("content") or ""}
        return sent

    def plain(self) -> dict[str, Any]:
        """Return the message in the form that chat templates take."""
        parts = self.content
        text = parts if isinstance(parts, str) else "".join(part.text for part in parts)
        calls = [call.plain() for call in self.tool_calls]
        more = {"tool_calls": calls, "tool_call_id": self.tool_call_id}
        return {"role": self.role, "content": text, **{k: v for k, v in more.items() if v}}


class ChatRequest(Sampling):
    """The body of `/v1/chat/completions`."""

    messages: list[ChatMessage]
    max_completion_tokens: int | None = None
    logprobs: bool | None = None
    top_logprobs: int = 0
    tools: list[ToolPart] = []
    tool_choice: Any = "auto"
    parallel_tool_calls: Literal[True] | None = None

    @cached_property
    def declared(self) -> list[dict[str, Any]]:
        """Tools that the prompt lists: none where the model may call none."""
        none = self.tool_choice == "none"
        return [] if none else [tool.model_dump(exclude_none=True) for tool in self.tools]

    def prompts(self, base_model: BaseModel, form: ChatFormat) -> list[list[int]]:
        """Return the one prompt that the model's chat template makes of the messages.

        Raises:
            BadRequestError: if a call is to be forced, or messages or tools do not suit the
                template.
        """
        if not form.has_template:
            raise BadRequestError(
                f"{base_model.name!r} must have a chat template to take messages, it has none; use "
                "/v1/completions"
            )
        if self.tool_choice not in ("auto", "none"):
            raise BadRequestError(f"tool_choice must be 'auto' or 'none', got {self.tool_choice!r}")
        part = "tools"
        try:
            if self.declared:
                form.call_form(self.declared)
            part = "messages and tools" if self.declared else "messages"
            return [form.encode_chat([m.plain() for m in self.messages], self.declared)]
        except Exception as error:  # a template is a program, and raises what it likes
            raise BadRequestError(f"{part} must suit the chat template: {error}") from error


class CompletionRequest(Sampling):
    """The body of `/v1/completions`."""

    prompt: str | list[str] | list[int] | list[list[int]]
    max_tokens: int | None = DEFAULT_TOKENS
    echo: Literal[False] | None = None
    suffix: Literal[""] | None = None
    best_of: Literal[1] | None = None
    logprobs: int | None = None

    def prompts(self, _base_model: BaseModel, form: ChatFormat) -> list[list[int]]:
        """Return the tokens of each prompt."""
        prompts: list[Any] = [self.prompt] if isinstance(self.prompt, str) else list(self.prompt)
        if prompts and isinstance(prompts[0], int):
            prompts = [prompts]
        return [form.encode(prompt) if isinstance(prompt, str) else prompt for prompt in prompts]


Body = ChatRequest | CompletionRequest


def _requests(
    body: Body, weights: str, base_model: BaseModel, form: ChatFormat
) -> list[SampleRequest]:
    """Return a checked request for each prompt.

    Raises:
        BadRequestError: naming the value and the rule.
    """
    prompts = body.prompts(base_model, form)
    if not (prompts and 1 <= body.n * len(prompts) <= MAX_SAMPLES):
        raise BadRequestError(
            f"n times the number of prompts must be 1 to {MAX_SAMPLES}, "
            f"got {body.n} times {len(prompts)}"
        )
    limit, top = body.max_tokens, body.logprobs or 0
    if isinstance(body, ChatRequest):
        limit = limit if body.max_completion_tokens is None else body.max_completion_tokens
        top = body.top_logprobs
    params = types.SamplingParams(
        max_tokens=limit,
        seed=body.seed,
        stop=body.stop,
        temperature=body.temperature,
        top_k=body.top_k,
        top_p=body.top_p,
    )
    stop_tokens, client = base_model.eos | frozenset(body.stop_token_ids), body.user or ""
    requests = []
    for prompt in prompts:
        sent = types.SampleRequest(
            prompt=types.ModelInput.from_ints(prompt),
            sampling_params=params,
            num_samples=body.n,
            topk_sample_logprobs=top,
        )
        checked = sample_request(sent, weights, base_model)
        requests.append(replace(checked, stop_tokens=stop_tokens, client=client))
    return requests


def _choice(
    body: Body, model: BaseModel, request: SampleRequest, sequence: Sequence
) -> dict[str, Any]:
    """Return a sampled sequence as a choice of an answer."""
    ids = sequence.tokens.tolist()
    ended = bool(ids) and ids[-1] in request.stop_tokens
    text = model.decode(ids[:-1] if ended else ids, special=False)
    ends = [at for stop in request.stop_strings if (at := text.find(stop)) >= 0]
    text = text[: min(ends, default=len(text))]
    if isinstance(body, ChatRequest):
        own: dict[str, Any] = {"message": {"role": "assistant", "content": text}}
        logprobs = _chat_logprobs
    else:
        own = {"text": text, "prompt_token_ids": request.prompt.tolist()}
        logprobs = _completion_logprobs
    asked = body.logprobs is not None and body.logprobs is not False
    return {
        "finish_reason": "stop" if sequence.stopped else "length",
        "logprobs": logprobs(model, sequence) if asked else None,
        "token_ids": ids,
        **own,
    }


def _chat_logprobs(model: BaseModel, sequence: Sequence) -> dict[str, Any]:
    def entry(token: int, logprob: float) -> dict[str, Any]:
        text = model.decode([token])
        return {"token": text, "logprob": logprob, "bytes": list(text.encode())}

    own = zip(sequence.tokens, sequence.logprobs, _best(sequence), strict=True)
    content = [
        {**entry(token, logprob), "top_logprobs": [entry(*one) for one in best]}
        for token, logprob, best in own
    ]
    return {"content": content, "refusal": None}


def _completion_logprobs(model: BaseModel, sequence: Sequence) -> dict[str, Any]:
    texts = [model.decode([token]) for token in sequence.tokens]
    return {
        "tokens": texts,
        "token_logprobs": sequence.logprobs.tolist(),
        "top_logprobs": [
            {model.decode([token]): value for token, value in best} for best in _best(sequence)
        ],
        "text_offset": list(accumulate(map(len, texts), initial=0))[:-1],
    }


def _best(sequence: Sequence) -> list[list[tuple[int, float]]]:
    """Return the likeliest tokens at each place with their log-probabilities, if asked for."""
    if not sequence.topk_ids:
        return [[] for _ in sequence.tokens]
    places = zip(sequence.topk_ids, sequence.topk_logprobs, strict=True)
    return [list(zip(ids.tolist(), values.tolist(), strict=True)) for ids, values in places]


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
        requests = await asyncio.to_thread(_requests, body, weights, model.base_model, form)
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
    choices = [
        {"index": index, **_choice(body, model.base_model, *pair)}
        for index, pair in enumerate(pairs)
    ]
    answer = {
        "id": f"cmpl-{secrets.token_hex(12)}",
        "object": "text_completion",
        "created": int(time.time()),
        "model": body.model,
        "choices": choices,
        "usage": {
            "prompt_tokens": read,
            "completion_tokens": written,
            "total_tokens": read + written,
        },
    }
    if isinstance(body, ChatRequest):
        answer |= {"object": "chat.completion", "id": f"chat{answer['id']}"}
        answer["prompt_token_ids"] = requests[0].prompt.tolist()
        if body.declared:
            _note_calls(form, body.declared, choices)
    return answer


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
