"""Routes of the Tinker API: sessions, training runs, sampling, results and checkpoints."""

import asyncio
import secrets
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from aiohttp import web
from tinker import types

from tokengym.agents.service.config import CHECKPOINT_SCHEME
from tokengym.agents.service.engine.adapters import LoraSpec
from tokengym.agents.service.engine.checkpoints import (
    KINDS,
    CheckpointInfo,
    CheckpointPath,
    checked_ttl,
)
from tokengym.agents.service.engine.compute_thread import Pieces, client_of
from tokengym.agents.service.engine.trainer import LossRequest
from tokengym.agents.service.errors import BadRequestError
from tokengym.agents.service.http.json_api import (
    CONTENT_BYTES,
    Answer,
    Handler,
    Route,
    read_body,
    read_bytes,
    read_field,
)
from tokengym.agents.service.http.wire import (
    loss_response,
    read_loss_message,
    read_loss_request,
    sample_request,
    sample_response,
)
from tokengym.agents.service.served_model import ServedModel
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
    return {"checkpoints": [_checkpoint_json(*item) for item in checkpoints]}


async def _list_all_checkpoints(request: web.Request, service: Service) -> Answer:
    checkpoints, cursor = _page(request, service.checkpoints.listing())
    return {"checkpoints": [_checkpoint_json(*item) for item in checkpoints], "cursor": cursor}


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
    sound = service.checkpoints.listing(run_id)
    last = {
        kind: next((_checkpoint_json(*i) for i in sound if i[0].kind == kind), None)
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


def _checkpoint_json(path: CheckpointPath, info: CheckpointInfo) -> dict[str, Any]:
    return {
        "checkpoint_id": f"{path.kind}/{path.name}",
        "checkpoint_type": KINDS[path.kind],
        "time": info.created,
        "tinker_path": path.uri,
        "size_bytes": info.nbytes,
        "public": False,
        "user_metadata": info.user_metadata,
        "expires_at": info.expires,
    }


DEFAULT_RANK = 32


async def _create_model(request: web.Request, service: Service) -> Answer:
    body = await read_body(request, types.CreateModelRequest)
    _check_optimizer(body.optimizer_config)
    lora = body.lora_config or types.LoraConfig(rank=DEFAULT_RANK)
    spec, model = LoraSpec(**lora.model_dump()), service.model(body.base_model)
    run_id = f"{body.session_id}:train:{body.model_seq_id}"
    request_id = service.create_run(run_id, body.session_id, model, spec, body.user_metadata)
    return {"request_id": request_id, "model_id": run_id}


async def _load_weights(request: web.Request, service: Service) -> Answer:
    body = await read_body(request, types.LoadWeightsRequest)
    _check_optimizer(body.optimizer_config)
    path = CheckpointPath.parse(body.path)
    if body.session_id is not None:
        run_id = f"{body.session_id}:train:{body.model_seq_id}"
        model, spec = service.model_of(path), LoraSpec(**service.checkpoints.info(path).lora)
        place = run_id, body.session_id, model, spec, body.user_metadata
        request_id = service.create_run(*place, path, optimizer=body.optimizer)
        return {"request_id": request_id, "model_id": run_id}
    if body.model_id is None:
        raise BadRequestError("load_weights needs model_id or session_id, got neither")
    run_id = body.model_id

    def work(model: ServedModel) -> dict[str, Any]:
        model.load(run_id, path, optimizer=body.optimizer)
        return {"path": path.uri, "model_id": run_id, "type": body.type}

    return {"request_id": service.train(run_id, body.seq_id, work), "model_id": run_id}


async def _get_info(request: web.Request, service: Service) -> Answer:
    body = await read_body(request, types.GetInfoRequest)
    record = service.registry.run(body.model_id)
    name = record.model.name
    config: Any = record.model.base_model.trained.config
    return {
        "type": body.type,
        "model_id": record.id,
        "model_name": name,
        "is_lora": True,
        "lora_rank": record.spec.rank,
        "model_data": {"arch": str(config.model_type), "model_name": name, "tokenizer_id": name},
    }


async def _forward_backward(request: web.Request, service: Service) -> Answer:
    body = await read_bytes(request)
    message = read_loss_message(body)
    run_id, seq_id = message.model_id, message.seq_id
    loss = read_loss_request(message)
    # The work holds the decoded request alone: the body is as large again.
    losses = partial(_losses, run_id, loss)
    request_id = service.train(run_id, seq_id, losses, nbytes=len(body))
    return {"request_id": request_id, "model_id": run_id}


def _losses(run_id: str, loss: LossRequest, model: ServedModel) -> Pieces[bytes]:
    return loss_response((yield from model.trainer.forward_backward(run_id, loss)))


def _in_turn(kind: type[Any], work: Callable[[Any, ServedModel], dict[str, Any]]) -> Handler:
    """Return a handler that runs `work` on its body and the run's model, when its turn comes."""

    async def handler(request: web.Request, service: Service) -> Answer:
        body = await read_body(request, kind)
        return {"request_id": service.train(body.model_id, body.seq_id, partial(work, body))}

    return handler


def _optim_step(body: types.OptimStepRequest, model: ServedModel) -> dict[str, Any]:
    params = body.optim_params
    if not isinstance(params, types.AdamParams):
        raise BadRequestError(
            f"optim_step takes AdamParams on the local service, got {params.type!r}"
        )
    return {"metrics": model.trainer.optim_step(body.model_id, params)}


def _save_weights(body: types.SaveWeightsRequest, model: ServedModel) -> dict[str, Any]:
    return _save(body, model, "weights", overwrite=body.overwrite)


async def _save_weights_for_sampler(request: web.Request, service: Service) -> Answer:
    body = await read_body(request, types.SaveWeightsForSamplerRequest)
    run_id, seq_id, sampler = body.model_id, body.seq_id, body.sampling_session_seq_id
    if body.path is None and sampler is not None:
        checked_ttl(body.ttl_seconds)
        return {"request_id": service.save_unnamed(run_id, seq_id, sampler)}
    # The SDK has no overwrite here, and the cookbook saves a name again when it resumes.
    work = partial(_save, body, kind="sampler_weights", overwrite=True)
    return {"request_id": service.train(run_id, seq_id, work)}


def _save(body: Any, model: ServedModel, kind: str, *, overwrite: bool) -> dict[str, Any]:
    """Save a run's weights under the name of a request, or under a random one if it has none."""
    name = secrets.token_hex(8) if body.path is None else body.path
    path = CheckpointPath(body.model_id, kind, name)
    model.save(path, body.ttl_seconds, body.user_metadata, overwrite=overwrite)
    return {"path": path.uri, "type": body.type}


async def _unload_model(request: web.Request, service: Service) -> Answer:
    body = await read_body(request, types.UnloadModelRequest)
    service.registry.run(body.model_id)

    async def work() -> dict[str, Any]:
        service.unload(body.model_id)
        return {"model_id": body.model_id, "type": body.type}

    return {"request_id": service.futures.add(work())}


def _check_optimizer(config: Any) -> None:
    kind = None if config is None else config.type
    if kind not in (None, "adamw"):
        raise BadRequestError(f"optimizer must be adamw on the local service, got {kind!r}")


# Below the 45 s after which the SDK gives a poll up.
POLL_S = 20.0
# A token id in JSON, with its comma and white space.
TOKEN_BYTES = 16


async def _create_sampling_session(request: web.Request, service: Service) -> Answer:
    body = await read_body(request, types.CreateSamplingSessionRequest)
    record = service.open_sampler(
        body.session_id, body.sampling_session_seq_id, body.base_model, body.model_path
    )
    return {"sampling_session_id": record.id, "type": "create_sampling_session"}


async def _get_sampler(request: web.Request, service: Service) -> Answer:
    record = service.registry.sampler(request.match_info["sampler"])
    path = record.weights if record.weights.startswith(CHECKPOINT_SCHEME) else None
    return {"sampler_id": record.id, "base_model": record.model.name, "model_path": path}


async def _sample(request: web.Request, service: Service) -> Answer:
    longest = max(model.base_model.context for model in service.models)
    # With the prompt come up to seven ids for each of its places.
    limit = CONTENT_BYTES + 8 * TOKEN_BYTES * longest
    body = await read_body(request, types.SampleRequest, limit)
    record = service.registry.sampler(body.sampling_session_id)
    checked = sample_request(body, record.weights, record.model.base_model)
    last = body.prompt_logprobs_last_n
    if last is not None and not (body.prompt_logprobs and 1 <= last < len(checked.prompt)):
        raise BadRequestError(
            f"prompt_logprobs_last_n must be 1 to {len(checked.prompt) - 1} and come with "
            f"prompt_logprobs, got {last}"
        )
    request_id = service.sample(record, checked, partial(sample_response, sent=body))
    ids = [f"{request_id}:{index}" for index in range(checked.count)]
    return {"request_id": request_id, "sample_sequence_ids": ids}


async def _retrieve(request: web.Request, service: Service) -> Answer:
    body = await read_body(request, types.FutureRetrieveRequest)
    future = service.futures.get(body.request_id)
    await asyncio.wait([future], timeout=POLL_S)
    if not future.done():
        waiting = {"type": "try_again", "request_id": body.request_id, "queue_state": "active"}
        return web.json_response(waiting, status=408)
    result: Answer | bytes = future.result()
    if isinstance(result, bytes):
        return web.Response(body=result, content_type="application/x-protobuf")
    return result


async def _cancel(request: web.Request, service: Service) -> None:
    request_id = await read_field(request, "request_id")
    if not isinstance(request_id, str):
        raise BadRequestError(f"request_id must be text, got {request_id!r}")
    service.cancel(request_id)


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
    ("POST", "create_model", _create_model),
    ("POST", "load_weights", _load_weights),
    ("POST", "get_info", _get_info),
    ("POST", "forward_backward", _forward_backward),
    ("POST", "optim_step", _in_turn(types.OptimStepRequest, _optim_step)),
    ("POST", "save_weights", _in_turn(types.SaveWeightsRequest, _save_weights)),
    ("POST", "save_weights_for_sampler", _save_weights_for_sampler),
    ("POST", "unload_model", _unload_model),
    ("POST", "create_sampling_session", _create_sampling_session),
    ("GET", "samplers/{sampler}", _get_sampler),
    ("POST", "asample", _sample),
    ("POST", "retrieve_future", _retrieve),
    ("POST", "cancel_future", _cancel),
]
