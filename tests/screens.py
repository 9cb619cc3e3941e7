# SPDX-License-Identifier: Apache-2.0
"""The screen of a terminal as a person sees it, scrollback and all; for programs that draw."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pyte

from tests.terminals import AT_TERMINAL, DEADLINE, PROGRAM, create_environment


class _Glass(pyte.HistoryScreen):
    """A screen that answers the program's questions to it, as terminals do."""

    def __init__(self, columns: int, lines: int, answer) -> None:
        super().__init__(columns, lines, history=10_000, ratio=0.5)
        self._answer = answer

    def write_process_input(self, data: str) -> None:
        self._answer(data.encode())


class Screen:
    """A program at a terminal; everything that it wrote is in `raw`."""

    def __init__(self, process: subprocess.Popen[bytes], master: int, size: tuple[int, int]):
        self.process = process
        self.raw = b""
        self._master = master
        self._glass = _Glass(size[0], size[1], self._write)
        self._stream = pyte.ByteStream(self._glass)

    def type(self, keys: str) -> None:
        """Presses keys; `\\r` is Enter."""
        self._write(keys.encode())

    @property
    def text(self) -> str:
        """The scrollback and the screen, line by line."""
        glass = self._glass
        above = [
            "".join(line[column].data for column in range(glass.columns))
            for line in glass.history.top
        ]
        return "\n".join(line.rstrip() for line in (*above, *glass.display))

    def wait_for(self, words: str, *, times: int = 1) -> str:
        """Waits until words are to be seen, so often."""
        until = time.monotonic() + DEADLINE
        while self.text.count(words) < times:
            left = until - time.monotonic()
            assert left > 0, f"{words!r} did not come:\n{self.text}"
            assert self._read(min(left, 1.0)) or self.process.poll() is None, (
                f"The program ended before {words!r} came:\n{self.text}"
            )
        return self.text

    def wait_for_end(self) -> int:
        """Waits until the program ends, and gives its exit code."""
        until = time.monotonic() + DEADLINE
        while self.process.poll() is None:
            assert time.monotonic() < until, f"It did not end:\n{self.text}"
            self._read(0.2)
        while self._read(0.0):
            pass
        return self.process.returncode

    def _read(self, seconds: float) -> bool:
        if not select.select([self._master], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self._master, 65536)
        except OSError:  # Nobody is at the other end any more.
            time.sleep(0.01)
            return False
        self.raw += data
        self._stream.feed(data)
        return bool(data)

    def _write(self, data: bytes) -> None:
        os.write(self._master, data)


@contextlib.contextmanager
def open_screen(
    *arguments: str | Path, cwd: Path, size: tuple[int, int] = (80, 30)
) -> Iterator[Screen]:
    """Runs the real program at a terminal of so many columns and lines; its file is trusted."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
    shown = {"TERM": "xterm-256color", "COLORTERM": "", "LANG": "C.UTF-8", "CONVERSER_TRUST": "1"}
    hidden = {"NO_COLOR", "COLUMNS", "LINES", "TMUX", "TERM_PROGRAM", "KITTY_WINDOW_ID"}
    environment = create_environment(cwd, shown)
    process = subprocess.Popen(
        ["sh", "-c", AT_TERMINAL, os.ttyname(slave), *PROGRAM, *map(str, arguments)],
        cwd=cwd,
        env={name: value for name, value in environment.items() if name not in hidden},
        stdin=slave,
        start_new_session=True,
    )
    os.close(slave)
    try:
        yield Screen(process, master, size)
    finally:
        process.kill()
        process.wait()
        os.close(master)
