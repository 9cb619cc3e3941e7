# SPDX-License-Identifier: Apache-2.0
"""Keeps the last lines that a server wrote to stderr, so that they can be quoted when it dies."""

from __future__ import annotations

import os
import threading
from collections import deque
from typing import TextIO

from ..hygiene import clean_text

LINES_MAX = 40
_LINE_LENGTH_MAX = 2_000


class StderrRing:
    """A pipe whose far end a server writes to; a thread keeps its last lines and drops the rest."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque(maxlen=LINES_MAX)
        self._lock = threading.Lock()

    def open(self) -> TextIO:
        """The end for the server; close it after the start, and the reader ends with the server."""
        reading, writing = os.pipe()
        thread = threading.Thread(
            target=self._read, args=(reading,), name="converser: stderr", daemon=True
        )
        thread.start()
        return os.fdopen(writing, "w")

    def quote(self, count: int = 5) -> str:
        """The last lines, as an addition to an error message."""
        with self._lock:
            lines = [line for line in self._lines if line.strip()][-count:]
        if not lines:
            return ""
        return " Its last words on stderr: " + " | ".join(clean_text(line) for line in lines) + "."

    def _read(self, descriptor: int) -> None:
        with os.fdopen(descriptor, "rb", buffering=0) as pipe:
            rest = b""
            while chunk := pipe.read(65_536):
                *lines, rest = (rest + chunk).split(b"\n")
                rest = rest[-_LINE_LENGTH_MAX:]
                with self._lock:
                    for line in lines[-LINES_MAX:]:
                        text = line[-_LINE_LENGTH_MAX:].decode("utf-8", "replace")
                        self._lines.append(text.rstrip("\r"))
            if rest:
                with self._lock:
                    self._lines.append(rest.decode("utf-8", "replace"))
