"""What a request says over HTTP is what sampler and trainer do; a refused one costs nothing."""

from __future__ import annotations

import json
import time
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import tinker
from tinker.proto import tinker_public_pb2 as pb
from tinker.types import AdamParams, Datum, ModelInput, SamplingParams

from tests.every import every
from tests.service.asking import TALK, ask, datum, status
from tests.service.toy import sampler_with
from tokengym.agents.service.config import ServiceConfig
from tokengym.agents.service.generation.jobs import SampleRequest, SampleResult
from tokengym.agents.service.generation.sampled_weights import BASE
from tokengym.agents.service.state.service import Service

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tokengym.agents.service import LocalService
    from tokengym.agents.service.engine.base_model import BaseModel

PROMPT = list(range(60, 72))


def _logprobs(run: Any) -> list[float]:
    output = run.forward([datum(TALK)], "cross_entropy").result().loss_fn_outputs[0]
    return list(output["logprobs"].to_numpy().tolist())


def _loss_body(run_id: str, number: int) -> bytes:
    message = pb.ForwardBackwardRequest(model_id=run_id, seq_id=number, loss_fn="cross_entropy")
    datum = message.data.add()
    tokens = np.array(TALK[:-1], np.int32).tobytes()
    datum.model_input.add().encoded_text.tokens = tokens
    tensor = datum.loss_fn_inputs["target_tokens"]
    tensor.dtype, tensor.dense = pb.DTYPE_INT64, np.array(TALK[1:], np.int64).tobytes()
    tensor.shape.append(29)
    return bytes(message.SerializeToString())


def _wrong_dtype(run_id: str, number: int) -> bytes:
    message: Any = pb.ForwardBackwardRequest.FromString(_loss_body(run_id, number))
    message.data[0].loss_fn_inputs["target_tokens"].dtype = 99
    return bytes(message.SerializeToString())


def _picture(run_id: str, number: int) -> bytes:
    message = pb.ForwardBackwardRequest.FromString(_loss_body(run_id, number))
    message.data[0].model_input.add().image.data = b"png"
    return bytes(message.SerializeToString())


def _sent(**fields: Any) -> Any:
    return lambda run_id, number: {"model_id": run_id, "seq_id": number, **fields}


REFUSED: dict[str, tuple[str, Any]] = {
    "a loss of another dtype": ("forward_backward", _wrong_dtype),
    "a loss of pictures": ("forward_backward", _picture),
    "a loss that is cut": ("forward_backward", lambda *at: _loss_body(*at) + b"\xff"),
    "an unknown field": ("optim_step", _sent(adam_params={}, surprise=1)),
    "half a body": ("optim_step", lambda *at: json.dumps(_sent(adam_params={})(*at)).encode()[:-2]),
    "a megabyte of text": ("save_weights", _sent(user_metadata={"note": "x" * (1 << 20)})),
    "a short life": ("save_weights_for_sampler", _sent(sampling_session_seq_id=1, ttl_seconds=5)),
    "another optimizer": (
        "load_weights",
        _sent(path="x", optimizer=True, optimizer_config={"type": "dimuon"}),
    ),
}


@every("kind", REFUSED)
def test_the_one_after_a_refused_request_does_not_wait(
    service: LocalService, run: Any, kind: str
) -> None:
    path, make = REFUSED[kind]
    number = 2 * list(REFUSED).index(kind) + 1
    began = time.monotonic()
    code, answer = ask(service, path, make(run.model_id, number))
    assert code in (400, 413, 422)
    assert answer["detail"]
    code, answer = ask(service, "forward_backward", _loss_body(run.model_id, number + 1))
    assert code == 200
    body = {"request_id": answer["request_id"]}
    assert ask(service, "retrieve_future", body)[0] == 200
    assert time.monotonic() - began < 6.0


def test_refused_requests_change_no_step(run: Any, client: Any, service: LocalService) -> None:
    clean = client.create_lora_training_client(service.model_name, rank=8, seed=7).result()
    mask = {"logprobs": [0.0] * 29, "advantages": [1.0] * 29}
    plain = Datum(
        model_input=ModelInput.from_ints(TALK[:-1]),
        loss_fn_inputs={"target_tokens": TALK[1:], **mask},
    )
    masked = Datum(
        model_input=ModelInput.from_ints(TALK[:-1]),
        loss_fn_inputs={"target_tokens": TALK[1:], **mask, "sequence_ratio_mask": [1.0] * 29},
    )
    losses: list[tuple[list[Datum], Any, str]] = [
        # This one fails in the middle of the computation.
        ([masked, plain], "gspo", "sequence_ratio_mask must be in every datum"),
        ([datum(TALK, advantages=[1.0] * 29)], "cross_entropy", "got 'advantages'"),
        ([datum(TALK)], "no_such_loss", "loss_fn must be one of"),
        ([datum(TALK)], "ppo", "ppo needs logprobs"),
        ([datum([1, 2, 999])], "cross_entropy", "datum 0: target_tokens must be token ids below"),
        ([datum([1, -2, 3])], "cross_entropy", "datum 0: model_input must be token ids"),
        ([datum([5] * 300)], "cross_entropy", "1 to 256 tokens, got 299"),
    ]
    refusals: list[tuple[Callable[[], Any], str]] = [
        *((partial(run.forward_backward, data, loss), said) for data, loss, said in losses),
        (lambda: run.optim_step(AdamParams(beta1=2.0)), "beta1 must be from"),
        (lambda: run.save_state("a name/that is none"), "checkpoint name must be"),
    ]
    norms: list[list[float]] = [[], []]
    for _ in range(2):
        for at, one in enumerate((run, clean)):
            one.forward_backward([datum(TALK)], "cross_entropy").result()
            for refused, said in refusals if one is run else ():
                with pytest.raises(tinker.RequestFailedError, match=said) as caught:
                    refused().result()
                assert caught.value.category == tinker.types.RequestErrorCategory.User
            one.forward_backward([datum(TALK)], "cross_entropy").result()
            step = one.optim_step(AdamParams(learning_rate=1e-2)).result()
            norms[at].append(step.metrics["optim/grad_norm"])
    assert norms[0] == norms[1]
    assert _logprobs(run) == _logprobs(clean)


def test_nothing_is_left_of_a_session_that_has_ended(service: LocalService) -> None:
    deadline = time.monotonic() + 20  # until nothing of an earlier test runs
    while status(service)["bytes_of_requests"] and time.monotonic() < deadline:
        time.sleep(0.05)
    before = status(service)
    own = tinker.ServiceClient(base_url=service.base_url, api_key=service.api_key)
    for _ in range(2):
        run = own.create_lora_training_client(service.model_name, rank=16).result()
        run.forward_backward([datum(TALK)], "cross_entropy").result()
        run.optim_step(AdamParams()).result()
        sampler = run.save_weights_and_get_sampling_client().result()
        sampler.sample(ModelInput.from_ints(PROMPT), 2, SamplingParams(max_tokens=4)).result()
    during = status(service)
    for count in ("sessions", "samplers", "training_runs", "bytes_of_runs", "bytes_of_files"):
        assert during[count] > before[count]
    own.close("success").result()
    deadline = time.monotonic() + 20
    while status(service) != before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert status(service) == before


def test_many_samplers_of_a_session_have_one_share(model_dir: Path, tmp_path: Path) -> None:
    import asyncio

    async def play() -> set[str]:
        config = ServiceConfig(models=(model_dir,), state_dir=tmp_path, memory=0.1, threads=1)
        service = Service(config)
        (model,), waiting = service.models, set()
        for count in (1, 16):
            session = service.registry.open_session(None, None)
            for number in range(count):
                record = service.open_sampler(session.id, number, model.name, None)
                request = SampleRequest(
                    BASE, np.array(PROMPT, np.int32), 1, SamplingParams(seed=1), 4, frozenset()
                )
                service.sample(record, request, lambda _: b"")
            waiting.add(session.id)
        # What the compute thread would do first.
        service.compute._run_callbacks()
        assert set(model.sampler.waiting()) == waiting
        return waiting

    assert len(asyncio.run(play())) == 2


@pytest.mark.nightly
def test_a_stop_string_of_any_length_is_seen(base_model: BaseModel) -> None:
    sampler = sampler_with(base_model, 1 << 20)
    request = partial(
        SampleRequest, BASE, np.array(PROMPT, np.int32), 1, SamplingParams(seed=3), 90
    )

    def play(*stops: str) -> list[int]:
        future: Future[SampleResult] = Future()
        sampler.submit(request(frozenset(), stops), future)
        while sampler.busy:
            sampler.step()
        return future.result().sequences[0].tokens.tolist()

    whole = play()
    assert len(whole) == 90
    for length in (1, 70):
        # This sampler's text is its list of tokens.
        stop = ", ".join(map(str, whole[10 : 10 + length]))
        assert play(stop) == whole[: 10 + length]
