# SPDX-License-Identifier: Apache-2.0
"""What a server sends of its own accord: requests, notifications and progress, each bounded in number."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.abc
from mcp.shared.dispatcher import CallOptions, OnNotify, OnRequest, Outbound, ProgressFnT
from mcp.shared.exceptions import MCPError
from mcp.shared.message import MessageMetadata
from mcp.shared.transport_context import TransportContext
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS
from pydantic import ValidationError

from ..narrowing import as_number

Arrival = tuple[Any, str, "dict[str, Any] | None"]
"""An id or a listener, a method, and its parameters."""

HANDLERS_MAX = 100
_log = logging.getLogger(__name__)
_TRANSPORT = TransportContext(kind="stdio", can_send_request=True)


@dataclass(slots=True, kw_only=True)
class InboundContext:
    """What the SDK's session wants to know of a message that came in."""

    outbound: Outbound
    request_id: int | str | None
    transport: TransportContext = _TRANSPORT
    message_metadata: MessageMetadata = None
    can_send_request: bool = True
    cancel_requested: anyio.Event = field(default_factory=anyio.Event)

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """Asks the server back."""
        return await self.outbound.send_raw_request(method, params, opts)

    async def notify(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> None:
        """Tells the server something."""
        await self.outbound.notify(method, params, opts)

    async def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Clients do not report progress."""


class Inbox:
    """Runs handlers for what comes in, at most so many at once; a flood costs its own messages."""

    def __init__(
        self,
        group: anyio.abc.TaskGroup,
        on_request: OnRequest,
        on_notify: OnNotify,
        outbound: Outbound,
        respond: Callable[[dict[str, Any]], None],
    ) -> None:
        self._group = group
        self._on_request = on_request
        self._on_notify = on_notify
        self._outbound = outbound
        self._respond = respond
        self._scopes: dict[Any, anyio.CancelScope] = {}
        self._handlers = 0
        self.dropped = 0

    @property
    def is_full(self) -> bool:
        """Whether nothing can be begun before something has ended."""
        return self._handlers >= HANDLERS_MAX

    async def take(
        self, identifier: int | str | ProgressFnT | None, method: str, params: dict[str, Any] | None
    ) -> None:
        """Takes one message: a request has an id, a notification none, and progress a listener."""
        if identifier is None:
            await self._take_notification(method, params)
        elif isinstance(identifier, int | str):
            self._take_request(identifier, method, params)
        else:
            self._take_progress(identifier, params or {})

    def _take_request(self, identifier: Any, method: str, params: Any) -> None:
        """Answers a request of the server's in a task of its own."""
        if self.is_full:
            self._refuse(identifier, INTERNAL_ERROR, "Too many requests at once")
            return
        self._begin(self._answer, identifier, method, params)

    async def _take_notification(self, method: str, params: dict[str, Any] | None) -> None:
        """Hands a notification on, which waits for nothing; a cancellation ends the request that it names."""
        if method == "notifications/cancelled":
            identifier = (params or {}).get("requestId")
            if isinstance(identifier, int | str) and identifier in self._scopes:
                self._scopes[identifier].cancel()
        try:
            context = InboundContext(outbound=self._outbound, request_id=None)
            await self._on_notify(context, method, params)
        except Exception:
            _log.exception("A handler for a notification of a server raised")

    def _take_progress(self, listener: ProgressFnT, params: dict[str, Any]) -> None:
        """Tells the caller of a request how far it is."""
        progress, total = as_number(params.get("progress")), as_number(params.get("total"))
        if progress is None or self.is_full:
            self.dropped += 1
            return
        message = params.get("message")
        self._begin(listener, progress, total, message if isinstance(message, str) else None)

    def _begin(self, work: Callable[..., Awaitable[None]], *parts: Any) -> None:
        self._handlers += 1
        self._group.start_soon(self._contain, work, parts)

    async def _contain(self, work: Callable[..., Awaitable[None]], parts: tuple[Any, ...]) -> None:
        try:
            await work(*parts)
        except Exception:
            _log.exception("A handler for a message of a server raised")
        finally:
            self._handlers -= 1

    async def _answer(self, identifier: Any, method: str, params: Any) -> None:
        context = InboundContext(outbound=self._outbound, request_id=identifier)
        with anyio.CancelScope() as scope:
            self._scopes[identifier] = scope
            try:
                result = await self._on_request(context, method, params)
            except MCPError as failure:
                self._refuse(identifier, failure.code, failure.message)
            except ValidationError:
                self._refuse(identifier, INVALID_PARAMS, "Invalid request parameters")
            except Exception:
                _log.exception("A handler for %s raised", method)
                self._refuse(identifier, INTERNAL_ERROR, "The client's handler failed")
            else:
                self._respond({"id": identifier, "result": result})
            finally:
                self._scopes.pop(identifier, None)

    def _refuse(self, identifier: Any, code: int, message: str) -> None:
        self._respond({"id": identifier, "error": {"code": code, "message": message}})
