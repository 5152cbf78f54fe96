"""Proxies of the environment and services on this machine, which no proxy can reach."""

import os
import urllib.request
from ipaddress import ip_address
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


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
