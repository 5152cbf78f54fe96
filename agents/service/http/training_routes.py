"""Routes for training runs: create, load, forward_backward, optim_step and save."""

from __future__ import annotations

import secrets
from functools import partial
from typing import TYPE_CHECKING, Any

from aiohttp import web
from tinker import types

from tokengym.agents.service.engine.adapters import LoraSpec
from tokengym.agents.service.engine.checkpoints import CheckpointPath, checked_ttl
from tokengym.agents.service.engine.external_weights import KIND, checked_recipients
from tokengym.agents.service.engine.trainer import AdamStep
from tokengym.agents.service.errors import BadRequestError, UnsupportedError
from tokengym.agents.service.http.json_api import (
    Route,
    pending,
    read_body,
    read_bytes,
    refuse,
    service_of,
)
from tokengym.agents.service.http.wire import loss_response, read_loss_request

if TYPE_CHECKING:
    from tokengym.agents.service.engine.trainer import LossRequest
    from tokengym.agents.service.served_model import ServedModel

DEFAULT_RANK = 32


async def _create_model(request: web.Request) -> web.StreamResponse:
    body = await read_body(request, types.CreateModelRequest)
    service = service_of(request)
    _check_optimizer(body.optimizer_config)
    lora = body.lora_config or types.LoraConfig(rank=DEFAULT_RANK)
    spec = LoraSpec(
        rank=lora.rank,
        train_attn=lora.train_attn,
        train_mlp=lora.train_mlp,
        train_unembed=lora.train_unembed,
        seed=lora.seed,
    )
    run_id = f"{body.session_id}:train:{body.model_seq_id}"
    model = service.model(body.base_model)
    return pending(
        service.create_run(run_id, body.session_id, model, spec, body.user_metadata),
        model_id=run_id,
    )


async def _load_weights(request: web.Request) -> web.StreamResponse:
    body = await read_body(request, types.LoadWeightsRequest)
    service = service_of(request)
    _check_optimizer(body.optimizer_config)
    path = CheckpointPath.parse(body.path)
    if body.session_id is not None:
        run_id = f"{body.session_id}:train:{body.model_seq_id}"
        request_id = service.load_run(
            run_id,
            body.session_id,
            path,
            optimizer=body.optimizer,
            metadata=body.user_metadata,
        )
        return pending(request_id, model_id=run_id)
    if body.model_id is None:
        raise BadRequestError("load_weights needs model_id or session_id, got neither")
    run_id = body.model_id

    def work(model: ServedModel) -> dict[str, Any]:
        model.load(run_id, path, optimizer=body.optimizer)
        return {"path": path.uri, "model_id": run_id, "type": "load_weights"}

    return pending(service.train(run_id, body.seq_id, work), model_id=run_id)


async def _get_info(request: web.Request) -> web.StreamResponse:
    body = await read_body(request, types.GetInfoRequest)
    record = service_of(request).registry.run(body.model_id)
    name = record.model.name
    config: Any = record.model.base_model.trained.config
    return web.json_response(
        {
            "type": "get_info",
            "model_id": record.id,
            "model_name": name,
            "is_lora": True,
            "lora_rank": record.rank,
            "model_data": {
                "arch": str(config.model_type),
                "model_name": name,
                "tokenizer_id": name,
            },
        }
    )


async def _forward_backward(request: web.Request) -> web.StreamResponse:
    run_id, seq_id, loss = read_loss_request(await _loss_body(request))
    return pending(
        service_of(request).train(run_id, seq_id, partial(_losses, run_id, loss)), model_id=run_id
    )


async def _loss_body(request: web.Request) -> bytes:
    return await read_bytes(request, service_of(request).config.max_body_bytes)


def _losses(run_id: str, loss: LossRequest, model: ServedModel) -> bytes:
    return loss_response(model.trainer.forward_backward(run_id, loss))


async def _optim_step(request: web.Request) -> web.StreamResponse:
    body = await read_body(request, types.OptimStepRequest)
    params = body.optim_params

    def work(model: ServedModel) -> dict[str, Any]:
        if not isinstance(params, types.AdamParams):
            raise UnsupportedError(
                f"optim_step takes AdamParams on the local service, got {params.type!r}"
            )
        step = AdamStep(**params.model_dump())
        return {"metrics": model.trainer.optim_step(body.model_id, step)}

    return pending(service_of(request).train(body.model_id, body.seq_id, work))


async def _save_weights(request: web.Request) -> web.StreamResponse:
    body = await read_body(request, types.SaveWeightsRequest)

    def work(model: ServedModel) -> dict[str, Any]:
        path = CheckpointPath(body.model_id, "weights", body.path or secrets.token_hex(8))
        uri = model.save(
            path,
            ttl_seconds=body.ttl_seconds,
            overwrite=body.overwrite,
            user_metadata=body.user_metadata,
        )
        return {"path": uri, "type": "save_weights"}

    return pending(service_of(request).train(body.model_id, body.seq_id, work))


async def _save_weights_for_sampler(request: web.Request) -> web.StreamResponse:
    body = await read_body(request, types.SaveWeightsForSamplerRequest)
    service = service_of(request)
    if body.path is None and body.sampling_session_seq_id is not None:
        checked_ttl(body.ttl_seconds)
        return pending(
            service.save_unnamed(body.model_id, body.seq_id, body.sampling_session_seq_id)
        )

    def work(model: ServedModel) -> dict[str, Any]:
        name = body.path or secrets.token_hex(8)
        uri = model.save(
            CheckpointPath(body.model_id, "sampler_weights", name),
            ttl_seconds=body.ttl_seconds,
            # The SDK has no overwrite here, and the cookbook saves a name again when it resumes.
            overwrite=True,
            user_metadata=body.user_metadata,
        )
        return {"path": uri, "type": "save_weights_for_sampler"}

    return pending(service.train(body.model_id, body.seq_id, work))


async def _save_weights_external(request: web.Request) -> web.StreamResponse:
    body = await read_body(request, types.SaveWeightsExternalRequest)

    def work(model: ServedModel) -> dict[str, Any]:
        uri = model.save(
            CheckpointPath(body.model_id, KIND, body.path),
            ttl_seconds=body.ttl_seconds,
            # As for the sampler's.
            overwrite=True,
            recipients=checked_recipients(body.age_encryption_recipients),
        )
        return {"path": uri, "type": "save_weights_external"}

    return pending(service_of(request).train(body.model_id, body.seq_id, work))


async def _unload_model(request: web.Request) -> web.StreamResponse:
    body = await read_body(request, types.UnloadModelRequest)
    service = service_of(request)
    service.registry.run(body.model_id)

    async def work() -> dict[str, Any]:
        service.unload(body.model_id)
        return {"model_id": body.model_id, "type": "unload_model"}

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
    ("POST", "optim_step", _optim_step),
    ("POST", "save_weights", _save_weights),
    ("POST", "save_weights_for_sampler", _save_weights_for_sampler),
    ("POST", "unload_model", _unload_model),
    ("POST", "save_weights_external", _save_weights_external),
    (
        "POST",
        "create_custom_loss",
        refuse(
            UnsupportedError(
                "losses are not uploaded to the local service; forward_backward_custom runs them "
                "in the client"
            )
        ),
    ),
]
