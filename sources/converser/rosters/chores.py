# SPDX-License-Identifier: Apache-2.0
"""Work in the background that belongs to an object and not to a block, and ends when the object says so."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import anyio

from ..tasks import spawn

_log = logging.getLogger(__name__)


class Chores:
    """Runs chores beside everything else; one that fails is logged and harms no other."""

    def __init__(self) -> None:
        self._running: dict[anyio.CancelScope, anyio.Event] = {}

    def start(self, work: Callable[[], Coroutine[Any, Any, None]], name: str) -> None:
        """Begins a chore; returns at once."""
        scope, ended = anyio.CancelScope(), anyio.Event()
        self._running[scope] = ended

        async def run() -> None:
            try:
                with scope:
                    await work()
            except Exception:
                _log.exception("A chore failed: %s", name)
            finally:
                del self._running[scope]
                ended.set()

        spawn(run, name)

    async def end(self) -> None:
        """Cancels all chores, and waits until they have ended."""
        running = dict(self._running)
        for scope in running:
            scope.cancel()
        for ended in running.values():
            await ended.wait()


async def repeat(period: float, work: Callable[[], Awaitable[object]]) -> None:
    """Does something again and again, with so many seconds between, whether it fails or not."""
    while True:
        await anyio.sleep(period)
        try:
            await work()
        except Exception:
            _log.exception("A chore that is done again and again failed")


async def finish(
    work: Callable[[], Coroutine[Any, Any, None]], name: str, *, waits: bool = True
) -> None:
    """Does something in a task of its own: who is cancelled again while it is waited for leaves it whole."""
    ended, failures = anyio.Event(), list[Exception]()

    async def run() -> None:
        try:
            await work()
        except Exception as failure:
            failures.append(failure)
        finally:
            ended.set()

    spawn(run, name)
    if waits:
        with anyio.CancelScope(shield=True):
            await ended.wait()
        if failures:
            raise failures[0]
