"""What every route handler needs: the service, the body and an error answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

import pydantic
from aiohttp import web

from tokengym.agents.service.service import Service

if TYPE_CHECKING:
    from tokengym.agents.service.errors import ServiceError

SERVICE: web.AppKey[Service] = web.AppKey("service", Service)

Route = tuple[str, str, Callable[[web.Request], Awaitable[web.StreamResponse]]]
Model = TypeVar("Model", bound=pydantic.BaseModel)


def service_of(request: web.Request) -> Service:
    """The service behind a request."""
    return request.app[SERVICE]


async def read(request: web.Request, model: type[Model]) -> Model:
    """The body as one of the SDK's own request types, unknown fields refused."""
    return model.model_validate_json(await request.read())


def answer(data: Any, status: int = 200) -> web.Response:
    """A JSON answer."""
    return web.json_response(data, status=status)


def promise(request_id: str, **extra: Any) -> web.Response:
    """The answer to a request whose result is fetched later."""
    return answer({"request_id": request_id, **extra})


def failure(status: int, detail: str) -> web.Response:
    """An error answer; the SDK shows its `detail`."""
    return answer({"detail": detail}, status)


def refused(error: ServiceError) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    """A handler that always answers with `error`."""

    async def handler(_request: web.Request) -> web.StreamResponse:
        raise error

    return handler


async def refuse_unknown(request: web.Request) -> web.StreamResponse:
    """The answer to a route this service does not have."""
    return failure(404, f"{request.method} {request.path} is not offered by the local service")
