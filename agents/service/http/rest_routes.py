"""Routes for configuration, sessions, training runs and checkpoints."""

from functools import partial
from typing import Any, TypeVar

from aiohttp import web
from tinker import types

from tokengym.agents.service.engine.checkpoints import KINDS, CheckpointInfo, CheckpointPath
from tokengym.agents.service.engine.compute_thread import client_of
from tokengym.agents.service.errors import BadRequestError
from tokengym.agents.service.http.json_api import (
    Answer,
    Handler,
    Route,
    read_body,
    read_field,
)
from tokengym.agents.service.state.service import Service

MAX_PAGE = 1000
CLIENT_CONFIG = {
    # One connection's requests arrive in order; parallel chunks would not.
    "parallel_fwdbwd_chunks": False,
    # A third less of the client's time for each request than its other transport.
    "use_pyqwest_transport": True,
    # On loopback a chunk's size costs nothing, and one chunk shares more prompts.
    "fwdbwd_max_chunk_bytes_count": 16_000_000,
}
T = TypeVar("T")


def _constant(**answer: Any) -> Handler:
    """Return a handler that always gives the same answer."""

    async def handler(_request: web.Request, _service: Service) -> Answer:
        return answer

    return handler


async def _capabilities(request: web.Request, service: Service) -> Answer:
    models = [
        {
            "model_name": model.name,
            "max_context_length": model.base_model.context,
            "trainable": True,
            "sampleable": True,
        }
        for model in service.models
    ]
    return {"supported_models": models}


async def _status(request: web.Request, service: Service) -> Answer:
    return service.status()


async def _create_session(request: web.Request, service: Service) -> Answer:
    body = await read_body(request, types.CreateSessionRequest)
    session = service.registry.open_session(body.user_metadata, body.display_name)
    return {"session_id": session.id, "type": "create_session"}


async def _heartbeat(request: web.Request, service: Service) -> Answer:
    body = await read_body(request, types.SessionHeartbeatRequest)
    service.registry.session(body.session_id)
    service.registry.note_alive(body.session_id)
    return {"type": "session_heartbeat"}


async def _list_sessions(request: web.Request, service: Service) -> Answer:
    sessions, cursor = _page(request, list(service.registry.sessions)[::-1])
    return {"sessions": sessions, "cursor": cursor}


async def _finish_session(request: web.Request, service: Service) -> None:
    reason = await read_field(request, "reason")
    kind = str(reason.get("type")) if isinstance(reason, dict) else "finished"
    service.finish_session(request.match_info["session"], kind)


async def _get_session(request: web.Request, service: Service) -> Answer:
    session = service.registry.session(request.match_info["session"])
    return {
        "training_run_ids": session.runs,
        "sampler_ids": session.samplers,
        "user_metadata": session.user_metadata,
        "display_name": session.display_name,
    }


async def _get_run(request: web.Request, service: Service) -> Answer:
    record = service.checkpoints.read_run(request.match_info["run"])
    return _run_json(service, record)


async def _list_runs(request: web.Request, service: Service) -> Answer:
    records, cursor = _page(request, service.checkpoints.runs())
    runs = [_run_json(service, record) for record in records]
    return {"training_runs": runs, "cursor": cursor}


async def _list_checkpoints(request: web.Request, service: Service) -> Answer:
    run_id = request.match_info["run"]
    service.checkpoints.read_run(run_id)
    checkpoints = service.checkpoints.listing(run_id)
    return {"checkpoints": [_checkpoint_json(service, *item) for item in checkpoints]}


async def _list_all_checkpoints(request: web.Request, service: Service) -> Answer:
    checkpoints, cursor = _page(request, service.checkpoints.listing())
    return {
        "checkpoints": [_checkpoint_json(service, *item) for item in checkpoints],
        "cursor": cursor,
    }


async def _delete_checkpoint(request: web.Request, service: Service) -> None:
    path = _path(request)
    service.checkpoints.delete(path)
    for model in service.models:
        await service.call(client_of(path.run_id), partial(model.sampled_weights.drop, path.uri))


async def _set_ttl(request: web.Request, service: Service) -> None:
    seconds = await read_field(request, "ttl_seconds")
    if seconds is not None and not isinstance(seconds, int):
        raise BadRequestError(f"ttl_seconds must be a whole number or null, got {seconds!r}")
    path = _path(request)
    await service.call(client_of(path.run_id), lambda: service.checkpoints.set_ttl(path, seconds))


async def _weights_info(request: web.Request, service: Service) -> Answer:
    uri = await read_field(request, "tinker_path")
    if not isinstance(uri, str):
        raise BadRequestError(f"tinker_path must be text, got {uri!r}")
    info = service.checkpoints.info(CheckpointPath.parse(uri))
    return {
        "base_model": info.base_model,
        "is_lora": True,
        "lora_rank": info.lora["rank"],
        **{name: on for name, on in info.lora.items() if name.startswith("train_")},
    }


def _path(request: web.Request) -> CheckpointPath:
    kind, _, name = request.match_info["checkpoint"].partition("/")
    return CheckpointPath(request.match_info["run"], kind, name)


def _page(request: web.Request, items: list[T]) -> tuple[list[T], dict[str, int]]:
    """Return the items that a request asks for, and their place among all."""
    page: dict[str, int] = {}
    for name, default, lowest in (("limit", 100, 1), ("offset", 0, 0)):
        text = request.query.get(name, str(default))
        if not (text.isascii() and text.isdigit() and len(text) < 19) or int(text) < lowest:
            raise BadRequestError(f"{name} must be a number of at least {lowest}, got {text!r}")
        page[name] = int(text)
    offset, limit = page["offset"], min(page["limit"], MAX_PAGE)
    cursor = {"offset": offset, "limit": limit, "total_count": len(items)}
    return items[offset : offset + limit], cursor


def _run_json(service: Service, record: dict[str, Any]) -> dict[str, Any]:
    run_id = record["training_run_id"]
    sound = [item for item in service.checkpoints.listing(run_id) if not item[1].damaged]
    last = {
        kind: next((_checkpoint_json(service, *i) for i in sound if i[0].kind == kind), None)
        for kind in KINDS
    }
    return {
        "training_run_id": run_id,
        "base_model": record["base_model"],
        "model_owner": "local",
        "is_lora": True,
        "lora_rank": record["lora"]["rank"],
        "last_request_time": sound[0][1].created if sound else record["created"],
        "last_checkpoint": last["weights"],
        "last_sampler_checkpoint": last["sampler_weights"],
        "user_metadata": record.get("user_metadata"),
    }


def _checkpoint_json(
    service: Service, path: CheckpointPath, info: CheckpointInfo
) -> dict[str, Any]:
    return {
        "checkpoint_id": f"{path.kind}/{path.name}",
        "checkpoint_type": KINDS[path.kind],
        "time": info.created,
        "tinker_path": path.uri,
        "size_bytes": service.checkpoints.size(path),
        "public": False,
        "user_metadata": info.user_metadata,
        "expires_at": info.expires,
    }


CHECKPOINT = "training_runs/{run}/checkpoints/{checkpoint:[^/]+/[^/]+}"
ROUTES: list[Route] = [
    ("POST", "client/config", _constant(**CLIENT_CONFIG)),
    ("POST", "client/dynamic_config", _constant(sample_cancel_enabled=True)),
    ("GET", "get_server_capabilities", _capabilities),
    ("GET", "healthz", _constant(status="ok")),
    ("GET", "status", _status),
    # Accepted because the SDK insists; nothing of it is read or kept.
    ("POST", "telemetry", _constant(status="accepted")),
    ("POST", "create_session", _create_session),
    ("POST", "session_heartbeat", _heartbeat),
    ("GET", "sessions", _list_sessions),
    ("POST", "sessions/{session}/finish", _finish_session),
    ("GET", "sessions/{session}", _get_session),
    ("GET", "training_runs", _list_runs),
    ("GET", "training_runs/{run}", _get_run),
    ("GET", "training_runs/{run}/checkpoints", _list_checkpoints),
    ("PUT", f"{CHECKPOINT}/ttl", _set_ttl),
    ("DELETE", CHECKPOINT, _delete_checkpoint),
    ("GET", "checkpoints", _list_all_checkpoints),
    ("POST", "weights_info", _weights_info),
]
