"""Servers on this machine: their address, and the proxies that cannot reach it."""

import os
import socket
import urllib.request
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from socketserver import BaseRequestHandler
from types import MappingProxyType
from urllib.parse import urlsplit


def bypass_proxies(url: str | None) -> None:
    """Keep requests to an address on this machine away from the proxies of the environment.

    The address is added to `no_proxy` and `NO_PROXY`, which every client heeds: those that
    libraries make for themselves too, and those of child processes. Other addresses keep theirs.

    Args:
        url: of a service, hosted or on this machine; `None` for one that is hosted.
    """
    host = urlsplit(url or "").hostname or ""
    proxies = urllib.request.getproxies_environment()
    if not proxies or not is_loopback(host):
        return
    if urllib.request.proxy_bypass_environment(host, proxies):  # type: ignore[attr-defined]
        return  # typeshed lacks the function
    hosts = ",".join(filter(None, (proxies.get("no"), host)))
    os.environ.update(no_proxy=hosts, NO_PROXY=hosts)


def local_address(host: str = "127.0.0.1") -> str:
    """Return an address to listen on: ::1 for 127.0.0.1 where there is no IPv4, else `host`."""
    if host != "127.0.0.1":
        return host
    with socket.socket() as probe:
        try:
            probe.bind((host, 0))
        except OSError:
            return "::1"
    return host


def foreign_site(listening: str, host: str | None, origin: str | None) -> str | None:
    """Return what is wrong with a request that a page of another site may have made, or None.

    After DNS rebinding a page carries its own name as the host.

    Args:
        listening: the address the server listens on; on one that is no loopback any host will do.
        host: the request's `Host`.
        origin: the request's `Origin`.
    """
    if host is not None and is_loopback(listening) and not is_loopback(_parts(f"//{host}")[0]):
        return f"Host must be one of this machine's own names, such as localhost, got {host!r}"
    if origin is not None and _parts(origin)[1] != host:
        return f"Origin must be that of the service itself, got {origin!r}"
    return None


def _parts(url: str) -> tuple[str, str]:
    """Return the name of the host of a URL, and that with its port; empty if it is none."""
    try:
        parts = urlsplit(url)
        return parts.hostname or "", parts.netloc
    except ValueError:
        return "", ""


class LocalServer(ThreadingHTTPServer):
    """An HTTP server with a thread for each connection, on an IP address of either version.

    Raises:
        OSError: if the port cannot be had, with the port instead of a file.
    """

    def __init__(self, host: str, port: int, handler: type[BaseRequestHandler]) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            super().__init__((host, port), handler)
        except OSError as error:
            raise OSError(error.errno, error.strerror, f"port {port}") from error

    @property
    def location(self) -> str:
        """Host and port, as an URL has them."""
        host, port = self.server_address[:2]
        return f"[{host!s}]:{port}" if ":" in str(host) else f"{host!s}:{port}"


class Answering(BaseHTTPRequestHandler):
    """A handler that answers with whole bodies, over connections that stay open, and logs nothing.

    Attributes:
        always: headers of every answer.
    """

    protocol_version = "HTTP/1.1"
    always: Mapping[str, str] = MappingProxyType({})

    def answer(self, body: bytes, kind: str = "application/json", status: int = 200) -> None:
        """Write the status, headers and body of an answer."""
        self.send_response(status)
        for name, value in self.always.items():
            self.send_header(name, value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Write nothing: requests are of no interest on a terminal."""


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine for this machine alone."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
