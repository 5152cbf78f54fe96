"""No text of the wire is long, whatever field it is in: what many requests send is kept."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import psutil
import pytest
import tinker

from tests.every import every
from tests.service.test_contract import LONG, _post
from tokengym.agents.service.http import (
    openai_routes,
    rest_routes,
    sampling_routes,
    training_routes,
)
from tokengym.agents.service.http.json_api import CONTENTS, FIELD_BYTES
from tokengym.agents.service.http.openai_api import ChatRequest, CompletionRequest

if TYPE_CHECKING:
    from tokengym.agents.service import LocalService

CONSTANT = {"client/config", "client/dynamic_config", "telemetry", "forward_backward"}


def _routes() -> list[tuple[str, str]]:
    tables = {
        "/api/v1/": rest_routes.ROUTES + sampling_routes.ROUTES + training_routes.ROUTES,
        "/v1/": openai_routes.ROUTES,
    }
    return [
        (prefix, path.replace("{session}", "s"))
        for prefix, routes in tables.items()
        for method, path, _ in routes
        if method == "POST" and path not in CONSTANT
    ]


def _fields() -> set[str]:
    models = [getattr(tinker.types, name) for name in dir(tinker.types) if name.endswith("Request")]
    wire = [model for model in models if hasattr(model, "model_fields")]
    assert len(wire) > 15
    return {
        name for model in (*wire, ChatRequest, CompletionRequest) for name in model.model_fields
    }


@pytest.mark.nightly
@every(("prefix", "path"), _routes())
def test_no_text_of_the_wire_is_long(service: LocalService, prefix: str, path: str) -> None:
    assert {"user_metadata", "display_name", "user", "reason", "tags"} <= _fields() | {"reason"}
    values = [LONG, [LONG], {"a": LONG}, {LONG: 1}, [1] * FIELD_BYTES, {"a": {"b": "é" * 5000}}]
    for at, name in enumerate(sorted({*_fields(), "reason", "anything"} - CONTENTS)):
        status, answer = _post(service, path, {name: values[at % len(values)]}, prefix)
        assert status == 400
        assert f"{name} must have at most {FIELD_BYTES} bytes, got" in json.loads(answer)["detail"]
    status, answer = _post(service, path, {LONG: 1}, prefix)
    assert status == 400
    assert len(answer) < 3000


@pytest.mark.nightly
def test_a_megabyte_in_each_of_many_requests_leaves_nothing(service: LocalService) -> None:
    process = psutil.Process(service.pid)
    text = "y" * 1_000_000
    bodies = [
        ("create_session", {"tags": [], "sdk_version": "0", "user_metadata": {"note": text}}),
        ("create_session", {"tags": [text], "sdk_version": "0", "user_metadata": None}),
        ("sessions/none/finish", {"reason": {"type": text}}),
        ("retrieve_future", {"request_id": text}),
    ]

    def play(times: int) -> int:
        for _ in range(times):
            for path, body in bodies:
                assert _post(service, path, body)[0] == 400
        return int(process.memory_info().rss)

    assert play(20) - play(5) < 16 << 20


def test_usual_text_is_kept(service: LocalService) -> None:
    note = {"note": "é" * 2000}
    body = {"tags": [], "sdk_version": "0", "user_metadata": note, "display_name": "run " * 50}
    status, answer = _post(service, "create_session", body)
    assert status == 200
    name = json.loads(answer)["session_id"]
    rest = tinker.RestClient(base_url=service.base_url, api_key=service.api_key)
    assert rest.get_session(name).result().user_metadata == note
    assert _post(service, f"sessions/{name}/finish", {"reason": {"type": "success"}})[0] == 204
    # The first reason stays; a session that never was is named.
    assert _post(service, f"sessions/{name}/finish", {"reason": {"type": "errored"}})[0] == 204
    status, answer = _post(service, "sessions/nobody/finish", {})
    assert status == 404
    assert "'nobody' is unknown" in json.loads(answer)["detail"]
