# SPDX-License-Identifier: Apache-2.0
"""HTTP at less cost: httpcore writes a request in two pieces, and asks at length whether a connection lives."""

from __future__ import annotations

import select
import socket
import ssl
from collections.abc import Iterable
from typing import Any

import httpcore2
import httpx2

from .proxies import create_transport

_HELD_MAX = 65_536
_CAN_POLL = hasattr(select, "poll")


def create_lean_transport(url: str) -> httpx2.AsyncHTTPTransport:
    """A transport to this address; httpx has no setting for this, so without its inner parts it just is not done."""
    transport = create_transport(url)
    pool = getattr(transport, "_pool", None)
    if isinstance(
        backend := getattr(pool, "_network_backend", None), httpcore2.AsyncNetworkBackend
    ):
        setattr(pool, "_network_backend", _LeanBackend(backend))  # noqa: B010
    return transport


class _LeanBackend(httpcore2.AsyncNetworkBackend):
    """Opens connections as the backend inside does."""

    def __init__(self, inner: httpcore2.AsyncNetworkBackend) -> None:
        self._inner = inner

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Called by the pool of connections."""
        stream = await self._inner.connect_tcp(host, port, timeout, local_address, socket_options)
        return _LeanStream(stream)

    async def sleep(self, seconds: float) -> None:
        """Called between attempts to connect."""
        await self._inner.sleep(seconds)


class _LeanStream(httpcore2.AsyncNetworkStream):
    """Holds what is written until it is whole, or an answer is awaited."""

    def __init__(self, inner: httpcore2.AsyncNetworkStream) -> None:
        self._inner = inner
        self._held = b""
        self._socket: socket.socket | None = None

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Called for the head, for each piece of the body, and with nothing at their end."""
        self._held += buffer
        if not buffer or len(self._held) > _HELD_MAX:
            await self._release(timeout)

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Called for an answer."""
        if self._held:
            await self._release(timeout)
        return await self._inner.read(max_bytes, timeout)

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Called before anything is written."""
        return _LeanStream(await self._inner.start_tls(ssl_context, server_hostname, timeout))

    async def aclose(self) -> None:
        """Called at the end; what nobody waits for an answer to is of no use."""
        await self._inner.aclose()

    def get_extra_info(self, info: str) -> Any:
        """Tells of the connection; before and after each request, whether it has ended meanwhile."""
        if info == "is_readable" and _CAN_POLL:
            return self._is_readable()
        return self._inner.get_extra_info(info)

    def _is_readable(self) -> bool:
        """Whether something came unasked; the streams inside gather all that they know to tell that."""
        if self._socket is None:
            self._socket = self._inner.get_extra_info("socket")
        if self._socket is None or self._socket.fileno() < 0:
            return True
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return bool(poll.poll(0))

    async def _release(self, timeout: float | None) -> None:
        held, self._held = self._held, b""
        await self._inner.write(held, timeout)
