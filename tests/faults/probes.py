# SPDX-License-Identifier: Apache-2.0
"""Looks at this process from inside: how long it stood still, how it grew, and what a fault left behind."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import os
import time
import uuid
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

_PATIENCE = 4.0
_BEAT = 0.02
_LOAD_MAX = 2.0
_PAGE = os.sysconf("SC_PAGE_SIZE")
MARK = "FAULT_MARK"


def create_mark() -> str:
    """A mark for the environment of a process, by which its whole tree can be found."""
    return uuid.uuid4().hex


def find_processes(mark: str) -> dict[int, str]:
    """The living processes that carry a mark, whoever their parent is by now, with their commands."""
    found: dict[int, str] = {}
    wanted = f"{MARK}={mark}".encode()
    for place in Path("/proc").iterdir():
        if not place.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            if wanted in (place / "environ").read_bytes().split(b"\0"):
                words = (place / "cmdline").read_bytes().split(b"\0")
                found[int(place.name)] = b" ".join(words).decode().strip()
    return found


def measure_memory() -> float:
    """Megabytes that this process has in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE / 1e6


def _give_back_memory() -> None:
    """Gives back what earlier faults have used: in memory that is only idle, growth would not show."""
    gc.collect()
    with contextlib.suppress(AttributeError):  # only glibc has it
        ctypes.CDLL(None).malloc_trim(0)


class Probe:
    """Knows what there was before, and what happened since."""

    def __init__(self, marks: list[str]) -> None:
        self._marks = marks
        self._files = self._list_files()
        self._tasks = asyncio.all_tasks()
        _give_back_memory()
        self._memory = measure_memory()
        self.stall = 0.0
        self.growth = 0.0
        self.complaints: list[str] = []
        asyncio.get_running_loop().set_exception_handler(self._complain)

    @staticmethod
    def _list_files() -> dict[str, str]:
        found: dict[str, str] = {}
        for place in Path("/proc/self/fd").iterdir():
            with contextlib.suppress(OSError):
                found[place.name] = str(place.readlink())
        return found

    def _complain(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self.complaints.append(f"{context['message']}: {context.get('exception')!r}"[:300])

    @contextlib.asynccontextmanager
    async def beating(self) -> AsyncGenerator[None]:
        """Measures in the background."""
        task = asyncio.create_task(self._beat())
        self._tasks |= {task}
        try:
            yield
        finally:
            task.cancel()

    async def _beat(self) -> None:
        """Counts the work of this thread between two beats: that is what others had to wait for.

        Time in which nothing was done here counts only beyond what a loaded machine takes.
        """
        while True:
            begun, begun_work = time.monotonic(), time.thread_time()
            await asyncio.sleep(_BEAT)
            work = time.thread_time() - begun_work
            self.stall = max(self.stall, work, time.monotonic() - begun - _LOAD_MAX)
            self.growth = max(self.growth, measure_memory() - self._memory)

    async def find_leaks(self) -> list[str]:
        """What is still there though it should not be; gives it a few seconds to go."""
        end = time.monotonic() + _PATIENCE
        while leaks := self._find_leaks_now():
            if time.monotonic() > end:
                return leaks
            gc.collect()
            await asyncio.sleep(0.05)
        return []

    def _find_leaks_now(self) -> list[str]:
        current = asyncio.current_task()
        tasks = [
            f"task {task.get_name()}: {task.get_coro()}"
            for task in asyncio.all_tasks() - self._tasks
            if task is not current
        ]
        files = self._list_files()
        news = [f"file {files[n]}" for n in files if files[n] != self._files.get(n)]
        extra = news if len(files) > len(self._files) else []
        processes = [
            f"process {pid}: {command[-80:]}"
            for mark in self._marks
            for pid, command in find_processes(mark).items()
        ]
        return [*processes, *tasks, *extra]
