# SPDX-License-Identifier: Apache-2.0
"""Requests and answers over a server process: the SDK's typed session stands on this, without its plumbing.

The SDK calls the interface that this fills (`Dispatcher`) provisional; so outside of this folder only
`http/direct.py` knows of it, and the SDK's own transport can stand in at any time.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import anyio
import anyio.abc
import anyio.lowlevel
from mcp.shared.dispatcher import (
    CallOptions,
    Dispatcher,
    OnNotify,
    OnNotifyIntercept,
    OnRequest,
    ProgressFnT,
    run_notify_intercept,
)
from mcp.shared.exceptions import MCPError
from mcp.shared.transport_context import TransportContext
from mcp_types import CONNECTION_CLOSED, PARSE_ERROR, REQUEST_TIMEOUT

from ...tasks import spawn
from ..failures import UNSENT, blame_answer
from ..leniency import has_too_many_parts, recover_identifiers
from ..messages import (
    compose_message,
    decode_messages,
    encode_message,
    normalize_identifier,
    read_error,
)
from ..narrowing import as_dictionary
from ..oversize.running import Oversize, reduce_message, spill_message
from ..oversize.spills import Bounds, Spill
from ..tracing import trace_request
from .inbound import Arrival, Inbox
from .process import ServerProcess

Treat = Callable[[str, "dict[str, Any]"], "dict[str, Any]"]
"""Salvages what can be saved of an answer, by the method that was asked."""

ARRIVALS_MAX = 1_000
LARGE = 1024 * 1024
"""Bytes of a message that may take a moment to look at."""
_TOOLS_CHANGED = "notifications/tools/list_changed"
UNSENT_MAX = 64 * 1024 * 1024
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Pending:
    """A request that waits for its answer."""

    future: asyncio.Future[dict[str, Any]]
    on_progress: ProgressFnT | None
    answer: dict[str, Any] | MCPError | None = None

    def settle(self) -> None:
        """Gives the answer to whoever waits for it."""
        if self.future.done() or self.answer is None:
            return
        if isinstance(self.answer, MCPError):
            self.future.set_exception(self.answer)
        else:
            self.future.set_result(self.answer)


class LeanDispatcher(Dispatcher[TransportContext]):
    """Sends each request under an id that cannot be guessed, and resolves it by that id once."""

    def __init__(self, on_lost: Callable[[], None], treat: Treat, bounds: Bounds) -> None:
        self._on_lost = on_lost
        self._treat = treat
        self._bounds = bounds
        self._process: ServerProcess | None = None
        self._pending: dict[int | str, _Pending] = {}
        self._arrivals: asyncio.Queue[Arrival | _Pending | None] = asyncio.Queue()
        self._intercept: OnNotifyIntercept | None = None
        self._change_waits = False
        self._closed = False
        self._ended = False
        self._reductions = 0
        self.strays = 0
        """Lines and answers that belong to no request of ours."""

    def attach(self, process: ServerProcess) -> None:
        """Names the process to speak to."""
        self._process = process

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """Sends a request and waits for its answer; the clock runs from before the write."""
        options = opts or {}
        identifier = options.get("request_id") or self._mint()
        with trace_request(method, params, identifier):
            return await self._request(method, params, identifier, options)

    async def _request(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        identifier: int | str,
        options: CallOptions,
    ) -> dict[str, Any]:
        on_progress = options.get("on_progress")
        pending = _Pending(asyncio.get_running_loop().create_future(), on_progress)
        body = compose_message(method, params, identifier, wants_progress=on_progress is not None)
        self._write(body)
        self._pending[identifier] = pending
        timeout = options.get("timeout")
        timer = self._start_timer(pending, method, timeout) if timeout is not None else None
        abandoned = True
        try:
            answer = await pending.future
            abandoned = False
            return self._treat(method, answer)
        except MCPError as failure:
            abandoned = failure.code == REQUEST_TIMEOUT and failure.data is _TIMED_OUT
            raise
        finally:
            self._pending.pop(identifier, None)
            if timer is not None:
                timer.cancel()
            if abandoned and options.get("cancel_on_abandon", True):
                self._cancel(identifier)

    async def notify(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> None:
        """Sends a notification; after the end it is dropped."""
        with suppress(MCPError):
            self._write(compose_message(method, params, None))

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: OnNotifyIntercept | None = None,
        *,
        task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Serves what the server sends until its stream ends."""
        self._intercept = on_notify_intercept
        async with anyio.create_task_group() as group:
            inbox = Inbox(group, on_request, on_notify, self, self._respond)
            task_status.started()
            while (item := await self._arrivals.get()) is not None:
                if isinstance(item, _Pending):
                    item.settle()
                    continue
                if item[1] == _TOOLS_CHANGED:
                    self._change_waits = False
                if inbox.is_full:  # of such as may be done as soon as they have their turn
                    await anyio.lowlevel.checkpoint()
                await inbox.take(*item)
            group.cancel_scope.cancel()

    def take_line(self, line: bytes | Spill) -> None:
        """Takes one line of the server's; what is broken fails the one call that it answers."""
        if isinstance(line, Spill):
            self._reduce(line)
        elif len(line) <= LARGE:
            self._take_message(line)
        else:  # after others had their turn: what comes here took long already
            self._reductions += 1
            asyncio.get_running_loop().call_soon(self._take_large, line)

    def _take_large(self, line: bytes) -> None:
        try:
            if has_too_many_parts(line, self._bounds.parts):
                self._reduce(spill_message(line, self._bounds))
            else:
                self._take_message(line)
        finally:
            self._conclude_reduction()

    def _take_message(self, line: bytes) -> None:
        messages = decode_messages(line)
        if messages is None:
            self._fail_broken(line, "it is not valid JSON, or nested too deeply")
        for message in messages or ():
            self._take(message)

    def _reduce(self, spill: Spill) -> None:
        """Has an answer made small that is too large; meanwhile others come and go."""
        if self._find_waiting(spill.edges) is None:
            self.strays += 1
            spill.discard()
            return
        self._reductions += 1
        spawn(lambda: self._take_reduced(spill), "converser: oversized message")

    async def _take_reduced(self, spill: Spill) -> None:
        try:
            self._take_message(await reduce_message(spill, self._bounds))
        except Oversize as failure:
            self._fail_broken(spill.edges, failure.keep(), failure.remedy)
        finally:
            self._conclude_reduction()

    def _conclude_reduction(self) -> None:
        self._reductions -= 1
        if self._ended:
            self._abandon()

    def lose(self) -> None:
        """The stream has ended: nothing more is sent, and the owner hears of it at once."""
        if not self._closed:
            self._closed = True
            self._on_lost()

    def end(self) -> None:
        """All that can be known of the end is known: whoever waits hears of it."""
        self.lose()
        self._ended = True
        self._abandon()

    def _abandon(self) -> None:
        """Ends whoever still waits; an answer that has come, and is being made small, counts."""
        if self._reductions:
            return
        self._arrivals.put_nowait(None)
        for pending in self._pending.values():
            pending.settle()
            if not pending.future.done():
                pending.future.set_exception(MCPError(CONNECTION_CLOSED, "Connection closed"))

    def _take(self, message: dict[str, Any]) -> None:
        if "method" in message:
            self._take_call(message)
            return
        pending = self._pending.get(normalize_identifier(message.get("id")))
        if pending is None or pending.answer is not None or pending.future.done():
            self.strays += 1
            return
        result = as_dictionary(message.get("result"))
        pending.answer = read_error(message.get("error")) if result is None else result
        if pending.on_progress is None:
            pending.settle()
        else:
            self._arrivals.put_nowait(pending)  # behind the progress that came before

    def _take_call(self, message: dict[str, Any]) -> None:
        """Sorts what the server sends of its own accord; handlers run in tasks, not in this callback."""
        method, params = message["method"], as_dictionary(message.get("params"))
        identifier = message.get("id")
        if not isinstance(method, str) or not isinstance(identifier, int | str | None):
            self.strays += 1
        elif identifier is not None:
            self._queue(identifier, method, params)
        elif not run_notify_intercept(self._intercept, method, params):
            self._take_notification(method, params)

    def _take_notification(self, method: str, params: dict[str, Any] | None) -> None:
        """Sorts a notification; that the tools have changed is never lost in a flood, and waits once."""
        if method == _TOOLS_CHANGED:
            if not self._change_waits:
                self._change_waits = True
                self._arrivals.put_nowait((None, method, params))
            return
        if method == "notifications/progress" and params:
            pending = self._pending.get(normalize_identifier(params.get("progressToken")))
            if pending is not None and pending.on_progress is not None:
                self._queue(pending.on_progress, method, params)
        self._queue(None, method, params)

    def _queue(self, *arrival: Any) -> None:
        if self._arrivals.qsize() < ARRIVALS_MAX:
            self._arrivals.put_nowait(arrival)
        else:
            self.strays += 1

    def _fail_broken(self, line: bytes, reason: str, remedy: str = "") -> None:
        """Fails the call that a broken line answers."""
        if (pending := self._find_waiting(line)) is not None:
            pending.future.set_exception(blame_answer(PARSE_ERROR, reason, remedy))
        else:
            self.strays += 1

    def _find_waiting(self, line: bytes) -> _Pending | None:
        """The request that a line answers, by the ids in it; nobody can guess an id, so one is proof."""
        waiting = [self._pending[i] for i in recover_identifiers(line) if i in self._pending]
        return waiting[0] if len(waiting) == 1 and not waiting[0].future.done() else None

    def _respond(self, answer: dict[str, Any]) -> None:
        with suppress(MCPError):
            self._write({"jsonrpc": "2.0", **answer})

    def _write(self, message: dict[str, Any]) -> None:
        process = None if self._closed else self._process
        if process is not None and process.unsent > UNSENT_MAX:
            raise MCPError(REQUEST_TIMEOUT, "Timed out: the server does not read its input")
        if process is None or not process.write(encode_message(message) + b"\n"):
            raise MCPError(CONNECTION_CLOSED, "Connection closed", UNSENT)

    def _cancel(self, identifier: int | str) -> None:
        params = {"requestId": identifier, "reason": "The caller does not wait any more."}
        with suppress(MCPError):
            self._write(compose_message("notifications/cancelled", params, None))

    def _start_timer(self, pending: _Pending, method: str, timeout: float) -> asyncio.TimerHandle:
        def expire() -> None:
            if not pending.future.done():
                words = f"Request {method!r} timed out"
                pending.future.set_exception(MCPError(REQUEST_TIMEOUT, words, _TIMED_OUT))

        return asyncio.get_running_loop().call_later(timeout, expire)

    def _mint(self) -> int:
        while (identifier := secrets.randbits(52)) in self._pending:
            pass
        return identifier


_TIMED_OUT = "converser/timed-out"
