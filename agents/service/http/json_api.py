"""Helpers shared by all route handlers: parse a request body, build a JSON response."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

import pydantic
from aiohttp import web
from google.protobuf.message import DecodeError
from pydantic_core import from_json
from tinker.proto import tinker_public_pb2 as pb

from tokengym.agents.service.errors import (
    BadRequestError,
    OverloadedError,
    TooLargeError,
    TooSlowError,
    UnsupportedError,
)
from tokengym.agents.service.state.service import Service

SERVICE: web.AppKey[Service] = web.AppKey("service", Service)

Answer = web.StreamResponse | Mapping[str, Any] | None
"""A response, the JSON object that one holds, or `None` for an empty one."""
Handler = Callable[[web.Request, Service], Awaitable[Answer]]
Route = tuple[str, str, Handler]
JSON_BYTES = 1 << 20
# How many times the memory of its text parsed JSON takes at most.
PARSED = 25
# A longer body is parsed off the event loop.
SHORT_BYTES = 1 << 14
BODY_S = 120.0
# Of a field, such as text that is kept; the others are held until their request is done, and count.
FIELD_BYTES = 8192
CONTENTS = frozenset({"prompt", "messages", "tools", "target_prompt_logprobs"})
# What was read of a request's body.
BODY = "body"

Model = TypeVar("Model", bound=pydantic.BaseModel)


async def respond(handler: Handler, request: web.Request) -> web.StreamResponse:
    """Return the response that a handler's answer stands for."""
    service = request.app[SERVICE]
    try:
        answer = await handler(request, service)
    except (TooSlowError, OverloadedError):  # The SDK sends it again.
        raise
    except Exception:
        service.pass_over(*order_of(bytes(request.get(BODY, b"")[:JSON_BYTES])))
        raise
    if isinstance(answer, web.StreamResponse):
        return answer
    return web.Response(status=204) if answer is None else web.json_response(answer)


async def read_bytes(request: web.Request, limit: int) -> bytes:
    """Return the body.

    Args:
        request: the request.
        limit: bytes that the body may have; no more of it is read.

    Raises:
        UnsupportedError: if it is compressed.
        TooLargeError: if it has more.
        TooSlowError: if it takes longer than `BODY_S`.
        OverloadedError: if there is no room for it.
    """
    if (coding := request.headers.get("Content-Encoding", "identity")) != "identity":
        raise UnsupportedError(f"bodies are not compressed on the local service, got {coding!r}")
    service = request.app[SERVICE]
    limit = min(limit, service.config.max_body_bytes)
    request[BODY] = body = bytearray()
    # Who sends it is known when it is read.
    coming = min(limit, request.content_length or limit)
    coming = coming if coming > JSON_BYTES else 0
    give_back = service.ledger.take(coming, "a request")
    try:
        async with asyncio.timeout(BODY_S):
            async for piece in request.content.iter_any():
                body += piece
                if len(body) > limit:
                    raise TooLargeError(f"body must be at most {limit} bytes, got more")
    except TimeoutError as error:
        raise TooSlowError(f"body must come within {BODY_S:g} s, got {len(body)} bytes") from error
    finally:
        give_back()
    return bytes(body)


async def read_body(request: web.Request, model: type[Model], limit: int = JSON_BYTES) -> Model:
    """Parse the body as one of the SDK's request types; unknown fields are an error.

    Raises:
        ValidationError: if it is no such request.
        BadRequestError: if a field is longer than requests need it.
    """
    body = await read_bytes(request, limit)
    if len(body) <= SHORT_BYTES:
        return _parsed(body, model)
    return await asyncio.to_thread(_parsed, body, model)


def _parsed(body: bytes, model: type[Model]) -> Model:
    try:
        sent = json.loads(body)
    except ValueError:
        sent = None  # What is no JSON the model refuses.
    _check_fields(sent)
    return model.model_validate_json(body)


async def read_field(request: web.Request, name: str) -> Any:
    """Return one field of a JSON body, or None where there is no such field."""
    body = json.loads(await read_bytes(request, JSON_BYTES))
    _check_fields(body)
    return body.get(name) if isinstance(body, dict) else None


def order_of(body: bytes) -> tuple[Any, Any]:
    """Return a training run and the number of its request, as far as a refused body has them."""
    with suppress(ValueError):
        sent = from_json(body, allow_partial=True)
        # A message begins with a line feed and a length that can be the sign of a number.
        if isinstance(sent, dict):
            return sent.get("model_id"), sent.get("seq_id")
    message = pb.ForwardBackwardRequest()
    with suppress(DecodeError):  # What comes before the damage is read.
        message.ParseFromString(body)
    return message.model_id, message.seq_id


def _check_fields(body: Any) -> None:
    """Check that no field but the contents is long: many are kept."""
    for name, value in body.items() if isinstance(body, dict) else ():
        text = name if name in CONTENTS else name + json.dumps(value, ensure_ascii=False)
        if (size := len(text.encode(errors="surrogatepass"))) > FIELD_BYTES:
            raise BadRequestError(f"{name[:99]} must have at most {FIELD_BYTES} bytes, got {size}")


def pending(request_id: str, **extra: Any) -> dict[str, Any]:
    """Return the answer to a request whose result is fetched later by `request_id`."""
    return {"request_id": request_id, **extra}


def error_response(status: int, detail: str) -> web.Response:
    """Return an error response: the SDK shows its `detail`, OpenAI's client the error's message."""
    detail = detail[:1000]
    error = {"message": detail, "type": "invalid_request_error", "param": None, "code": None}
    return web.json_response({"detail": detail, "error": error}, status=status)


async def unknown_route(request: web.Request) -> web.StreamResponse:
    """Answer any route this service does not have."""
    return error_response(
        404, f"{request.method} {request.path} is not offered by the local service"
    )
