"""What tests send to a service: raw requests, and data to train on."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

from tinker.types import Datum, ModelInput

if TYPE_CHECKING:
    from tokengym.agents.service import LocalService

TALK = list(range(60, 90))


def ask(
    service: LocalService,
    path: str,
    body: Any = None,
    method: str | None = None,
    key: str | None = "",
    headers: dict[str, str] | None = None,
) -> tuple[int, Any]:
    """The status and the answer to a body, JSON unless it is bytes; with the key unless another."""
    data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
    sent = {"Content-Type": "application/json", **(headers or {})}
    if key is not None:
        sent["X-API-Key"] = key or service.api_key
    url = service.base_url + (path if path.startswith("/") else f"/api/v1/{path}")
    request = urllib.request.Request(url, data, sent, method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            status, answer = response.status, response.read()
    except urllib.error.HTTPError as error:
        with error:
            status, answer = error.code, error.read()
    try:
        return status, json.loads(answer or b"null")
    except ValueError:
        return status, answer


def status(service: LocalService) -> Any:
    """What a service counts."""
    return ask(service, "status")[1]


def datum(tokens: list[int], weights: list[float] | None = None, **more: Any) -> Datum:
    """A sequence to learn, each token with the weight 1 unless given."""
    inputs = {"target_tokens": tokens[1:], "weights": weights or [1.0] * (len(tokens) - 1)}
    return Datum(model_input=ModelInput.from_ints(tokens[:-1]), loss_fn_inputs={**inputs, **more})
