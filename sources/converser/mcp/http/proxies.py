# SPDX-License-Identifier: Apache-2.0
"""The way to a server through the proxy that the environment names; httpx finds it only for transports of its own."""

from __future__ import annotations

import os
import ssl
from functools import lru_cache
from ipaddress import ip_address
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx2

_LIMITS = httpx2.Limits(max_connections=None, max_keepalive_connections=100, keepalive_expiry=4.0)
"""Each call that is under way needs a connection of its own, and how many there are is for their callers to say.

Many servers close one that has been idle for five seconds: a call that is just then on its way is lost.
"""


def create_transport(url: str) -> httpx2.AsyncHTTPTransport:
    """A transport to this address, through a proxy where there is one."""
    context = _create_context(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))
    return httpx2.AsyncHTTPTransport(verify=context, proxy=find_proxy(url), limits=_LIMITS)


@lru_cache(maxsize=4)
def _create_context(*_places: str | None) -> ssl.SSLContext:
    """What trusts the certificates in these places; to read them takes long, and meanwhile all else stands still."""
    return httpx2.create_ssl_context()


def find_proxy(url: str) -> str | None:
    """The proxy for an address, as HTTPS_PROXY and its kin name it; none for this machine, which no proxy reaches."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if is_loopback(host) or proxy_bypass(host):
        return None
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    return proxy if proxy is None or "://" in proxy else f"http://{proxy}"


def is_loopback(host: str) -> bool:
    """Whether a host is this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
