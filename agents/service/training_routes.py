"""Routes of training runs: create, load, forward_backward, optim_step and saving."""

from __future__ import annotations

import secrets
from functools import partial
from typing import TYPE_CHECKING, Any

from tinker import types

from tokengym.agents.service.adapters import LoraSpec
from tokengym.agents.service.checkpoints import CheckpointPath, expiry
from tokengym.agents.service.errors import BadRequestError, UnsupportedError
from tokengym.agents.service.handling import (
    Route,
    answer,
    promise,
    read,
    refused,
    service_of,
)
from tokengym.agents.service.trainer import AdamStep
from tokengym.agents.service.wire import loss_response, read_loss_request

if TYPE_CHECKING:
    from aiohttp import web

    from tokengym.agents.service.engine import Engine
    from tokengym.agents.service.trainer import LossRequest

DEFAULT_RANK = 32


async def _create_model(request: web.Request) -> web.StreamResponse:
    body = await read(request, types.CreateModelRequest)
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
    engine = service.engine(body.base_model)
    return promise(
        service.create_run(run_id, body.session_id, engine, spec, body.user_metadata),
        model_id=run_id,
    )


async def _load_weights(request: web.Request) -> web.StreamResponse:
    body = await read(request, types.LoadWeightsRequest)
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
        return promise(request_id, model_id=run_id)
    if body.model_id is None:
        raise BadRequestError("load_weights needs model_id or session_id, got neither")
    run_id = body.model_id

    def work(engine: Engine) -> dict[str, Any]:
        engine.load(run_id, path, optimizer=body.optimizer)
        return {"path": path.uri, "model_id": run_id, "type": "load_weights"}

    return promise(service.train(run_id, body.seq_id, work), model_id=run_id)


async def _get_info(request: web.Request) -> web.StreamResponse:
    body = await read(request, types.GetInfoRequest)
    record = service_of(request).registry.run(body.model_id)
    name = record.engine.backbone.name
    config: Any = record.engine.backbone.trained.config
    return answer(
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
    run_id, seq_id, loss = read_loss_request(await request.read())
    return promise(
        service_of(request).train(run_id, seq_id, partial(_losses, run_id, loss)), model_id=run_id
    )


def _losses(run_id: str, loss: LossRequest, engine: Engine) -> bytes:
    return loss_response(engine.trainer.forward_backward(run_id, loss))


async def _optim_step(request: web.Request) -> web.StreamResponse:
    body = await read(request, types.OptimStepRequest)
    params = body.optim_params

    def work(engine: Engine) -> dict[str, Any]:
        if not isinstance(params, types.AdamParams):
            raise UnsupportedError(
                f"optim_step takes AdamParams on the local service, got {params.type!r}"
            )
        step = AdamStep(**params.model_dump())
        return {"metrics": engine.trainer.optim_step(body.model_id, step)}

    return promise(service_of(request).train(body.model_id, body.seq_id, work))


async def _save_weights(request: web.Request) -> web.StreamResponse:
    body = await read(request, types.SaveWeightsRequest)

    def work(engine: Engine) -> dict[str, Any]:
        path = CheckpointPath(body.model_id, "weights", body.path or secrets.token_hex(8))
        uri = engine.save(
            path,
            ttl_seconds=body.ttl_seconds,
            overwrite=body.overwrite,
            user_metadata=body.user_metadata,
        )
        return {"path": uri, "type": "save_weights"}

    return promise(service_of(request).train(body.model_id, body.seq_id, work))


async def _save_weights_for_sampler(request: web.Request) -> web.StreamResponse:
    body = await read(request, types.SaveWeightsForSamplerRequest)
    service = service_of(request)
    if body.path is None and body.sampling_session_seq_id is not None:
        expiry(body.ttl_seconds)
        return promise(
            service.save_unnamed(body.model_id, body.seq_id, body.sampling_session_seq_id)
        )

    def work(engine: Engine) -> dict[str, Any]:
        name = body.path or secrets.token_hex(8)
        uri = engine.save(
            CheckpointPath(body.model_id, "sampler_weights", name),
            ttl_seconds=body.ttl_seconds,
            # The SDK has no overwrite here, and the cookbook saves a name again when it resumes.
            overwrite=True,
            user_metadata=body.user_metadata,
        )
        return {"path": uri, "type": "save_weights_for_sampler"}

    return promise(service.train(body.model_id, body.seq_id, work))


async def _save_weights_external(request: web.Request) -> web.StreamResponse:
    body = await read(request, types.SaveWeightsExternalRequest)

    def work(_engine: Engine) -> dict[str, Any]:
        raise UnsupportedError(
            "save_weights_external is not supported by the local service; use save_state"
        )

    # Refused in its turn and not at once, so that its number is not missing in the order.
    return promise(service_of(request).train(body.model_id, body.seq_id, work))


async def _unload_model(request: web.Request) -> web.StreamResponse:
    body = await read(request, types.UnloadModelRequest)
    service = service_of(request)
    service.registry.run(body.model_id)

    async def work() -> dict[str, Any]:
        service.unload(body.model_id)
        return {"model_id": body.model_id, "type": "unload_model"}

    return promise(service.promises.add(work()))


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
        refused(
            UnsupportedError(
                "losses are not uploaded to the local service; forward_backward_custom runs them "
                "in the client"
            )
        ),
    ),
]
