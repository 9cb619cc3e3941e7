# SPDX-License-Identifier: Apache-2.0
"""The terminal itself: whether there is one, and its echo."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager


def is_interactive() -> bool:
    """Whether a person can be asked: someone types, and someone sees the questions."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()


def is_dumb() -> bool:
    """Whether the terminal cannot draw anything again."""
    return os.environ.get("TERM", "") in {"", "dumb", "unknown"} and sys.platform != "win32"


@contextmanager
def hush() -> Generator[None, None, None]:
    """What is typed meanwhile is not echoed into the answer; it waits for the next question.

    For the whole run, since what waits may be lost when a terminal goes back to whole lines.
    """
    if sys.platform == "win32" or not sys.stdin.isatty():
        yield
        return
    import termios

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    quiet = [*before]
    quiet[3] &= ~(termios.ECHO | termios.ICANON)
    termios.tcsetattr(descriptor, termios.TCSADRAIN, quiet)
    try:
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
