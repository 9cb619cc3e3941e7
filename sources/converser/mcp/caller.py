# SPDX-License-Identifier: Apache-2.0
"""Makes the calls of one client: each within its deadline, all ended with the connection, and counted."""

from __future__ import annotations

import logging
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import anyio
from mcp.client.session import ClientSession
from mcp.shared.dispatcher import ProgressFnT

from ..hygiene import clean_text
from ..invokers import Context
from ..tasks import shelter
from .calls import request_call
from .deadlines import CallClock
from .failures import MESSAGE_LIMIT, Site, report_lost, report_timeout

_KEEPS_DEADLINES = frozenset({"stdio", "in-process"})
"""Transports that keep a simple deadline themselves; the others' clock starts after the write."""
_SMOOTHING = 0.2
_log = logging.getLogger(__name__)


class Caller:
    """Calls tools on whatever session there is, and knows how that went."""

    def __init__(self, transport: str, *, asks_people: bool) -> None:
        self._transport = transport
        self._asks_people = asks_people
        self._clocks: set[CallClock] = set()
        self._settlers: set[anyio.Event] = set()
        self.calls = 0
        self.failures = 0
        self.latency: float | None = None
        """Seconds that a call takes, smoothed."""
        self.last_seen: float | None = None
        """When the server last answered, as `time.time` has it."""

    async def call(
        self, session: ClientSession, site: Site, arguments: dict[str, Any], context: Context
    ) -> dict[str, Any]:
        """One call; raises what the SDK raises, or a timeout of ours."""
        begun = time.perf_counter()
        self.calls += 1
        try:
            if self._needs_clock(context):
                result = await self._call_by_clock(session, site, arguments, context)
            else:
                result = await request_call(session, site, arguments, seconds=context.timeout)
        except BaseException:
            self.failures += 1
            raise
        took = time.perf_counter() - begun
        self.latency = (
            took if self.latency is None else self.latency + _SMOOTHING * (took - self.latency)
        )
        self.last_seen = time.time()
        return result

    def end_calls(self) -> None:
        """Ends the calls that have a clock; the others end with the stream, or at their deadline."""
        for clock in tuple(self._clocks):
            clock.scope.cancel()

    async def settle(self) -> None:
        """Waits until the calls that are under way, and have a clock, are over."""
        under_way = frozenset(self._clocks)
        while under_way & self._clocks:
            ended = anyio.Event()
            self._settlers.add(ended)
            await ended.wait()

    @contextmanager
    def hold_clocks(self) -> Generator[None]:
        """Stops the clocks of all calls while a person is asked."""
        held = tuple(self._clocks)
        for clock in held:
            clock.pause()
        try:
            yield
        finally:
            for clock in held:
                clock.resume()

    def _needs_clock(self, context: Context) -> bool:
        """Whether a simple deadline will not do: a clock takes a tenth of a quick call.

        A call in process runs in its caller's own task, where the end of the connection is not
        heard; without a deadline it needs a clock to end it.
        """
        return (
            self._transport not in _KEEPS_DEADLINES
            or self._asks_people
            or context.on_progress is not None
            or context.idle_timeout is not None
            or context.timeout_maximum is not None
            or (context.timeout is None and self._transport == "in-process")
        )

    async def _call_by_clock(
        self, session: ClientSession, site: Site, arguments: dict[str, Any], context: Context
    ) -> dict[str, Any]:
        clock = CallClock(context)
        listener = _adapt_progress(context, clock)
        self._clocks.add(clock)
        try:
            with clock.scope:
                return await request_call(session, site, arguments, on_progress=listener)
        finally:
            self._clocks.discard(clock)
            while self._settlers:
                self._settlers.pop().set()
        if not clock.has_run_out:
            raise report_lost(site)
        if clock.has_reached_maximum:
            raise report_timeout(replace(site, timeout=context.timeout_maximum))
        if clock.has_progressed:
            silence = context.idle_timeout or context.timeout
            raise report_timeout(replace(site, timeout=silence), verb="made no progress")
        raise report_timeout(site)


def _adapt_progress(context: Context, clock: CallClock) -> ProgressFnT:
    """The SDK's callback: it moves the clock, and tells a listener; one that raises harms no call."""

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        clock.note_progress()
        if (listener := context.on_progress) is None:
            return
        try:
            words = clean_text(message, limit=MESSAGE_LIMIT) if message else None
            await shelter(lambda: listener(progress, total, words))
        except Exception:
            _log.exception("A listener for progress raised")

    return hear
