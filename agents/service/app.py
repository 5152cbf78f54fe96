"""The HTTP application: authentication, errors as the SDK shows them, and the table of routes."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import time
from typing import TYPE_CHECKING

import pydantic
from aiohttp import web

from tokengym.agents.service import rest_routes, sampling_routes, training_routes
from tokengym.agents.service.errors import ServiceError, UnauthorizedError
from tokengym.agents.service.handling import SERVICE, failure, refuse_unknown

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from tokengym.agents.service.service import Service

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

REAP_EVERY_S = 60.0
KEY_HEADER = "X-API-Key"

log = logging.getLogger(__name__)


def build_app(service: Service) -> web.Application:
    """The application over a service; it starts and stops the service's compute thread."""
    app = web.Application(
        client_max_size=service.settings.max_body_bytes, middlewares=[_log_and_guard, _authenticate]
    )
    app[SERVICE] = service
    for routes in (rest_routes.ROUTES, sampling_routes.ROUTES, training_routes.ROUTES):
        for method, path, handler in routes:
            app.router.add_route(method, f"/api/v1/{path}", handler)
    app.router.add_route("*", "/{tail:.*}", refuse_unknown)
    app.cleanup_ctx.append(_lifetime)
    return app


async def _lifetime(app: web.Application) -> AsyncIterator[None]:
    service = app[SERVICE]
    service.start()
    reaper = asyncio.create_task(_reap(service))
    yield
    reaper.cancel()
    await asyncio.to_thread(service.stop)


async def _reap(service: Service) -> None:
    while True:
        await asyncio.sleep(REAP_EVERY_S)
        for session_id in service.registry.silent_sessions():
            log.info("session %s has been silent and is ended", session_id)
            service.finish_session(session_id, "no heartbeat")


@web.middleware
async def _log_and_guard(request: web.Request, handler: Handler) -> web.StreamResponse:
    start = time.perf_counter()
    try:
        response = await handler(request)
    except ServiceError as error:
        response = failure(error.status, str(error))
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "body"
        response = failure(422, f"{where}: {first['msg']}, got {first['input']!r}"[:1000])
    except json.JSONDecodeError as error:
        response = failure(400, f"body must be JSON: {error}")
    except web.HTTPRequestEntityTooLarge:
        limit = request.app[SERVICE].settings.max_body_bytes
        response = failure(413, f"body must be at most {limit} bytes, got more")
    except web.HTTPException as error:
        response = failure(error.status, error.reason)
    except Exception as error:
        log.exception("%s %s failed", request.method, request.path)
        # 422 and not 500: the SDK would repeat the request for minutes, to the same end.
        response = failure(422, f"internal error: {type(error).__name__}: {error}")
    elapsed = 1000 * (time.perf_counter() - start)
    log.debug("%s %s %d %.1f ms", request.method, request.path, response.status, elapsed)
    return response


@web.middleware
async def _authenticate(request: web.Request, handler: Handler) -> web.StreamResponse:
    expected = request.app[SERVICE].settings.api_key
    given = request.headers.get(KEY_HEADER, "")
    if not hmac.compare_digest(given.encode(), expected.encode()):
        raise UnauthorizedError(
            f"{KEY_HEADER} must be the key this service was started with, got "
            f"{'another one' if given else 'none'}"
        )
    return await handler(request)
