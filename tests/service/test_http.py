"""At the door: who gets in, what is refused and how, and what the REST client sees."""

from __future__ import annotations

import base64
import gzip
import json
import socket
import time
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import psutil
import pytest
import tinker
from tinker.types import AdamParams, Datum, ModelInput

from tests.every import every

if TYPE_CHECKING:
    from tokengym.agents.service import LocalService


def _request(
    service: LocalService,
    method: str,
    path: str,
    body: bytes | None = None,
    key: str | None = "",
    headers: dict[str, str] | None = None,
) -> tuple[int, Any]:
    headers = {"Content-Type": "application/json", **(headers or {})}
    if key is not None:
        headers["X-API-Key"] = key or service.api_key
    request = urllib.request.Request(
        f"{service.base_url}{path}", data=body, headers=headers, method=method
    )
    try:
        with urllib.request.urlopen(request, timeout=20) as response:
            return response.status, json.loads(response.read() or b"null")
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


def _connected(service: LocalService) -> socket.socket:
    place = urlsplit(service.base_url)
    assert place.hostname
    assert place.port
    return socket.create_connection((place.hostname, place.port), timeout=20)


def test_without_the_key_nothing_is_answered(service: LocalService) -> None:
    for key in (None, "tml-wrong", service.api_key + "x", service.api_key[:-1], "tml-ключ"):
        if key is not None and not key.isascii():
            continue
        for path in ("/api/v1/healthz", "/api/v1/status", "/anything"):
            status, answer = _request(service, "GET", path, key=key)
            assert status == 401
            assert "X-API-Key must be the key" in answer["detail"]
            assert service.api_key not in json.dumps(answer)


def test_a_key_that_is_not_text_is_a_wrong_key(service: LocalService) -> None:
    with _connected(service) as connection:
        connection.sendall(b"GET /api/v1/healthz HTTP/1.1\r\nHost: localhost\r\n")
        connection.sendall(b"X-API-Key: \xff\xfe\r\n\r\n")
        assert connection.recv(1000).startswith(b"HTTP/1.1 401 ")


@pytest.mark.parametrize(
    ("header", "value", "status"),
    [
        ("Host", "evil.example:8000", 403),
        ("Host", "127.0.0.1.evil.example", 403),
        ("Host", "[", 403),
        ("Host", "LOCALHOST:8000", 200),
        ("Host", "[::1]:8000", 200),
        ("Origin", "https://evil.example", 403),
        ("Origin", "null", 403),
        ("Origin", "http://[", 403),
    ],
)
def test_pages_of_other_sites_are_refused_with_any_key(
    service: LocalService, header: str, value: str, status: int
) -> None:
    got, answer = _request(service, "GET", "/api/v1/healthz", headers={header: value})
    assert got == status
    if status == 403:
        assert repr(value) in answer["detail"]


def test_the_sdk_shows_a_wrong_key_as_such(service: LocalService) -> None:
    wrong = tinker.ServiceClient(base_url=service.base_url, api_key="tml-some-other-key")
    with pytest.raises(tinker.AuthenticationError, match="X-API-Key must be the key"):
        wrong.get_server_capabilities()


@every(
    ("method", "path", "body", "status", "said"),
    [
        ("GET", "/api/v1/nothing", None, 404, "GET /api/v1/nothing is not offered"),
        ("GET", "/", None, 404, "not offered"),
        ("DELETE", "/api/v1/healthz", None, 404, "DELETE /api/v1/healthz is not"),
        ("POST", "/api/v1/create_model", b"{", 422, "Invalid JSON"),
        ("POST", "/api/v1/create_model", b"[]", 422, "got"),
        ("POST", "/api/v1/create_model", b"", 422, "EOF"),
        ("POST", "/api/v1/asample", b'{"surprise": 1}', 422, "Field required"),
        ("POST", "/api/v1/optim_step", b'{"model_id": "x", "adam_params": {"a": 1}}', 422, "adam"),
        ("POST", "/api/v1/forward_backward", b"\xff\xff\xff", 400, "ForwardBackwardRequest"),
        ("POST", "/api/v1/forward_backward", b"", 400, "needs a model_id"),
        ("POST", "/api/v1/forward_backward", b"\n\x01x\x1a\x00", 404, "'x' is not held"),
        ("POST", "/api/v1/retrieve_future", b'{"request_id": "x"}', 404, "'x' is unknown"),
        ("POST", "/api/v1/get_info", b'{"model_id": "x"}', 404, "'x' is not held"),
        ("POST", "/api/v1/session_heartbeat", b'{"session_id": "x"}', 404, "'x' is unknown"),
        ("POST", "/api/v1/weights_info", b'{"tinker_path": 5}', 400, "got 5"),
        ("POST", "/api/v1/weights_info", b"{", 400, "must be JSON"),
        ("GET", "/api/v1/training_runs?limit=-3", None, 400, "limit must be"),
        ("GET", "/api/v1/training_runs?limit=%C2%B2", None, 400, "limit must be"),
        ("GET", "/api/v1/training_runs?limit=" + "9" * 5000, None, 400, "limit must be"),
        ("POST", "/api/v1/weights_info", b"[" * 200_000, 400, "must be JSON"),
        ("POST", "/api/v1/weights_info", b'"\xff"', 400, "must be JSON"),
        (
            "POST",
            "/api/v1/create_model",
            b'{"session_id": "x", "model_seq_id": 0, "base_model": "a\\u0000b"}',
            400,
            "got 'a\\x00b'",
        ),
        ("GET", "/api/v1/training_runs/..", None, 400, "'..'"),
        ("GET", "/api/v1/training_runs/%2e%2e%2fetc", None, 400, "must look like"),
        ("DELETE", "/api/v1/training_runs/a:train:0/checkpoints/weights/x", None, 404, "not exist"),
    ],
)
def test_what_cannot_be_answered_is_refused_with_a_detail(
    service: LocalService, method: str, path: str, body: bytes | None, status: int, said: str
) -> None:
    got, answer = _request(service, method, path, body)
    assert got == status
    assert said in answer["detail"]


def test_a_body_too_large_is_refused(service: LocalService) -> None:
    status, answer = _request(service, "POST", "/api/v1/telemetry", b"x")
    assert status == 200
    # Parsed, these lists would take 100 MB, and 60 MiB of them 1.5 GB.
    metadata = b'{"tags": [], "sdk_version": "0", "user_metadata": [' + b"[]," * (1 << 20) + b"[]]}"
    for path, body, limit in (
        ("create_session", metadata, 1 << 20),
        ("forward_backward", bytes(65 << 20), 64 << 20),
    ):
        status, answer = _request(service, "POST", f"/api/v1/{path}", body)
        assert status == 413
        assert f"at most {limit} bytes" in answer["detail"]


@pytest.mark.nightly
def test_compressed_bodies_are_refused_unread(service: LocalService) -> None:
    body = gzip.compress(bytes(1 << 29), 1)
    process = psutil.Process(service.pid)
    before = process.cpu_times().user
    for key, status in ((None, 401), ("", 400)):
        got, answer = _request(
            service, "POST", "/api/v1/create_session", body, key, {"Content-Encoding": "gzip"}
        )
        assert got == status
    assert "not compressed on the local service, got 'gzip'" in answer["detail"]
    time.sleep(0.5)  # What is left of a body is read after the answer.
    # To uncompress half a GiB twice takes .4 s.
    assert process.cpu_times().user - before < 0.2


def test_checkpoints_are_listed_described_and_deleted(
    service: LocalService, rest: Any, run: Any
) -> None:
    state = run.save_state("one", ttl_seconds=7200, user_metadata={"note": "x"}).result().path
    sampler = run.save_weights_for_sampler("two").result().path
    with pytest.raises(tinker.RequestFailedError, match="must be new unless overwrite"):
        run.save_state("one").result()
    run.save_state("one", overwrite=True, ttl_seconds=7200).result()

    listed = rest.list_checkpoints(run.model_id).result().checkpoints
    assert {(c.checkpoint_id, c.checkpoint_type) for c in listed} == {
        ("weights/one", "training"),
        ("sampler_weights/two", "sampler"),
    }
    assert {c.tinker_path for c in listed} == {state, sampler}
    assert all(c.size_bytes and c.size_bytes > 1000 for c in listed)
    assert state in {c.tinker_path for c in rest.list_user_checkpoints().result().checkpoints}

    found = rest.get_training_run(run.model_id).result()
    assert found == rest.get_training_run_by_tinker_path(state).result()
    assert (found.base_model, found.lora_rank) == (service.model_name, 8)
    assert found.last_checkpoint
    assert found.last_checkpoint.expires_at is not None
    rest.set_checkpoint_ttl_from_tinker_path(state, None).result()
    assert rest.get_training_run(run.model_id).result().last_checkpoint.expires_at is None
    weights = rest.get_weights_info_by_tinker_path(state).result()
    assert (weights.base_model, weights.lora_rank) == (service.model_name, 8)

    runs = rest.list_training_runs(limit=5).result()
    assert run.model_id in {r.training_run_id for r in runs.training_runs}
    assert len(runs.training_runs) <= 5 <= 5 + runs.cursor.total_count

    rest.delete_checkpoint_from_tinker_path(sampler).result()
    left = rest.list_checkpoints(run.model_id).result().checkpoints
    assert [c.checkpoint_id for c in left] == ["weights/one"]
    with pytest.raises(tinker.NotFoundError, match="does not exist"):
        rest.delete_checkpoint_from_tinker_path(sampler).result()
    with pytest.raises(tinker.NotFoundError, match="publish is not offered by the local service"):
        rest.publish_checkpoint_from_tinker_path(state).result()


def test_capabilities_name_the_model_and_its_context(service: LocalService, rest: Any) -> None:
    (model,) = rest.get_server_capabilities().result().supported_models
    assert (model.model_name, model.max_context_length) == (service.model_name, 256)
    assert model.trainable
    assert model.sampleable


def test_the_tokenizer_is_found_by_every_client(
    client: Any, run: Any, service: LocalService
) -> None:
    from tinker_cookbook.tokenizer_utils import get_tokenizer

    base = client.create_sampling_client(base_model=service.model_name).result()
    trained = run.save_weights_and_get_sampling_client().result()
    ids = get_tokenizer(service.model_name).encode("the price")
    for holder in (run, base, trained):
        assert holder.get_tokenizer().encode("the price") == ids


def test_finishing_a_session_frees_what_it_owned(service: LocalService, rest: Any) -> None:
    before = _request(service, "GET", "/api/v1/status")[1]
    own = tinker.ServiceClient(base_url=service.base_url, api_key=service.api_key)
    run = own.create_lora_training_client(service.model_name, rank=4).result()
    sampler = run.save_weights_and_get_sampling_client().result()
    session = rest.get_session(run.model_id.split(":")[0]).result()
    assert session.training_run_ids == [run.model_id]
    during = _request(service, "GET", "/api/v1/status")[1]
    assert during["sessions"] == before["sessions"] + 1
    runs = [status["models"][0]["training_runs"] for status in (before, during)]
    assert runs[1] == runs[0] + 1
    own.close("success").result()
    other = tinker.ServiceClient(base_url=service.base_url, api_key=service.api_key)
    other.create_lora_training_client(service.model_name, rank=1).result()
    after = _request(service, "GET", "/api/v1/status")[1]
    assert after["sessions"] == before["sessions"] + 1
    assert after["samplers"] == before["samplers"]
    assert after["models"][0]["training_runs"] == runs[0] + 1
    held = sampler.get_sampler_handle()
    name = json.loads(base64.urlsafe_b64decode(held))["sampling_session_id"]
    assert _request(service, "GET", f"/api/v1/samplers/{name}")[0] == 404
    other.close("success").result()


def test_saved_weights_can_be_sampled_by_another_client(service: LocalService, run: Any) -> None:
    tokens = list(range(60, 80))
    datum = Datum(
        model_input=ModelInput.from_ints(tokens[:-1]),
        loss_fn_inputs={"target_tokens": tokens[1:], "weights": [1.0] * 19},
    )
    run.forward_backward([datum], "cross_entropy")
    run.optim_step(AdamParams(learning_rate=1e-2))
    path = run.save_weights_for_sampler("shared").result().path
    trained = run.forward([datum], "cross_entropy").result().loss_fn_outputs[0]["logprobs"]
    other = tinker.ServiceClient(base_url=service.base_url, api_key=service.api_key)
    sampler = other.create_sampling_client(model_path=path).result()
    assert sampler.get_base_model() == service.model_name
    scored = sampler.compute_logprobs(ModelInput.from_ints(tokens)).result()
    assert scored[1:] == pytest.approx(trained.to_numpy().tolist(), abs=1e-4)
    other.close("success").result()
