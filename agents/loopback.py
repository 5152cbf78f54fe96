"""Servers on this machine: their address, and the proxies that cannot reach it."""

import os
import socket
import urllib.request
from http.server import ThreadingHTTPServer
from ipaddress import ip_address
from socketserver import BaseRequestHandler
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
    if not proxies or not _is_loopback(host):
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


class LocalServer(ThreadingHTTPServer):
    """An HTTP server with a thread for each connection, on an IP address of either version."""

    daemon_threads = True

    def __init__(self, host: str, port: int, handler: type[BaseRequestHandler]) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, port), handler)

    @property
    def location(self) -> str:
        """Host and port, as an URL has them."""
        host, port = self.server_address[:2]
        return f"[{host!s}]:{port}" if ":" in str(host) else f"{host!s}:{port}"


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
