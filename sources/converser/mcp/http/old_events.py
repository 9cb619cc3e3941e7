# SPDX-License-Identifier: Apache-2.0
"""The guard of the transport before streamable HTTP: all answers come on one stream of events."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from typing import Any

import anyio
import httpx2
from pydantic_core import to_json

from ...tasks import spawn
from ..failures import HttpRefusal, wrap_fault
from ..oversize.parking import Parking
from .exchanges import EventBytes, Exchange, is_message, read_head, replace_content
from .faults import blame_network, explain_status
from .logins import find_refusal

_ENDPOINT = re.compile(rb"event: *endpoint\r?\ndata: *(\S+)\r?\n")
_ENDPOINT_PLACE_MAX = 65_536
_POST_PATIENCE = 1.0
_LOGIN_PATIENCE = 10.0
_UNAUTHORIZED = (401, 403)
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
        parking: Parking,
        *,
        has_login: bool = False,
    ) -> None:
        self._inner = inner
        self._has_login = has_login
        self._parking = parking
        self._events: _CheckedEvents | None = None
        self._deliveries: dict[_Delivery, None] = {}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Passes a request on; what a login asks elsewhere must come back as it is."""
        refusal = find_refusal(request)
        if request.method == "POST" and is_message(await request.aread()):
            if refusal is None:
                return await self._post(request)
            self._fail(request, wrap_fault(refusal))
            return httpx2.Response(202, request=request)
        if refusal is not None:
            raise HttpRefusal(**refusal)
        response = await self._inner.handle_async_request(request)
        if request.method != "GET" or "event-stream" not in request.headers.get("accept", ""):
            return response
        if response.status_code >= 400:
            await response.aclose()
            raise HttpRefusal(response.status_code, response.headers.get("retry-after"))
        stream = self._events = _CheckedEvents(response, request.url, self._parking)
        return replace_content(response, request, stream)

    async def aclose(self) -> None:
        """Closes the transport inside."""
        for delivery in self._deliveries:
            delivery.scope.cancel()
        await self._inner.aclose()

    async def _post(self, request: httpx2.Request) -> httpx2.Response:
        """Sends a message; where the server takes its time with it, the SDK goes on to the next one."""
        head = read_head(request.content)
        if head.method == b"notifications/cancelled":
            self._break_off(request)
        delivery = _Delivery(head.identifier if head.is_request else None)
        self._deliveries[delivery] = None
        spawn(lambda: self._deliver(request, delivery), "converser: message")
        with anyio.move_on_after(_LOGIN_PATIENCE if self._has_login else _POST_PATIENCE):
            await delivery.ended.wait()
        delivery.is_awaited = False
        return delivery.response or httpx2.Response(202, request=request)

    async def _deliver(self, request: httpx2.Request, delivery: _Delivery) -> None:
        """Sends a message; where it is lost, that is the answer to it, and others are still waited for."""
        try:
            with delivery.scope:
                response = await self._inner.handle_async_request(request)
                status = response.status_code
                may_log_in = status in _UNAUTHORIZED and self._has_login and delivery.is_awaited
                if status >= 400 and not may_log_in:
                    self._fail(request, await explain_status(response, has_session=True))
                elif delivery.is_awaited:
                    delivery.response = response
                else:
                    await response.aclose()
        except httpx2.TransportError as failure:
            self._fail(request, blame_network(failure))
        finally:
            del self._deliveries[delivery]
            delivery.ended.set()

    def _break_off(self, request: httpx2.Request) -> None:
        """Ends the delivery of what nobody waits for any more."""
        number = json.loads(request.content).get("params", {}).get("requestId")
        for delivery in self._deliveries:
            if delivery.number == json.dumps(number).encode():
                delivery.scope.cancel()

    def _fail(self, request: httpx2.Request, error: dict[str, Any]) -> None:
        """Answers a request in the server's place; what needs no answer is just lost."""
        head = read_head(request.content)
        if head.is_request and self._events is not None:
            number = json.loads(head.identifier or b"null")
            self._events.interject(to_json({"jsonrpc": "2.0", "id": number, "error": error}))


class _Delivery:
    """A message on its way to the server."""

    def __init__(self, number: bytes | None) -> None:
        self.number = number
        self.scope = anyio.CancelScope()
        self.ended = anyio.Event()
        self.is_awaited = True
        self.response: httpx2.Response | None = None


class _CheckedEvents(EventBytes):
    """The stream of events, with answers of ours between; the SDK waits for ever when its endpoint is elsewhere."""

    def __init__(self, response: httpx2.Response, url: httpx2.URL, parking: Parking) -> None:
        super().__init__(response, Exchange(), lambda: None, parking)
        self._url = url
        self._sender, self._receiver = anyio.create_memory_object_stream[bytes]()
        self._ended = anyio.Event()
        self._failure: httpx2.TransportError | None = None

    def interject(self, message: bytes) -> None:
        """Puts in a message in the server's place, between two events of its own."""
        event = b"event: message\ndata: %b\n\n" % message
        spawn(lambda: self._pass_on(event), "converser: answer in a server's place")

    async def iterate_events(self) -> AsyncGenerator[bytes, None]:
        """The events, each piece one or several whole ones."""
        spawn(self._read, "converser: events")
        try:
            async for piece in self._receiver:
                yield piece
        finally:
            self._receiver.close()
            self._exchange.break_off()
            with anyio.CancelScope(shield=True):
                await self._ended.wait()
        if self._failure is not None:
            raise self._failure

    async def aclose(self) -> None:
        """Called by the HTTP client when it wants no more."""
        self._receiver.close()
        self._sender.close()
        await super().aclose()

    async def _read(self) -> None:
        """Hands on what the server sends, in a task of its own, so that no answer of ours waits for it."""
        beginning: bytes | None = b""
        try:
            async with aclosing(super().iterate_events()) as pieces:
                async for piece in pieces:
                    if beginning is not None:
                        beginning = self._check(beginning + piece)
                    await self._pass_on(piece)
        except httpx2.TransportError as failure:
            # Later it is an end like any other, told by the calls that it hits; the SDK would
            # print a traceback besides. Earlier the SDK must be told, or it waits.
            self._failure = None if beginning is None else failure
        finally:
            self._sender.close()
            self._ended.set()

    async def _pass_on(self, piece: bytes) -> None:
        with suppress(*_LEFT):
            await self._sender.send(piece)

    def _check(self, beginning: bytes) -> bytes | None:
        """What is to be looked at with the next piece, until the endpoint has come."""
        if (match := _ENDPOINT.search(beginning)) is None:
            return beginning if len(beginning) < _ENDPOINT_PLACE_MAX else None
        endpoint = self._url.join(match[1].decode("utf-8", "replace"))
        if (endpoint.scheme, endpoint.netloc) != (self._url.scheme, self._url.netloc):
            raise httpx2.SSEError("the endpoint that it names is on another origin")
        return None
