"""Helpers shared by all route handlers: parse a request body, build a JSON response."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import pydantic
from aiohttp import web

from tokengym.agents.service.errors import BadRequestError
from tokengym.agents.service.state.service import Service

SERVICE: web.AppKey[Service] = web.AppKey("service", Service)

Answer = web.StreamResponse | Mapping[str, Any] | None
"""A response, the JSON object that one holds, or `None` for an empty one."""
Handler = Callable[[web.Request, Service], Awaitable[Answer]]
Route = tuple[str, str, Handler]
JSON_BYTES = 1 << 15
"""Size of a request whose text may be kept."""
CONTENT_BYTES = 1 << 20
"""Size of a request that is held until it is done, besides what its kind allows."""
# How many times the memory of its text parsed JSON takes at most.
PARSED = 25
# A longer body is parsed off the event loop.
SHORT_BYTES = 1 << 14
BODY_S = 120.0

Model = TypeVar("Model", bound=pydantic.BaseModel)


async def respond(handler: Handler, request: web.Request) -> web.StreamResponse:
    """Return the response that a handler's answer stands for."""
    answer = await handler(request, request.app[SERVICE])
    if isinstance(answer, web.StreamResponse):
        return answer
    return web.Response(status=204) if answer is None else web.json_response(answer)


async def read_bytes(request: web.Request, limit: int = sys.maxsize) -> bytes:
    """Return the body.

    Args:
        request: the request.
        limit: bytes that the body may have, where the service accepts as many.

    Raises:
        BadRequestError: if it is compressed.
        HTTPRequestEntityTooLarge: if it has more.
        HTTPRequestTimeout: if it takes longer than `BODY_S`; the SDK sends it again.
        OverloadedError: if there is no room for it.
    """
    if (coding := request.headers.get("Content-Encoding", "identity")) != "identity":
        raise BadRequestError(f"bodies are not compressed on the local service, got {coding!r}")
    service = request.app[SERVICE]
    limit = min(limit, service.config.max_body_mb << 20)
    # Who sends it is known when it is read.
    coming = min(limit, request.content_length or limit)
    give_back = service.ledger.take(coming if coming > CONTENT_BYTES else 0, "a request")
    try:
        async with asyncio.timeout(BODY_S):
            return await request.clone(client_max_size=limit).read()
    except web.HTTPRequestEntityTooLarge as error:
        reason = f"body must be at most {limit} bytes, got more"
        raise web.HTTPRequestEntityTooLarge(limit, reason=reason) from error
    except TimeoutError as error:
        raise web.HTTPRequestTimeout(reason=f"body must come within {BODY_S:g} s") from error
    finally:
        give_back()


async def read_body(request: web.Request, model: type[Model], limit: int = JSON_BYTES) -> Model:
    """Parse the body as one of the SDK's request types; unknown fields are an error.

    Raises:
        ValidationError: if it is no such request.
    """
    body = await read_bytes(request, limit)
    if len(body) <= SHORT_BYTES:
        return model.model_validate_json(body)
    return await asyncio.to_thread(model.model_validate_json, body)


async def read_field(request: web.Request, name: str) -> Any:
    """Return one field of a JSON body, or None where there is no such field."""
    body = json.loads(await read_bytes(request, JSON_BYTES))
    return body.get(name) if isinstance(body, dict) else None


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
