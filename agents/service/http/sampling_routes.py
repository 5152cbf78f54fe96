"""Routes for sampling and for retrieving results."""

import asyncio
from functools import partial

from aiohttp import web
from tinker import types

from tokengym.agents.service.config import CHECKPOINT_SCHEME
from tokengym.agents.service.errors import BadRequestError
from tokengym.agents.service.http.json_api import (
    JSON_BYTES,
    Answer,
    Route,
    pending,
    read_body,
    read_field,
)
from tokengym.agents.service.http.wire import sample_request, sample_response
from tokengym.agents.service.state.service import Service

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
    limit = JSON_BYTES + 8 * TOKEN_BYTES * longest
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
    return pending(request_id, sample_sequence_ids=ids)


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


ROUTES: list[Route] = [
    ("POST", "create_sampling_session", _create_sampling_session),
    ("GET", "samplers/{sampler}", _get_sampler),
    ("POST", "asample", _sample),
    ("POST", "retrieve_future", _retrieve),
    ("POST", "cancel_future", _cancel),
]
