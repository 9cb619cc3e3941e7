# SPDX-License-Identifier: Apache-2.0
"""What Ctrl-C means: the first one stops what runs, a second one leaves."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType

import anyio


class Interrupts:
    """Counts interrupts since the person last typed something."""

    def __init__(self) -> None:
        self._count = 0
        self._work: anyio.CancelScope | None = None
        self._everything: anyio.CancelScope | None = None

    @contextmanager
    def listening(self) -> Generator[None, None, None]:
        """Takes the signal over from Python, which would end the program; leaves all at the second one."""
        loop = asyncio.get_running_loop()

        def pass_on(_: int, __: FrameType | None) -> None:
            loop.call_soon_threadsafe(self.hear)

        before = signal.signal(signal.SIGINT, pass_on)
        try:
            with anyio.CancelScope() as self._everything:
                yield
        finally:
            self._everything = None
            signal.signal(signal.SIGINT, before)

    @contextmanager
    def stopping(self) -> Generator[anyio.CancelScope, None, None]:
        """Work that the first interrupt stops."""
        with anyio.CancelScope() as scope:
            self._work = scope
            try:
                yield scope
            finally:
                self._work = None

    def forget(self) -> None:
        """The person goes on."""
        self._count = 0

    @property
    def is_second(self) -> bool:
        """Whether it is time to leave."""
        return self._count >= 2

    def hear(self) -> None:
        """One more interrupt."""
        self._count += 1
        if self._work is not None:
            self._work.cancel()
        if self.is_second and self._everything is not None:
            self._everything.cancel()
