# SPDX-License-Identifier: Apache-2.0
"""Keeps the garbage collector from searching everything again and again while thousands of tools are listed."""

from __future__ import annotations

import gc
import threading
from collections.abc import Generator
from contextlib import contextmanager

_RARELY = 50_000
"""New objects after which it looks at them; some megabytes of garbage at the very most."""


class _Ease:
    """How many ask for ease, and what the threshold is without them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._guests = 0
        self._usual = 0

    def begin(self) -> None:
        with self._lock:
            self._guests += 1
            threshold, *others = gc.get_threshold()
            if 0 < threshold < _RARELY:
                self._usual = threshold
                gc.set_threshold(_RARELY, *others)

    def end(self) -> None:
        with self._lock:
            self._guests -= 1
            threshold, *others = gc.get_threshold()
            if not self._guests and self._usual and threshold == _RARELY:
                gc.set_threshold(self._usual, *others)


_ease = _Ease()


@contextmanager
def ease_collector() -> Generator[None]:
    """Has the collector look for garbage more rarely, while many objects are made that will stay.

    It is not switched off, so this may last for a while, and overlap with others.
    """
    _ease.begin()
    try:
        yield
    finally:
        _ease.end()
