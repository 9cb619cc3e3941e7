# SPDX-License-Identifier: Apache-2.0
"""Parts of the HTTP guard: answers that are bounded and can be broken off, and requests that are not hurried."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass

import anyio
import anyio.lowlevel
import httpx2
from pydantic_core import from_json, to_json

from ..leniency import (
    decode_leniently,
    has_deep_tools,
    has_odd_characters,
    has_too_many_parts,
)
from ..narrowing import as_dictionary
from ..oversize.events import shrink_events
from ..oversize.parking import Parking
from ..oversize.running import Oversize, reduce_message, spill_message
from ..oversize.spills import Bounds, Gathering, Spill

_HEAD = re.compile(rb'\{"jsonrpc":"2\.0",(?:"id":(\d+|"[^"]*"),)?(?:"method":"([^"]*)")?')
_IDENTITY = re.compile(rb"^id: ?([^\r\n]+)", re.MULTILINE)
_ODD_PAUSE = re.compile(rb"(?:(?<=[\r\n])|\A)retry:(?! ?[0-9]{1,7}[\r\n])[^\r\n]*")
"""A pause that is no number, or is negative, which would end the SDK's session, or has no end."""
_EVENT_END = re.compile(rb"(?<=\n\n)|(?<=\r\n\r\n)|(?<=\r\r)")
_LINE_OF_DATA = re.compile(rb"(?<![^\r\n])data:(?= ?[^ \r\n])")
_TYPED = re.compile(rb"(?<![^\r\n])event:")
_MARKS = (b'"jsonrpc"', b'"result"', b'"error"', b'"id"')
_LONG = 65_536
_SLICE = 262_144
"""Bytes of a long event that are passed on at a time."""
_HOP_HEADERS = ("content-encoding", "content-length", "transfer-encoding")


class BrokenAnswer(Exception):
    """An answer that came, and cannot be used."""

    def __init__(self, reason: str, remedy: str = "") -> None:
        super().__init__(reason)
        self.fault = {"broken": reason, "remedy": remedy}


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """What a message to the server is: a request has both, an answer to the server's no method."""

    identifier: bytes | None
    method: bytes | None

    @property
    def is_request(self) -> bool:
        """Whether the server owes an answer."""
        return self.identifier is not None and self.method is not None


def read_head(content: bytes) -> Head:
    """The head of a message as the SDK writes it; the rest may be large, and is not looked at."""
    match = _HEAD.match(content)
    return Head(identifier=match[1], method=match[2]) if match else Head(identifier=b"", method=b"")


def is_message(content: bytes) -> bool:
    """Whether this is a message to the server, and not, for instance, a step of a login."""
    return _HEAD.match(content) is not None


class Exchange:
    """A request and its answer under way, which can be broken off from elsewhere."""

    def __init__(self) -> None:
        self._scope: anyio.CancelScope | None = None
        self.is_over = False

    def break_off(self) -> None:
        """Waits no longer for the server."""
        self.is_over = True
        if self._scope is not None:
            self._scope.cancel()

    def waiting(self) -> anyio.CancelScope:
        """A block that is left when the exchange is broken off; then `is_over` is set."""
        self._scope = anyio.CancelScope()
        if self.is_over:
            self._scope.cancel()
        return self._scope


async def iterate_pieces(response: httpx2.Response) -> AsyncGenerator[bytes, None]:
    """The inflated bytes of a response; others get their turn between the pieces of a bomb."""
    inflates = "content-encoding" in response.headers
    async with aclosing(response.aiter_bytes()) as pieces:
        async for piece in pieces:
            yield piece
            if inflates:
                await anyio.lowlevel.checkpoint()


async def read_answer(
    response: httpx2.Response, request: httpx2.Request, bounds: Bounds
) -> httpx2.Response:
    """A response whose JSON has been read, its broken characters replaced, and made small if need be."""
    is_plain = _is_plain(response, bounds)
    try:
        body = await (response.aread() if is_plain else _collect(response, bounds))
    except httpx2.DecodingError:
        raise BrokenAnswer("it is not compressed as it says") from None
    finally:
        await response.aclose()
    if isinstance(body, Spill) or has_too_many_parts(body, bounds.parts):
        body, is_plain = await _reduce(body, bounds), False
    if is_long := len(body) > _LONG:
        await anyio.lowlevel.checkpoint()
    is_odd = has_odd_characters(body) or has_deep_tools(body)
    if is_long:
        await anyio.lowlevel.checkpoint()
    if is_odd:
        try:
            body = to_json(decode_leniently(body))
        except ValueError:
            raise BrokenAnswer("it is not valid JSON") from None
    elif is_plain:
        return response
    return replace_content(response, request, body)


def address_error(
    response: httpx2.Response, request: httpx2.Request, identifier: bytes
) -> httpx2.Response:
    """The same answer; an error that names no request is for the one that it answers, or nobody would hear of it."""
    body = response.content
    if not identifier or len(body) > _LONG or b'"error"' not in body:
        return response
    try:
        message = as_dictionary(from_json(body)) or {}
    except ValueError:
        return response
    if "error" not in message or message.get("id") is not None:
        return response
    return replace_content(response, request, to_json({**message, "id": from_json(identifier)}))


async def _reduce(body: bytes | Spill, bounds: Bounds) -> bytes:
    """An answer that is too large, with links to files in place of what is large in it."""
    spill = spill_message(body, bounds) if isinstance(body, bytes) else body
    try:
        return await reduce_message(spill, bounds)
    except Oversize as failure:
        raise BrokenAnswer(failure.keep(), failure.remedy) from None


def _is_plain(response: httpx2.Response, bounds: Bounds) -> bool:
    """Whether a body is known beforehand to be within the bound."""
    length = response.headers.get("content-length", "")
    is_short = length.isdecimal() and int(length) <= bounds.memory
    return is_short and "content-encoding" not in response.headers


async def _collect(response: httpx2.Response, bounds: Bounds) -> bytes | Spill:
    """The inflated body; one that is over the bound goes into a file."""
    gathering = Gathering(bounds)
    try:
        async with aclosing(iterate_pieces(response)) as pieces:
            async for piece in pieces:
                gathering.add(piece)
                if gathering.is_hopeless:
                    break
    except BaseException:
        gathering.discard()
        raise
    return gathering.release()


class EventBytes(httpx2.AsyncByteStream):
    """The bytes of a stream of events; broken off, it just ends."""

    def __init__(
        self,
        response: httpx2.Response,
        exchange: Exchange,
        on_close: Callable[[], None],
        parking: Parking,
    ) -> None:
        self._response = response
        self._exchange = exchange
        self._on_close = on_close
        self._parking = parking

    async def __aiter__(self) -> AsyncGenerator[bytes, None]:
        """Called by the HTTP client."""
        async with aclosing(self.iterate_events()) as pieces:
            async for piece in pieces:
                if len(piece) <= _SLICE:
                    yield piece
                    continue
                for begin in range(0, len(piece), _SLICE):
                    yield piece[begin : begin + _SLICE]
                    await anyio.lowlevel.checkpoint()  # the SDK looks at each slice several times

    async def iterate_events(self) -> AsyncGenerator[bytes, None]:
        """The events, each piece one or several whole ones."""
        raw = iterate_pieces(self._response)
        async with aclosing(raw), aclosing(shrink_events(raw, self._parking)) as pieces:
            while True:
                piece = b""
                with self._exchange.waiting():
                    piece = await anext(pieces, b"")
                if self._exchange.is_over or not piece:
                    return
                if piece.count(b"data:") > piece.count(_MARKS[0]):
                    piece = b"".join(map(_mute, _EVENT_END.split(piece)))
                yield _ODD_PAUSE.sub(b":", piece) if b"retry:" in piece else piece

    async def aclose(self) -> None:
        """Called by the HTTP client when it wants no more."""
        self._on_close()
        await self._response.aclose()


def _mute(event: bytes) -> bytes:
    """Makes a comment of an event that is no message, such as a sign of life; the SDK takes it for a broken answer."""
    if _TYPED.search(event) or any(mark in event for mark in _MARKS):
        return event
    return _LINE_OF_DATA.sub(b":", event)


class StandingEvents(EventBytes):
    """A stream of events that is opened again when it ends, so that a broken one just ends, too."""

    place: str | None = None
    """The last event, where the server numbers them."""

    async def iterate_events(self) -> AsyncGenerator[bytes, None]:
        """The events, each piece one or several whole ones."""
        async with aclosing(super().iterate_events()) as pieces:
            with suppress(httpx2.TransportError):
                async for piece in pieces:
                    if identities := _IDENTITY.findall(piece):
                        self.place = identities[-1].decode("utf-8", "replace")
                    yield piece


def replace_content(
    response: httpx2.Response, request: httpx2.Request, content: bytes | httpx2.AsyncByteStream
) -> httpx2.Response:
    """The same response with content that is inflated already; events are UTF-8, whatever a server says."""
    headers = [(k, v) for k, v in response.headers.multi_items() if k not in _HOP_HEADERS]
    if isinstance(content, bytes):
        return httpx2.Response(
            response.status_code, headers=headers, content=content, request=request
        )
    headers = [(k, v.partition(";")[0] if k == "content-type" else v) for k, v in headers]
    return httpx2.Response(response.status_code, headers=headers, stream=content, request=request)


class Throttle:
    """Lets a few requests pass at once, and then one in a while, whatever a server asks for."""

    def __init__(self, burst: int = 5, interval: float = 1.0) -> None:
        self._burst = burst
        self._interval = interval
        self._due = 0.0

    async def wait(self) -> None:
        """Waits until it is our turn."""
        now = anyio.current_time()
        self._due = max(self._due + self._interval, now - (self._burst - 1) * self._interval)
        await anyio.sleep(max(0.0, self._due - now))


class Pace(Throttle):
    """Counts besides how often a stream was taken up again at one place, where nothing has come since."""

    def __init__(self, limit: int = 60) -> None:
        super().__init__()
        self._limit = limit
        self._counts: Counter[str] = Counter()

    def is_worthwhile(self, place: str | None) -> bool:
        """Whether there is still hope for more."""
        if place is None:
            return True
        if len(self._counts) > 1_000:
            self._counts.clear()
        self._counts[place] += 1
        return self._counts[place] <= self._limit
