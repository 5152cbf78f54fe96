"""Fixtures: one tiny model and one service process for the whole session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import tinker
import torch

from tests.service.toy import make_model
from tokengym.agents.service import LocalService
from tokengym.agents.service.engine.base_model import BaseModel
from tokengym.agents.training.connection import KEY_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Two cores are shared with the service under test.
torch.set_num_threads(1)


# Calls that the SDK deprecates and the cookbook makes, and what torch says about its own insides.
FOREIGN = ["ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::UserWarning:torch"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tests/service/" in item.nodeid:
            for rule in FOREIGN:
                item.add_marker(pytest.mark.filterwarnings(rule))


@pytest.fixture(scope="session")
def model_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="session")
def base_model(model_dir: Path) -> BaseModel:
    """The same in this process; whoever trains it attaches an adapter of its own."""
    return BaseModel(model_dir, "cpu")


@pytest.fixture(scope="session")
def service(model_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalService]:
    state = tmp_path_factory.mktemp("state")
    with LocalService(model_dir, state_dir=state, threads=1) as running:
        yield running


@pytest.fixture(autouse=True)
def key_of_the_service(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let clients of a test find the key; what other tests of the process start must not see it."""
    if "service" in request.fixturenames:
        monkeypatch.setenv(KEY_VARIABLE, request.getfixturevalue("service").api_key)


@pytest.fixture(scope="session")
def client(service: LocalService) -> Any:
    return tinker.ServiceClient(base_url=service.base_url, api_key=service.api_key)


@pytest.fixture
def rest(service: LocalService) -> tinker.RestClient:
    return tinker.RestClient(base_url=service.base_url, api_key=service.api_key)


@pytest.fixture
def run(client: Any, service: LocalService) -> Any:
    """A fresh training client."""
    return client.create_lora_training_client(service.model_name, rank=8, seed=7).result()
