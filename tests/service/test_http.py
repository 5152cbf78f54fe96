"""At the door: who gets in, what is refused and how, and what the REST client sees."""

from __future__ import annotations

import gzip
import json
import socket
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import psutil
import pytest
import tinker
from tinker.types import AdamParams, ModelInput

from tests.every import every
from tests.service.asking import TALK, ask, datum

if TYPE_CHECKING:
    from tokengym.agents.service import LocalService


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
            status, answer = ask(service, path, key=key)
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
        ("Host", "LOCALHOST:8000", 200),
        ("Origin", "https://evil.example", 403),
        ("Origin", "null", 403),
    ],
)
def test_pages_of_other_sites_are_refused_with_any_key(
    service: LocalService, header: str, value: str, status: int
) -> None:
    got, answer = ask(service, "healthz", headers={header: value})
    assert got == status
    if status == 403:
        assert repr(value) in answer["detail"]


@every(
    ("method", "path", "body", "status", "said"),
    [
        ("GET", "/api/v1/nothing", None, 404, "GET /api/v1/nothing is not offered"),
        ("POST", "/api/v1/create_model", b"{", 422, "Invalid JSON"),
        ("POST", "/api/v1/asample", b'{"surprise": 1}', 422, "Field required"),
        ("POST", "/api/v1/optim_step", b'{"model_id": "x", "adam_params": {"a": 1}}', 422, "adam"),
        ("POST", "/api/v1/forward_backward", b"\xff\xff\xff", 400, "ForwardBackwardRequest"),
        ("POST", "/api/v1/forward_backward", b"\n\x01x\x1a\x00", 404, "'x' is not held"),
        ("POST", "/api/v1/retrieve_future", b'{"request_id": "x"}', 404, "'x' is unknown"),
        ("POST", "/api/v1/session_heartbeat", b'{"session_id": "x"}', 404, "'x' is unknown"),
        ("POST", "/api/v1/weights_info", b'{"tinker_path": 5}', 400, "got 5"),
        ("POST", "/api/v1/weights_info", b"{", 400, "must be JSON"),
        ("GET", "/api/v1/training_runs?limit=%C2%B2", None, 400, "limit must be"),
        ("GET", "/api/v1/training_runs?limit=" + "9" * 5000, None, 400, "limit must be"),
        ("POST", "/api/v1/weights_info", b"[" * 30_000, 400, "must be JSON"),
        (
            "POST",
            "/api/v1/create_model",
            b'{"session_id": "x", "model_seq_id": 0, "base_model": "a\\u0000b"}',
            400,
            "got 'a\\x00b'",
        ),
        ("GET", "/api/v1/training_runs/%2e%2e%2fetc", None, 400, "must look like"),
        ("DELETE", "/api/v1/training_runs/a:train:0/checkpoints/weights/x", None, 404, "not exist"),
    ],
)
def test_what_cannot_be_answered_is_refused_with_a_detail(
    service: LocalService, method: str, path: str, body: bytes | None, status: int, said: str
) -> None:
    got, answer = ask(service, path, body, method)
    assert got == status
    assert said in answer["detail"]


def test_a_body_too_large_is_refused(service: LocalService) -> None:
    status, answer = ask(service, "telemetry", b"x")
    assert status == 200
    # It would be kept as long as the session.
    metadata = b'{"tags": [], "sdk_version": "0", "user_metadata": "' + b"x" * (1 << 15) + b'"}'
    for path, body, limit in (
        ("create_session", metadata, 1 << 15),
        ("forward_backward", bytes(65 << 20), 64 << 20),
    ):
        status, answer = ask(service, path, body)
        assert status == 413
        assert f"at most {limit} bytes" in answer["detail"]


def test_usual_text_is_kept(service: LocalService, rest: Any) -> None:
    note = {"note": "é" * 2000}
    body = {"tags": [], "sdk_version": "0", "user_metadata": note, "display_name": "run " * 50}
    status, answer = ask(service, "create_session", body)
    assert status == 200
    name = answer["session_id"]
    assert rest.get_session(name).result().user_metadata == note
    # The first reason stays; a session that never was is named.
    for reason in ("success", "errored"):
        assert ask(service, f"sessions/{name}/finish", {"reason": {"type": reason}})[0] == 204
    status, answer = ask(service, "sessions/nobody/finish", {})
    assert status == 404
    assert "'nobody' is unknown" in answer["detail"]


@pytest.mark.nightly
def test_compressed_bodies_are_refused_unread(service: LocalService) -> None:
    body = gzip.compress(bytes(1 << 29), 1)
    process = psutil.Process(service.pid)
    before = process.cpu_times().user
    for key, status in ((None, 401), ("", 400)):
        gzipped = {"Content-Encoding": "gzip"}
        got, answer = ask(service, "create_session", body, None, key, gzipped)
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


def test_saved_weights_can_be_sampled_by_another_client(service: LocalService, run: Any) -> None:
    run.forward_backward([datum(TALK)], "cross_entropy")
    run.optim_step(AdamParams(learning_rate=1e-2))
    path = run.save_weights_for_sampler("shared").result().path
    trained = run.forward([datum(TALK)], "cross_entropy").result().loss_fn_outputs[0]["logprobs"]
    other = tinker.ServiceClient(base_url=service.base_url, api_key=service.api_key)
    sampler = other.create_sampling_client(model_path=path).result()
    assert sampler.get_base_model() == service.model_name
    scored = sampler.compute_logprobs(ModelInput.from_ints(TALK)).result()
    assert scored[1:] == pytest.approx(trained.to_numpy().tolist(), abs=1e-4)
    other.close("success").result()
