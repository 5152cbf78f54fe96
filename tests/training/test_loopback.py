"""Laws of servers on this machine: no proxy is asked for them, and IPv6 will do."""

import asyncio
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import httpx
import pytest

from tests.evaluation.endpoint_server import Endpoint, serving
from tokengym.agents.evaluation.config import EvaluationConfig
from tokengym.agents.evaluation.folder import EvaluationFolder
from tokengym.agents.evaluation.run import run_evaluation
from tokengym.agents.service import LocalService
from tokengym.agents.training.connection import Connection, ServiceTarget
from tokengym.agents.training.policy_trainer import service_session
from tokengym.loopback import LocalServer, bypass_proxies

VARIABLES = ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")
pytestmark = pytest.mark.filterwarnings("ignore")  # calls that the SDK deprecates
CLOSED = 9
"""A port on which nothing listens."""


class Proxy(BaseHTTPRequestHandler):
    """Notes what it is asked for, and has none of it."""

    asked: list[str]

    def answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        # Sessions that earlier tests left open report to their own services at any time.
        if not self.path.endswith("/api/v1/telemetry"):
            self.asked.append(self.path)
        self.send_error(404)

    do_GET = do_POST = answer

    def log_message(self, format: str, *args: object) -> None:
        """Be silent."""


@pytest.fixture
def asked() -> list[str]:
    """What the proxy was asked for."""
    return []


@pytest.fixture
def set_proxy(asked: list[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Set a variable to a proxy, and no other but `NO_PROXY`, to another host."""

    def set_variable(variable: str) -> None:
        for name in (*VARIABLES, "no_proxy"):
            monkeypatch.setenv(name, "")  # so that it is restored
            monkeypatch.delenv(name)
        monkeypatch.setenv("NO_PROXY", "elsewhere.invalid")
        monkeypatch.setenv(variable, f"http://127.0.0.1:{proxy.server_port}")

    handler = type("Handler", (Proxy,), {"asked": asked})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as proxy:
        Thread(target=proxy.serve_forever).start()
        yield set_variable
        proxy.shutdown()


@pytest.mark.usefixtures("served")
@pytest.mark.nightly
@pytest.mark.parametrize("variable", ["http_proxy", "ALL_PROXY"])
def test_the_sdk_reaches_a_service_on_this_machine(
    variable: str,
    starting_service: LocalService,
    set_proxy: Callable[[str], None],
    asked: list[str],
) -> None:
    set_proxy(variable)
    asyncio.run(open_sampler(starting_service))
    assert asked == []


async def open_sampler(service: LocalService) -> None:
    """Open a sampler as a job does that is given the service's address."""
    target = ServiceTarget(service.model_name, service.base_url, local=False)
    with Connection.open(target, Path()) as connection:
        async with service_session(connection.base_url) as client:
            await client.create_sampling_client_async(base_model=connection.model)


@pytest.mark.usefixtures("served")
@pytest.mark.nightly
def test_a_socks_proxy_does_not_hide_a_local_service(
    starting_service: LocalService,
    set_proxy: Callable[[str], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("socksio", reason="an environment made before the extra asked for it")
    set_proxy("ALL_PROXY")
    monkeypatch.setenv("ALL_PROXY", f"socks5://127.0.0.1:{CLOSED}")
    asyncio.run(open_sampler(starting_service))


@pytest.mark.nightly
@pytest.mark.parametrize("variable", ["HTTP_PROXY", "all_proxy"])
def test_an_endpoint_on_this_machine_is_evaluated(
    variable: str, set_proxy: Callable[[str], None], asked: list[str], tmp_path: Path
) -> None:
    set_proxy(variable)
    with serving(Endpoint(lambda body: ("Probability: 0.4", "stop", None))) as endpoint:
        policy = f"openai:some/model@{endpoint.url}"
        config = EvaluationConfig(("forecast",), (policy,), tasks=2)
        run_evaluation(config, EvaluationFolder(tmp_path))
    assert len(endpoint.asked) == 2
    assert asked == []


@pytest.mark.nightly
@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.5", "[::1]", "localhost"])
def test_every_other_address_keeps_its_proxy(
    host: str, set_proxy: Callable[[str], None], asked: list[str]
) -> None:
    set_proxy("http_proxy")
    others = ["http://service.invalid/a", "http://10.0.0.1/b"]
    local = f"http://{host}:{CLOSED}/v1"
    for url in (*others, None, local, local):
        bypass_proxies(url)
    assert [httpx.get(url).status_code for url in others] == [404, 404]
    for url in (local, "http://elsewhere.invalid"):
        with pytest.raises(httpx.ConnectError):
            httpx.get(url)
    assert asked == others


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_server_is_reached_at_its_location(host: str, asked: list[str]) -> None:
    handler = type("Handler", (Proxy,), {"asked": asked})
    with LocalServer(host, 0, handler) as server:
        Thread(target=server.serve_forever).start()
        assert httpx.get(f"http://{server.location}/a", trust_env=False).status_code == 404
        server.shutdown()
    assert asked == ["/a"]
