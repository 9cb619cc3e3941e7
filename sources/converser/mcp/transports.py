# SPDX-License-Identifier: Apache-2.0
"""Opens the SDK's transports with the settings that they need to live long."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from ..exceptions import ConfigurationFailure
from .http.direct import DirectWay, HttpStreams
from .http.guard import NO_WATCH, GuardedClient, GuardedTransport, StreamWatch
from .http.old_events import OldEventsTransport
from .http.proxies import create_transport
from .http.redaction import separate_credentials
from .http.streams import create_lean_transport
from .oversize.parking import Parking
from .oversize.spills import USUAL_BOUNDS, Bounds
from .stderr import StderrRing

Streams = tuple[Any, Any] | HttpStreams
OpenedTransport = AbstractAsyncContextManager[Streams]

_EVENT_FRAME = 4_096
"""Bytes that an event may take besides its message."""
_HTTP_PATIENCE = 30.0
_A_DAY = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A server process to start; it sees a few harmless variables, and those that are given."""

    command: Sequence[str]
    environment: Mapping[str, str] = field(repr=False)
    cwd: str | Path | None
    ring: StderrRing
    bounds: Bounds = USUAL_BOUNDS


@asynccontextmanager
async def open_sdk_stdio(launch: Launch) -> AsyncGenerator[Streams, None]:
    """Starts a server process on the SDK's own transport."""
    parameters = StdioServerParameters(
        command=launch.command[0],
        args=list(launch.command[1:]),
        env=dict(launch.environment),
        cwd=launch.cwd,
        encoding_error_handler="replace",
    )
    with launch.ring.open_pipe() as errlog:
        async with stdio_client(parameters, errlog=errlog) as streams:
            errlog.close()  # the server has its own copy; ours would hide its end
            yield streams


@asynccontextmanager
async def open_http(
    url: str,
    headers: Mapping[str, str],
    auth: httpx2.Auth | None = None,
    bounds: Bounds = USUAL_BOUNDS,
    watch: StreamWatch = NO_WATCH,
) -> AsyncGenerator[HttpStreams, None]:
    """Opens streamable HTTP; how long an answer may take is for our own deadlines to say."""
    check_headers(headers)
    url, auth = separate_credentials(url, auth)
    parking = Parking(bounds)
    guard = GuardedTransport(create_lean_transport(url), parking, watch)
    client = GuardedClient(
        transport=guard,
        headers=dict(headers),
        auth=auth,
        timeout=httpx2.Timeout(_HTTP_PATIENCE, read=None),
    )
    async with (
        client,
        streamable_http_client(
            url, http_client=client, max_sse_event_size=bounds.memory + _EVENT_FRAME
        ) as (read, write),
    ):
        yield HttpStreams(parking.put_on(read), write, DirectWay(client, url, guard))


@asynccontextmanager
async def open_sse(
    url: str,
    headers: Mapping[str, str],
    auth: httpx2.Auth | None = None,
    bounds: Bounds = USUAL_BOUNDS,
) -> AsyncGenerator[Streams, None]:
    """Opens HTTP with server-sent events, which older servers speak."""
    check_headers(headers)
    url, auth = separate_credentials(url, auth)
    parking = Parking(bounds)

    def create_client(
        headers: dict[str, str] | None = None,
        timeout: httpx2.Timeout | None = None,
        auth: httpx2.Auth | None = None,
    ) -> httpx2.AsyncClient:
        inner, has_login = create_transport(url), auth is not None
        transport = OldEventsTransport(inner, parking, has_login=has_login)
        return httpx2.AsyncClient(transport=transport, headers=headers, timeout=timeout, auth=auth)

    async with sse_client(
        url,
        headers=dict(headers),
        timeout=_HTTP_PATIENCE,
        sse_read_timeout=_A_DAY,
        httpx_client_factory=create_client,
        auth=auth,
    ) as (read, write):
        yield parking.put_on(read), write


def check_headers(headers: Mapping[str, str]) -> None:
    """Refuses a value that HTTP would refuse, without quoting it: the HTTP client quotes it."""
    for name, value in headers.items():
        if not value.isascii() or not value.isprintable() or value != value.strip():
            raise ConfigurationFailure(
                f"The header {name!r} has a value that HTTP does not allow.",
                remedy="Take line breaks, spaces at its ends and characters beyond ASCII out of it.",
            )
