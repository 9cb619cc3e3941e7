# SPDX-License-Identifier: Apache-2.0
"""Keeps the garbage collector from searching thousands of objects that are made to stay."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def pause_collector() -> Generator[None]:
    """Lets a stretch of work without a wait in it make many objects at a time, and none be searched meanwhile."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
