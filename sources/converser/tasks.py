# SPDX-License-Identifier: Apache-2.0
"""Starts a task that belongs to nobody's task group, and tells whether one is cancelled, on asyncio and on trio."""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, TypeVar, cast

import anyio
import anyio.lowlevel
import anyio.to_thread
from typing_extensions import ParamSpec

_Parts = ParamSpec("_Parts")
_Given = TypeVar("_Given")
_THREADS_MAX = 16
_threads: list[ThreadPoolExecutor] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_threads.clear)
_running: set[asyncio.Task[None]] = set()


def find_loop() -> Any:
    """What stands for the event loop that runs now."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        import trio

        return trio.lowlevel.current_trio_token()


def is_closed(loop: Any) -> bool:
    """Whether an event loop is over, though nobody may have ended its tasks; trio always ends them."""
    return isinstance(loop, asyncio.AbstractEventLoop) and loop.is_closed()


def spawn(work: Callable[[], Coroutine[Any, Any, None]], name: str) -> None:
    """Runs `work`, which must not raise, beside everything else; the loop's end cancels it."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        _spawn_on_trio(work, name)
        return
    task = loop.create_task(work(), name=name)
    _running.add(task)  # the loop itself holds tasks weakly
    task.add_done_callback(_running.discard)


async def run_aside(
    work: Callable[_Parts, _Given], *parts: _Parts.args, **named: _Parts.kwargs
) -> _Given:
    """Runs work that would hold up the loop in a thread, and waits for it also when cancelled.

    Not in one of anyio's: where a loop is just stopped, those keep the whole program from its end.
    """
    await anyio.lowlevel.checkpoint()
    given: list[_Given] = []
    context = copy_context()

    def call() -> None:
        given.append(context.run(work, *parts, **named))

    with anyio.CancelScope(shield=True):
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            await anyio.to_thread.run_sync(call)
        else:
            if not _threads:
                _threads.append(ThreadPoolExecutor(_THREADS_MAX, "converser"))
            await loop.run_in_executor(_threads[0], call)
    return given[0]


def is_cancelled() -> bool:
    """Whether this task is really cancelled; foreign code may raise a cancellation of its own."""
    return anyio.current_effective_deadline() == -math.inf


def is_from_above(failure: BaseException) -> bool:
    """Whether this is the end of a task or of the program, alone or in a group, and no failure of what it met."""
    parts: Any = getattr(failure, "exceptions", None)
    if isinstance(parts, tuple):
        return any(map(is_from_above, cast("tuple[BaseException, ...]", parts)))
    ends = (KeyboardInterrupt, SystemExit, GeneratorExit, anyio.get_cancelled_exc_class())
    return isinstance(failure, ends)


class GaveUp(Exception):
    """Foreign code was not cancelled by us, and yet ended as if it had been."""


async def shelter(work: Callable[[], Awaitable[_Given]]) -> _Given:
    """Runs foreign code, whose own cancellation is a failure like any other, and never that of our task.

    In a task of its own: only there is it known which of the two a cancellation is.
    """
    given: list[_Given] = []
    failure: Exception = GaveUp("its own work was cancelled")

    async def attempt() -> None:
        nonlocal failure
        try:
            given.append(await work())
        except Exception as raised:
            failure = raised
        except anyio.get_cancelled_exc_class():
            if is_cancelled():
                raise

    async with anyio.create_task_group() as group:
        group.start_soon(attempt)
    if not given:
        raise failure
    return given[0]


def is_of_loop(cancellation: BaseException) -> bool:
    """Whether the event loop cancels a task, or a part of the task that failed: anyio tells so in a message.

    On trio these look alike, and there whatever is begun at the loop's end is cancelled with it.
    """
    return isinstance(cancellation, asyncio.CancelledError) and not cancellation.args


def _spawn_on_trio(work: Callable[[], Coroutine[Any, Any, None]], name: str) -> None:
    import trio

    trio.lowlevel.spawn_system_task(work, name=name)
