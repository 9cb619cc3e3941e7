# SPDX-License-Identifier: Apache-2.0
"""Stands between a transport and the SDK: sees the end of the stream, and has bad messages salvaged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, Protocol

import anyio
import mcp_types as wire
from mcp.shared.message import SessionMessage
from typing_extensions import Self

from ..tasks import spawn
from .narrowing import as_number
from .salvage import Salvager

_WATCHED = frozenset({"tools/list", "tools/call"})
_CANCELLATION = "notifications/cancelled"
_PROGRESS = "notifications/progress"
_CANCELLATION_PATIENCE = 5.0
_QUESTIONS_MAX = 100
"""How many requests of a server may wait for our answers; what it asks besides in a flood is not heard."""
_BROKEN = (anyio.BrokenResourceError, anyio.ClosedResourceError)


class Reader(Protocol):
    """Looks at all that comes in."""

    @property
    def lose(self) -> Callable[[], None]:
        """Called when the stream has ended."""
        ...

    def treat(self, item: SessionMessage | Exception) -> SessionMessage | Exception | None:
        """What is to be handed on in place of a message; nothing where it is to be dropped."""
        ...


class Tap:
    """Remembers what was asked, so that each answer can be salvaged by its method."""

    def __init__(self, salvager: Salvager, on_lost: Callable[[], None]) -> None:
        self._salvager = salvager
        self._asked: dict[wire.RequestId, str] = {}
        self._questions: set[wire.RequestId] = set()
        self.lose = on_lost
        """Tells the owner that the stream has ended."""

    def put_on(self, read: Any, write: Any) -> tuple[Any, Any]:
        """The streams of a transport with this tap on both."""
        return TappedRead(read, self), _TappedWrite(write, self)

    @property
    def waiting(self) -> int:
        """How many answers are expected."""
        return len(self._asked)

    def note(self, item: SessionMessage) -> None:
        """Remembers the method of a request that goes out, until nobody waits for its answer."""
        message = item.message
        if isinstance(message, wire.JSONRPCNotification) and message.method == _CANCELLATION:
            self._asked.pop((message.params or {}).get("requestId", ""), None)
        if isinstance(message, wire.JSONRPCRequest) and message.method in _WATCHED:
            self._asked[message.id] = message.method

    def forget(self, item: SessionMessage) -> None:
        """Looks at what has gone out: a question of the server's may be answered by now."""
        message = item.message
        if isinstance(message, wire.JSONRPCResponse | wire.JSONRPCError) and message.id is not None:
            self._questions.discard(message.id)

    def treat(self, item: SessionMessage | Exception) -> SessionMessage | Exception | None:
        """Salvages an answer that comes in, and keeps a flood of questions from those who wait."""
        if isinstance(item, Exception):
            return item
        message = item.message
        if isinstance(message, wire.JSONRPCRequest):
            if len(self._questions) >= _QUESTIONS_MAX or message.id in self._questions:
                return None
            self._questions.add(message.id)
            return item
        if isinstance(message, wire.JSONRPCNotification) and message.method == _CANCELLATION:
            self._questions.discard((message.params or {}).get("requestId", ""))
            return item
        if isinstance(message, wire.JSONRPCNotification) and message.method == _PROGRESS:
            params = _drop_odd_numbers(message.params or {})
            item.message = message.model_copy(update={"params": params})
            return item
        if not isinstance(message, wire.JSONRPCResponse | wire.JSONRPCError) or message.id is None:
            return item
        method = self._asked.pop(message.id, None)
        if method is None or isinstance(message, wire.JSONRPCError):
            return item
        result = self._salvager.treat(method, message.result)
        if result is not message.result:
            item.message = message.model_copy(update={"result": result})
        return item


def _drop_odd_numbers(params: Mapping[str, Any]) -> dict[str, Any]:
    """Progress as the SDK can take it: a number that is too large for a float would end its session."""
    return {
        key: value
        for key, value in params.items()
        if key not in ("progress", "total") or as_number(value) is not None
    }


class _TappedStream:
    """What both tapped streams share: they close with, and otherwise are, the stream inside."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._inner.__aexit__(kind, value, traceback)


class TappedRead(_TappedStream):
    """A stream of messages that somebody looks at."""

    def __init__(self, inner: Any, reader: Reader) -> None:
        super().__init__(inner)
        self._reader = reader

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        """The next message, until there is none."""
        while True:
            try:
                item = await self._inner.__anext__()
            except (StopAsyncIteration, anyio.ClosedResourceError):
                self._reader.lose()
                raise
            if (treated := self._reader.treat(item)) is not None:
                return treated

    async def receive(self) -> SessionMessage | Exception:
        """The next message."""
        while True:
            try:
                item = await self._inner.receive()
            except (anyio.EndOfStream, anyio.ClosedResourceError):
                self._reader.lose()
                raise
            if (treated := self._reader.treat(item)) is not None:
                return treated


class _TappedWrite(_TappedStream):
    def __init__(self, inner: Any, tap: Tap) -> None:
        super().__init__(inner)
        self._tap = tap

    async def send(self, item: SessionMessage) -> None:
        self._tap.note(item)
        message = item.message
        if isinstance(message, wire.JSONRPCNotification) and message.method == _CANCELLATION:
            # A caller who gave up must be free at once, also where the server takes nothing in.
            spawn(lambda: self._send_quietly(item), "converser: cancellation")
            return
        try:
            await self._inner.send(item)
        finally:
            self._tap.forget(item)

    async def _send_quietly(self, item: SessionMessage) -> None:
        with anyio.move_on_after(_CANCELLATION_PATIENCE), suppress(*_BROKEN):
            await self._inner.send(item)
