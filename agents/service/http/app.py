"""The HTTP application: access checks, error responses and the route table."""

import asyncio
import hmac
import json
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial

import pydantic
from aiohttp import web

from tokengym.agents.service.errors import ServiceError
from tokengym.agents.service.http import openai_routes, tinker_routes
from tokengym.agents.service.http.chat_format import ChatFormat
from tokengym.agents.service.http.json_api import SERVICE, error_response, respond, unknown_route
from tokengym.agents.service.state.service import Service
from tokengym.loopback import foreign_site

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

SESSION_CHECK_S = 10.0
MAX_FAULTS = 1000
KEY_HEADER = "X-API-Key"

log = logging.getLogger(__name__)


def build_app(service: Service) -> web.Application:
    """Build the application; it starts and stops the service's compute thread."""
    app = web.Application(middlewares=[_handle_errors, _check_access])
    app[SERVICE] = service
    app[openai_routes.FORMATS] = {
        model.name: ChatFormat(model.base_model.tokenizer) for model in service.models
    }
    for method, path, handler in tinker_routes.ROUTES:
        app.router.add_route(method, f"/api/v1/{path}", partial(respond, handler))
    for method, path, handler in openai_routes.ROUTES:
        app.router.add_route(method, f"/v1/{path}", partial(respond, handler))
    app.router.add_route("*", "/{tail:.*}", unknown_route)
    app.cleanup_ctx.append(_lifetime)
    return app


async def _lifetime(app: web.Application) -> AsyncIterator[None]:
    service = app[SERVICE]
    service.start()
    reaper = asyncio.create_task(_end_silent_sessions(service))
    yield
    reaper.cancel()
    await asyncio.to_thread(service.stop)


async def _end_silent_sessions(service: Service) -> None:
    while True:
        await asyncio.sleep(SESSION_CHECK_S)
        await service.end_silent_sessions()


@web.middleware
async def _handle_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    start = time.perf_counter()
    try:
        response = await handler(request)
    except ServiceError as error:
        response = error_response(error.status, str(error))
    except pydantic.ValidationError as error:
        if (faults := error.error_count()) > MAX_FAULTS:  # each would be described
            return error_response(422, f"body must have at most {MAX_FAULTS} faults, got {faults}")
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "body"
        response = error_response(422, f"{where}: {first['msg']}, got {first['input']!r}")
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        response = error_response(400, f"body must be JSON: {error}")
    except web.HTTPException as error:
        response = error_response(error.status, error.reason)
    except Exception as error:
        if request.transport is None or request.transport.is_closing():
            log.debug("%s %s: the client has gone", request.method, request.path)
            return web.Response()
        log.exception("%s %s failed", request.method, request.path)
        # 422 and not 500: the SDK would repeat the request for minutes, to the same end.
        response = error_response(422, f"internal error: {type(error).__name__}: {error}")
    elapsed = 1000 * (time.perf_counter() - start)
    log.debug("%s %s %d %.1f ms", request.method, request.path, response.status, elapsed)
    return response


@web.middleware
async def _check_access(request: web.Request, handler: Handler) -> web.StreamResponse:
    headers, config = request.headers, request.app[SERVICE].config
    reason = foreign_site(config.host, headers.get("Host"), headers.get("Origin"))
    if reason is not None:
        raise web.HTTPForbidden(reason=reason)
    # OpenAI's clients send the key as a bearer's.
    kind, _, bearer = headers.get("Authorization", "").partition(" ")
    key = headers.get(KEY_HEADER) or (bearer.strip() if kind.lower() == "bearer" else "")
    # aiohttp keeps bytes that are not UTF-8 as surrogates.
    if not hmac.compare_digest(key.encode(errors="surrogateescape"), config.api_key.encode()):
        given = "another one" if key else "none"
        raise web.HTTPUnauthorized(
            reason=f"{KEY_HEADER} must be the key this service was started with, got {given}"
        )
    return await handler(request)
