"""The requests and answers of OpenAI's completions API, and their meaning for the sampler.

Fields that do not change the result are accepted; those that would change it and cannot be
served are refused by name. Token ids go in the fields that vLLM has for them: `prompt_token_ids`,
and `token_ids` of each choice.
"""

from dataclasses import replace
from functools import cached_property
from itertools import accumulate
from typing import Annotated, Any, Literal

import pydantic
from tinker import types

from tokengym.agents.service.engine.base_model import BaseModel
from tokengym.agents.service.errors import BadRequestError
from tokengym.agents.service.generation.jobs import SampleRequest, Sequence
from tokengym.agents.service.http.chat_format import ChatFormat
from tokengym.agents.service.http.tool_calls import check_parameters, value_of
from tokengym.agents.service.http.wire import MAX_SAMPLES, sample_request

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
    stop: str | list[str] = []
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

    @property
    def stops(self) -> tuple[str, ...]:
        """The stop strings."""
        return (self.stop,) if isinstance(self.stop, str) else tuple(self.stop)


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

    @property
    def limit(self) -> int | None:
        """The token limit of a reply, None for what the context leaves."""
        return self.max_tokens if self.max_completion_tokens is None else self.max_completion_tokens

    @property
    def top(self) -> int:
        """How many of the likeliest tokens to report at each place."""
        return self.top_logprobs


class CompletionRequest(Sampling):
    """The body of `/v1/completions`."""

    prompt: str | list[str] | list[int] | list[list[int]]
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

    @property
    def limit(self) -> int | None:
        """The token limit of a reply."""
        return DEFAULT_TOKENS if self.max_tokens is None else self.max_tokens

    @property
    def top(self) -> int:
        """How many of the likeliest tokens to report at each place."""
        return self.logprobs or 0


Body = ChatRequest | CompletionRequest


def sampling_requests(
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
    if "" in body.stops:
        raise BadRequestError("stop strings must not be empty")
    params = types.SamplingParams(
        max_tokens=body.limit,
        seed=body.seed,
        temperature=body.temperature,
        top_k=body.top_k,
        top_p=body.top_p,
    )
    requests = []
    for prompt in prompts:
        sent = types.SampleRequest(
            prompt=types.ModelInput.from_ints(prompt),
            sampling_params=params,
            num_samples=body.n,
            topk_sample_logprobs=body.top,
        )
        checked = sample_request(sent, weights, base_model)
        stop_tokens = checked.stop_tokens | frozenset(body.stop_token_ids)
        client = body.user or ""
        requests.append(
            replace(checked, stop_tokens=stop_tokens, stop_strings=body.stops, client=client)
        )
    return requests


def choice_of(
    body: Body, model: BaseModel, request: SampleRequest, sequence: Sequence
) -> dict[str, Any]:
    """Return a sampled sequence as a choice of an answer."""
    ids = sequence.tokens.tolist()
    ended = bool(ids) and ids[-1] in request.stop_tokens
    text = model.decode(ids[:-1] if ended else ids, special=False)
    ends = [at for stop in request.stop_strings if (at := text.find(stop)) >= 0]
    text = text[: min(ends, default=len(text))]
    choice: dict[str, Any] = {
        "finish_reason": "stop" if sequence.stopped else "length",
        "logprobs": None,
        "token_ids": ids,
    }
    if isinstance(body, ChatRequest):
        choice["message"] = {"role": "assistant", "content": text}
    else:
        choice |= {"text": text, "prompt_token_ids": request.prompt.tolist()}
    if body.logprobs is not None and body.logprobs is not False:
        chat = isinstance(body, ChatRequest)
        choice["logprobs"] = (_chat_logprobs if chat else _completion_logprobs)(model, sequence)
    return choice


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
