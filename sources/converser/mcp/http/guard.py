# SPDX-License-Identifier: Apache-2.0
"""An HTTP transport that turns a network fault or a bare HTTP error into the failure of one call.

The SDK's client dies whole when one POST fails, and forgets the status of an error response.
No text of an exception is passed on that could quote a header: headers hold secrets.
"""

from __future__ import annotations

import json
import math
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import anyio
import httpx2

from ...tasks import spawn
from ..failures import wrap_fault
from ..oversize.parking import Parking
from .exchanges import (
    BrokenAnswer,
    EventBytes,
    Exchange,
    Pace,
    StandingEvents,
    address_error,
    read_answer,
    read_head,
    replace_content,
)
from .faults import blame_network, explain_status
from .logins import find_refusal

_NOTICE_PATIENCE = 5.0
_GOODBYE_PATIENCE = 2.0
_KNOCKS_MAX = 3
_KNOCK_PAUSE, _KNOCK_PAUSE_MAX = 1.0, 30.0
_LATE = 1.0
"""Seconds after which a stream is open so late that the server may have spoken before."""
_OPENING = frozenset({b"initialize", b"server/discover"})
_PASSING = frozenset({408, 409, 425, 429})
"""Statuses that will pass; with 409, a server still holds the stream that has just broken."""
_pace: ContextVar[Pace] = ContextVar("converser pace")
"""Of the streams that bring one answer, one after the other: the SDK asks for all of them in one task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamWatch:
    """Who hears what shows on the stream where a server of the older era speaks unasked."""

    on_forgotten: Callable[[], None] = lambda: None
    """The server has forgotten the session."""
    on_reopened: Callable[[], None] = lambda: None
    """The stream is open; before that it was not, and what the server said then is lost."""


NO_WATCH = StreamWatch()


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Answers in the server's place where the server, or the way to it, is broken."""

    def __init__(
        self,
        inner: httpx2.AsyncBaseTransport,
        parking: Parking,
        watch: StreamWatch = NO_WATCH,
    ) -> None:
        """Takes the transport that sends, and who hears what the stream shows."""
        self._inner = inner
        self._parking = parking
        self._watch = watch
        self._standing: StandingEvents | None = None
        self._exchanges: dict[bytes, Exchange] = {}
        self._held: dict[bytes, httpx2.Response] = {}
        self._notices: set[anyio.CancelScope] = set()
        self._pace = Pace()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Passes a request on; what a login asks elsewhere must come back as it is."""
        if (refusal := find_refusal(request)) is not None:
            return _answer(request, refusal["status"], wrap_fault(refusal))
        if "text/event-stream" in request.headers.get("accept", ""):
            if request.method == "POST":
                return await self._post(request)
            if request.method == "GET":
                return await self._listen(request)
            if request.method == "DELETE":
                with anyio.move_on_after(_GOODBYE_PATIENCE):
                    return await self._inner.handle_async_request(request)
                return httpx2.Response(202, request=request)  # the SDK would only complain
        try:
            return await self._inner.handle_async_request(request)
        except httpx2.TransportError as failure:
            if request.method != "POST":
                raise
            return _answer(request, 503, blame_network(failure))

    @asynccontextmanager
    async def hold(self, identifier: int, response: httpx2.Response) -> AsyncGenerator[None]:
        """In the block, a request with this id has been answered before it is made."""
        number = b"%d" % identifier
        self._held[number] = response
        try:
            yield
        finally:
            if self._held.pop(number, None) is not None:
                await response.aclose()

    async def aclose(self) -> None:
        """Closes the transport inside."""
        for scope in self._notices:
            scope.cancel()
        await self._inner.aclose()

    async def _post(self, request: httpx2.Request) -> httpx2.Response:
        head = read_head(await request.aread())
        if not head.is_request:
            return await self._notify(request, head.method)
        number = head.identifier or b""
        if (held := self._held.pop(number, None)) is not None:
            return held
        exchange = self._exchanges[number] = Exchange()
        response: httpx2.Response | None = None
        try:
            with exchange.waiting():
                response = await self._request(request, exchange, number)
        except BrokenAnswer as failure:
            response = _answer(request, 502, wrap_fault(failure.fault))
        finally:
            if response is None or not isinstance(response.stream, EventBytes):
                self._forget(number, exchange)
        return response or _answer(request, 503, wrap_fault({"broken": "nobody waits for it"}))

    async def _request(
        self, request: httpx2.Request, exchange: Exchange, number: bytes
    ) -> httpx2.Response:
        """The server's answer; where it is short, it is read before the SDK relies on it."""
        response = await self._inner.handle_async_request(request)
        status = response.status_code
        if status >= 400:
            error = await explain_status(
                response,
                has_session="mcp-session-id" in request.headers,
                is_opening=read_head(request.content).method in _OPENING,
            )
            return _answer(request, status, error, dict(response.headers))
        if response.has_redirect_location:
            return response
        kind = response.headers.get("content-type", "").lower()
        if kind.startswith("application/json") and status != 202:
            answer = await read_answer(response, request, self._parking.bounds)
            return address_error(answer, request, number)
        if kind.startswith("text/event-stream") and status != 202:
            forget = partial(self._forget, number, exchange)
            stream = EventBytes(response, exchange, forget, self._parking)
            _pace.set(Pace())
            return replace_content(response, request, stream)
        await response.aclose()
        raise BrokenAnswer(f"status {status}, content type {kind.partition(';')[0] or 'none'}")

    def _forget(self, number: bytes, exchange: Exchange) -> None:
        if self._exchanges.get(number) is exchange:
            del self._exchanges[number]

    async def _notify(self, request: httpx2.Request, method: bytes | None) -> httpx2.Response:
        """Sends what needs no answer: the SDK sends nothing else before that is done, so not for long."""
        if method == b"notifications/cancelled":
            number = json.loads(request.content).get("params", {}).get("requestId")
            if exchange := self._exchanges.get(json.dumps(number).encode()):
                exchange.break_off()
            spawn(lambda: self._deliver(request), "converser: cancellation")
        else:
            await self._deliver(request)
        return httpx2.Response(202, request=request)

    async def _deliver(self, request: httpx2.Request) -> None:
        with anyio.move_on_after(_NOTICE_PATIENCE) as scope:
            self._notices.add(scope)
            try:
                response = await self._inner.handle_async_request(request)
                if response.headers.get("content-length") == "0":
                    await response.aread()  # or the connection could not be used again
                await response.aclose()
            except httpx2.TransportError:
                pass  # whoever asks for something next will hear of it
            finally:
                self._notices.discard(scope)

    async def _listen(self, request: httpx2.Request) -> httpx2.Response:
        """Opens a stream of events: the one that stands, or one that a call waits for and that broke."""
        place, before = request.headers.get("last-event-id"), self._standing
        if place is not None and (before is None or place != before.place):
            if not (pace := _pace.get(self._pace)).is_worthwhile(place):
                return httpx2.Response(410, request=request)
            return self._guard_events(request, await self._knock(request, _KNOCKS_MAX, pace))
        begun = anyio.current_time()
        response = await self._knock(request, 1 if before is None else math.inf, self._pace)
        if response.status_code == 404 and before is not None:
            self._watch.on_forgotten()  # where there was one, the session is gone if there is none
        if response.status_code != 200:
            return response
        if before is not None or anyio.current_time() - begun > _LATE:
            self._watch.on_reopened()
        response = self._guard_events(request, response)
        self._standing = cast("StandingEvents", response.stream)
        self._standing.place = place
        return response

    def _guard_events(self, request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
        if response.status_code != 200:
            return response
        stream = StandingEvents(response, Exchange(), lambda: None, self._parking)
        return replace_content(response, request, stream)

    async def _knock(self, request: httpx2.Request, attempts: float, pace: Pace) -> httpx2.Response:
        """Asks for a stream, again and again where that is of use: the SDK gives up at the second fault.

        A server that closes it at once is not hammered; and for what a call waits for, not for long.
        """
        pause = _KNOCK_PAUSE
        while True:
            attempts -= 1
            await pace.wait()
            try:
                response = await self._inner.handle_async_request(request)
            except httpx2.TransportError:
                if attempts <= 0:
                    raise
            else:
                status = response.status_code
                if attempts <= 0 or not (status >= 500 or status in _PASSING):
                    return response
                await response.aclose()
            await anyio.sleep(pause)
            pause = min(_KNOCK_PAUSE_MAX, pause * 2)


class GuardedClient(httpx2.AsyncClient):
    """An HTTP client where also what fails above the transport fails one call: a redirection, or a step of a login."""

    async def send(self, request: httpx2.Request, *args: Any, **options: Any) -> httpx2.Response:
        """Called for each request with its redirections and logins."""
        try:
            return await super().send(request, *args, **options)
        except (httpx2.RequestError, httpx2.InvalidURL) as failure:
            if request.method != "POST":
                raise
            return _answer(request, 503, blame_network(failure))


def _answer(
    request: httpx2.Request,
    status: int,
    error: dict[str, Any],
    headers: dict[str, str] | None = None,
) -> httpx2.Response:
    """A response that says what went wrong; headers that authorization needs are passed through."""
    kept = {k: v for k, v in (headers or {}).items() if k == "www-authenticate"}
    return httpx2.Response(
        status,
        headers={**kept, "content-type": "application/json"},
        request=request,
        content=json.dumps({"jsonrpc": "2.0", "id": 0, "error": error}).encode(),
    )
