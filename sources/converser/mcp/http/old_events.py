# SPDX-License-Identifier: Apache-2.0
"""The guard of the transport before streamable HTTP: all answers come on one stream of events."""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncGenerator
from contextlib import aclosing

import anyio
import httpx2

from ..failures import HttpRefusal
from ..oversize.spills import USUAL_BOUNDS, Bounds
from .exchanges import EventBytes, Exchange, is_message, replace_content
from .logins import find_refusal

_ENDPOINT = re.compile(rb"event: *endpoint\r?\ndata: *(\S+)\r?\n")
_ENDPOINT_PLACE_MAX = 65_536
_LEFT = (anyio.BrokenResourceError, anyio.ClosedResourceError)


class _Farewell(logging.Filter):
    """Drops the traceback that the SDK logs of an event that comes when we have just left."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Called for each message."""
        return not (record.exc_info and isinstance(record.exc_info[1], _LEFT))


logging.getLogger("mcp.client.sse").addFilter(_Farewell())


class OldEventsTransport(httpx2.AsyncBaseTransport):
    """Has a refused stream and a lost message told as what they are, where the SDK would wait on.

    The status of a refused stream is told without its URL, which may hold a secret.
    """

    def __init__(
        self,
        inner: httpx2.AsyncBaseTransport,
        bounds: Bounds = USUAL_BOUNDS,
        *,
        has_login: bool = False,
    ) -> None:
        self._inner = inner
        self._has_login = has_login
        self._bounds = bounds
        self._exchange = Exchange()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Passes a request on; what a login asks elsewhere must come back as it is."""
        refusal = find_refusal(request)
        if request.method == "POST" and is_message(await request.aread()):
            return await self._post(request) if refusal is None else self._lose(request)
        if refusal is not None:
            raise HttpRefusal(**refusal)
        response = await self._inner.handle_async_request(request)
        if request.method != "GET" or "event-stream" not in request.headers.get("accept", ""):
            return response
        if response.status_code >= 400:
            await response.aclose()
            raise HttpRefusal(response.status_code, response.headers.get("retry-after"))
        stream = _CheckedEvents(response, self._exchange, request.url, self._bounds)
        return replace_content(response, request, stream)

    async def aclose(self) -> None:
        """Closes the transport inside."""
        await self._inner.aclose()

    async def _post(self, request: httpx2.Request) -> httpx2.Response:
        """Sends a message; where it is lost the stream is ended, since its answer will not come."""
        try:
            response = await self._inner.handle_async_request(request)
        except httpx2.TransportError:
            return self._lose(request)
        if response.status_code < 400:
            return response
        if response.status_code in (401, 403) and self._has_login:
            return response  # which will ask again if that is the end of it
        await response.aclose()
        return self._lose(request)

    def _lose(self, request: httpx2.Request) -> httpx2.Response:
        self._exchange.break_off()
        return httpx2.Response(202, request=request)


class _CheckedEvents(EventBytes):
    """The stream of events; the SDK waits for ever when its endpoint is elsewhere."""

    def __init__(
        self, response: httpx2.Response, exchange: Exchange, url: httpx2.URL, bounds: Bounds
    ) -> None:
        super().__init__(response, exchange, lambda: None, bounds)
        self._url = url

    async def __aiter__(self) -> AsyncGenerator[bytes, None]:
        beginning: bytes | None = b""
        async with aclosing(super().__aiter__()) as pieces:
            try:
                async for piece in pieces:
                    if beginning is not None:
                        beginning = self._check(beginning + piece)
                    yield piece
            except httpx2.TransportError:
                # Later it is an end like any other, told by the calls that it hits; the SDK would
                # print a traceback besides. Earlier the SDK must be told, or it waits.
                if beginning is not None:
                    raise

    def _check(self, beginning: bytes) -> bytes | None:
        """What is to be looked at with the next piece, until the endpoint has come."""
        if (match := _ENDPOINT.search(beginning)) is None:
            return beginning if len(beginning) < _ENDPOINT_PLACE_MAX else None
        endpoint = self._url.join(match[1].decode("utf-8", "replace"))
        if (endpoint.scheme, endpoint.netloc) != (self._url.scheme, self._url.netloc):
            raise httpx2.SSEError("the endpoint that it names is on another origin")
        return None
