"""Routes for training runs: create, load, forward_backward, optim_step and save."""

import secrets
from collections.abc import Callable
from functools import partial
from typing import Any

from aiohttp import web
from tinker import types

from tokengym.agents.service.engine.adapters import LoraSpec
from tokengym.agents.service.engine.checkpoints import CheckpointPath, checked_ttl
from tokengym.agents.service.engine.compute_thread import Pieces
from tokengym.agents.service.engine.trainer import LossRequest
from tokengym.agents.service.errors import BadRequestError, UnsupportedError
from tokengym.agents.service.http.json_api import (
    Answer,
    Handler,
    Route,
    pending,
    read_body,
    read_bytes,
)
from tokengym.agents.service.http.wire import loss_response, read_loss_message, read_loss_request
from tokengym.agents.service.served_model import ServedModel
from tokengym.agents.service.state.service import Service

DEFAULT_RANK = 32


async def _create_model(request: web.Request, service: Service) -> Answer:
    body = await read_body(request, types.CreateModelRequest)
    _check_optimizer(body.optimizer_config)
    lora = body.lora_config or types.LoraConfig(rank=DEFAULT_RANK)
    spec, model = LoraSpec(**lora.model_dump()), service.model(body.base_model)
    run_id = f"{body.session_id}:train:{body.model_seq_id}"
    request_id = service.create_run(run_id, body.session_id, model, spec, body.user_metadata)
    return pending(request_id, model_id=run_id)


async def _load_weights(request: web.Request, service: Service) -> Answer:
    body = await read_body(request, types.LoadWeightsRequest)
    _check_optimizer(body.optimizer_config)
    path = CheckpointPath.parse(body.path)
    if body.session_id is not None:
        run_id = f"{body.session_id}:train:{body.model_seq_id}"
        request_id = service.load_run(
            run_id, body.session_id, path, optimizer=body.optimizer, metadata=body.user_metadata
        )
        return pending(request_id, model_id=run_id)
    if body.model_id is None:
        raise BadRequestError("load_weights needs model_id or session_id, got neither")
    run_id = body.model_id

    def work(model: ServedModel) -> dict[str, Any]:
        model.load(run_id, path, optimizer=body.optimizer)
        return {"path": path.uri, "model_id": run_id, "type": body.type}

    return pending(service.train(run_id, body.seq_id, work), model_id=run_id)


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
        "model_data": {
            "arch": str(config.model_type),
            "model_name": name,
            "tokenizer_id": name,
        },
    }


async def _forward_backward(request: web.Request, service: Service) -> Answer:
    body = await read_bytes(request, service.config.max_body_bytes)
    message = read_loss_message(body)
    run_id, seq_id = message.model_id, message.seq_id
    loss = read_loss_request(message)
    # The work holds the decoded request alone: the body is as large again.
    losses = partial(_losses, run_id, loss)
    request_id = service.train(run_id, seq_id, losses, nbytes=len(body))
    return pending(request_id, model_id=run_id)


def _losses(run_id: str, loss: LossRequest, model: ServedModel) -> Pieces[bytes]:
    return loss_response((yield from model.trainer.forward_backward(run_id, loss)))


def _in_turn(kind: type[Any], work: Callable[[Any, ServedModel], dict[str, Any]]) -> Handler:
    """Return a handler that runs `work` on its body and the run's model, when its turn comes."""

    async def handler(request: web.Request, service: Service) -> Answer:
        body = await read_body(request, kind)
        return pending(service.train(body.model_id, body.seq_id, partial(work, body)))

    return handler


def _optim_step(body: types.OptimStepRequest, model: ServedModel) -> dict[str, Any]:
    params = body.optim_params
    if not isinstance(params, types.AdamParams):
        raise UnsupportedError(
            f"optim_step takes AdamParams on the local service, got {params.type!r}"
        )
    return {"metrics": model.trainer.optim_step(body.model_id, params)}


def _save_weights(body: types.SaveWeightsRequest, model: ServedModel) -> dict[str, Any]:
    return _save(body, model, "weights", overwrite=body.overwrite, user_metadata=body.user_metadata)


async def _save_weights_for_sampler(request: web.Request, service: Service) -> Answer:
    body = await read_body(request, types.SaveWeightsForSamplerRequest)
    run_id, seq_id, sampler = body.model_id, body.seq_id, body.sampling_session_seq_id
    if body.path is None and sampler is not None:
        checked_ttl(body.ttl_seconds)
        return pending(service.save_unnamed(run_id, seq_id, sampler))

    def work(model: ServedModel) -> dict[str, Any]:
        # The SDK has no overwrite here, and the cookbook saves a name again when it resumes.
        metadata = body.user_metadata
        return _save(body, model, "sampler_weights", overwrite=True, user_metadata=metadata)

    return pending(service.train(run_id, seq_id, work))


def _save(body: Any, model: ServedModel, kind: str, **options: Any) -> dict[str, Any]:
    """Save a run's weights under the name of a request, or under a random one if it has none."""
    name = secrets.token_hex(8) if body.path is None else body.path
    path = CheckpointPath(body.model_id, kind, name)
    uri = model.save(path, ttl_seconds=body.ttl_seconds, **options)
    return {"path": uri, "type": body.type}


async def _unload_model(request: web.Request, service: Service) -> Answer:
    body = await read_body(request, types.UnloadModelRequest)
    service.registry.run(body.model_id)

    async def work() -> dict[str, Any]:
        service.unload(body.model_id)
        return {"model_id": body.model_id, "type": body.type}

    return pending(service.futures.add(work()))


def _check_optimizer(config: Any) -> None:
    kind = None if config is None else config.type
    if kind not in (None, "adamw"):
        raise UnsupportedError(f"optimizer must be adamw on the local service, got {kind!r}")


ROUTES: list[Route] = [
    ("POST", "create_model", _create_model),
    ("POST", "load_weights", _load_weights),
    ("POST", "get_info", _get_info),
    ("POST", "forward_backward", _forward_backward),
    ("POST", "optim_step", _in_turn(types.OptimStepRequest, _optim_step)),
    ("POST", "save_weights", _in_turn(types.SaveWeightsRequest, _save_weights)),
    ("POST", "save_weights_for_sampler", _save_weights_for_sampler),
    ("POST", "unload_model", _unload_model),
]
