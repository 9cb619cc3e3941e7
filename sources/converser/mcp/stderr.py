# SPDX-License-Identifier: Apache-2.0
"""Keeps the last lines that a server wrote to stderr, so that they can be quoted when it dies."""

from __future__ import annotations

import os
import threading
from collections import deque
from typing import TextIO

from ..hygiene import clean_text
from .secrecy import NO_SECRETS, Secrets

LINES_MAX = 40
_LINE_LENGTH_MAX = 2_000
_QUOTE_LENGTH_MAX = 400


class StderrRing:
    """The last lines of a server's stderr, bounded in number and length; the rest is dropped."""

    def __init__(self, secrets: Secrets = NO_SECRETS) -> None:
        self.secrets = secrets
        """What a dying server may quote, and nobody is shown."""
        self._lines: deque[str] = deque(maxlen=LINES_MAX)
        self._rest = b""
        self._lock = threading.Lock()
        self.exit_code: int | None = None
        """How the process ended, where that is known."""

    @property
    def lines(self) -> tuple[str, ...]:
        """The last lines, made harmless to look at."""
        with self._lock:
            lines = (*self._lines, self._rest.decode("utf-8", "replace"))
        shown = (self.secrets.hide_in(line.rstrip("\r")) for line in lines if line.strip())
        return tuple(clean_text(line) for line in shown)

    def feed(self, chunk: bytes) -> None:
        """Takes what the server wrote."""
        with self._lock:
            *lines, rest = (self._rest + chunk).split(b"\n")
            self._rest = rest[-_LINE_LENGTH_MAX:]
            for line in lines[-LINES_MAX:]:
                self._lines.append(line[-_LINE_LENGTH_MAX:].decode("utf-8", "replace"))

    def quote(self, count: int = 5) -> str:
        """How it ended and its last lines, as an addition to an error message."""
        words = "" if self.exit_code is None else f" It ended with exit code {self.exit_code}."
        lines = [clean_text(line, limit=_QUOTE_LENGTH_MAX) for line in self.lines[-count:]]
        return f"{words} Its last words on stderr: {' | '.join(lines)}." if lines else words

    def open_pipe(self) -> TextIO:
        """An end for a server to write to; a thread reads the other one until the server is gone."""
        reading, writing = os.pipe()
        threading.Thread(
            target=self._drain, args=(reading,), name="converser: stderr", daemon=True
        ).start()
        return os.fdopen(writing, "w")

    def _drain(self, descriptor: int) -> None:
        with os.fdopen(descriptor, "rb", buffering=0) as pipe:
            while chunk := pipe.read(65_536):
                self.feed(chunk)
