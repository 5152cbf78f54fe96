"""Helpers shared by all route handlers: parse a request body, build a JSON response."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

import pydantic
from aiohttp import web

from tokengym.agents.service.state.service import Service

if TYPE_CHECKING:
    from tokengym.agents.service.errors import ServiceError

SERVICE: web.AppKey[Service] = web.AppKey("service", Service)

Route = tuple[str, str, Callable[[web.Request], Awaitable[web.StreamResponse]]]
Model = TypeVar("Model", bound=pydantic.BaseModel)


def service_of(request: web.Request) -> Service:
    """Return the service that handles `request`."""
    return request.app[SERVICE]


async def read_body(request: web.Request, model: type[Model]) -> Model:
    """Parse the body as one of the SDK's request types; unknown fields are an error."""
    return model.model_validate_json(await request.read())


async def read_field(request: web.Request, name: str) -> Any:
    """Return one field of a JSON body, or None where there is no such field."""
    body = await request.json()
    return body.get(name) if isinstance(body, dict) else None


def pending(request_id: str, **extra: Any) -> web.Response:
    """Return the response to a request whose result is fetched later by `request_id`."""
    return web.json_response({"request_id": request_id, **extra})


def error_response(status: int, detail: str) -> web.Response:
    """Return an error response; the SDK shows its `detail`."""
    return web.json_response({"detail": detail}, status=status)


def refuse(error: ServiceError) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    """Return a handler that always raises `error`."""

    async def handler(_request: web.Request) -> web.StreamResponse:
        raise error

    return handler


async def unknown_route(request: web.Request) -> web.StreamResponse:
    """Answer any route this service does not have."""
    return error_response(
        404, f"{request.method} {request.path} is not offered by the local service"
    )
