# SPDX-License-Identifier: Apache-2.0
"""The deadline of one call: set before the write, moved by progress, stopped while a person is asked."""

from __future__ import annotations

import math
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace

import anyio

from ..invokers import Context


class CallClock:
    """Runs from the beginning of a call; when it runs out, the call's scope is cancelled."""

    __slots__ = ("_holds", "_idle", "_left", "_maximum", "_paused_at", "has_progressed", "scope")

    def __init__(self, context: Context) -> None:
        now = anyio.current_time()
        self._idle = context.idle_timeout or context.timeout or math.inf
        self._maximum = now + (context.timeout_maximum or math.inf)
        self._holds = 0
        self._paused_at: float | None = None
        self._left = 0.0
        self.has_progressed = False
        """Whether there was a sign of progress, so that it is silence that ends the call."""
        first = now + (self._idle if context.timeout is None else context.timeout)
        self.scope = anyio.CancelScope(deadline=min(first, self._maximum))

    @property
    def has_run_out(self) -> bool:
        """Whether the deadline, and not somebody else, has ended the call."""
        return self._paused_at is None and self.scope.deadline <= anyio.current_time()

    @property
    def has_reached_maximum(self) -> bool:
        """Whether it was the hard maximum that ended the call."""
        return self.scope.deadline >= self._maximum

    def note_progress(self) -> None:
        """The server works: it may be silent for another while, within the maximum."""
        self.has_progressed = True
        if self._paused_at is None:
            self.scope.deadline = min(self._maximum, anyio.current_time() + self._idle)

    def pause(self) -> None:
        """Stops while a person is asked, which takes as long as it takes."""
        self._holds += 1
        if self._paused_at is None:
            self._paused_at = anyio.current_time()
            self._left = self.scope.deadline - self._paused_at
            self.scope.deadline = math.inf

    def resume(self) -> None:
        """Goes on with the time that was left, once every question has its answer."""
        self._holds -= 1
        if self._holds == 0 and self._paused_at is not None:
            now = anyio.current_time()
            self._maximum += now - self._paused_at
            self._paused_at = None
            self.scope.deadline = now + self._left


class Deadlines:
    """Deadlines of several who wait for one thing, and which stand still together for a person."""

    def __init__(self) -> None:
        self._scopes: dict[anyio.CancelScope, float] = {}
        """Each with the seconds that it has left, while it stands still."""
        self._holds = 0

    @contextmanager
    def within(self, seconds: float) -> Generator[anyio.CancelScope]:
        """Leaves the block after so many seconds."""
        with anyio.CancelScope() as scope:
            self._scopes[scope] = seconds
            if not self._holds:
                scope.deadline = anyio.current_time() + seconds
            try:
                yield scope
            finally:
                self.lift(scope)

    def lift(self, scope: anyio.CancelScope) -> None:
        """From now on this one has no deadline of ours."""
        if self._scopes.pop(scope, None) is not None:
            scope.deadline = math.inf

    @contextmanager
    def hold(self) -> Generator[None]:
        """Stands still in the block."""
        if self._holds == 0:
            now = anyio.current_time()
            for scope in self._scopes:
                self._scopes[scope] = scope.deadline - now
                scope.deadline = math.inf
        self._holds += 1
        try:
            yield
        finally:
            self._holds -= 1
            if self._holds == 0:
                now = anyio.current_time()
                for scope, left in self._scopes.items():
                    scope.deadline = now + left


class PatientTime:
    """Tells the time, which stands still while a person is asked."""

    def __init__(self) -> None:
        self._holds = 0
        self._since = self._waited = 0.0

    def now(self) -> float:
        """Seconds, of which only differences mean something."""
        return (self._since if self._holds else time.monotonic()) - self._waited

    @contextmanager
    def hold(self) -> Generator[None]:
        """Stands still in the block."""
        if self._holds == 0:
            self._since = time.monotonic()
        self._holds += 1
        try:
            yield
        finally:
            self._holds -= 1
            if self._holds == 0:
                self._waited += time.monotonic() - self._since


def find_limit(context: Context) -> float | None:
    """Seconds that a caller is ready to wait for the first sign of an answer."""
    limits = [s for s in (context.timeout, context.timeout_maximum) if s is not None]
    return min(limits, default=None)


def shorten(context: Context, seconds: float) -> Context:
    """The same context after some of its time has gone by; never without any time at all."""
    if find_limit(context) is None:
        return context

    def subtract(limit: float | None) -> float | None:
        return None if limit is None else max(0.001, limit - seconds)

    return replace(
        context,
        timeout=subtract(context.timeout),
        timeout_maximum=subtract(context.timeout_maximum),
        idle_timeout=context.idle_timeout or context.timeout,
    )
