# SPDX-License-Identifier: Apache-2.0
"""The real program as a person runs it: in pipes, and at a pseudo-terminal that is typed at."""

from __future__ import annotations

import contextlib
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Generator, Mapping
from pathlib import Path

from tests.servers.processes import fork_command

DEADLINE = 120.0
PROGRAM = (sys.executable, "-m", "converser")
AT_TERMINAL = 'exec "$@" <"$0" >"$0" 2>&1'


def create_environment(home: Path, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """An environment in which all that the program keeps for a user is below a folder."""
    folders = {f"XDG_{kind}_HOME": str(home / kind.lower()) for kind in ("CONFIG", "DATA", "STATE")}
    kept = {key: value for key, value in os.environ.items() if key != "CONVERSER_TRUST"}
    usual = {"HOME": str(home), "COLUMNS": "100", "PYTHONIOENCODING": "utf-8"}
    return {**kept, **folders, **usual, **(more or {})}


def run(
    *arguments: str | Path,
    cwd: Path,
    environment: Mapping[str, str] | None = None,
    text: str = "",
) -> subprocess.CompletedProcess[str]:
    """Runs the program in pipes, in a folder that is also the home; its file is trusted."""
    # What is said to Python itself is heard only where it starts.
    is_for_python = any(name.startswith("PYTHON") for name in environment or ())
    program = PROGRAM if is_for_python else fork_command(*PROGRAM[1:])
    return subprocess.run(
        [*program, *map(str, arguments)],
        cwd=cwd,
        env=create_environment(cwd, {"CONVERSER_TRUST": "1", **(environment or {})}),
        input=text,
        capture_output=True,
        encoding="utf-8",
        timeout=DEADLINE,
        check=False,
    )


class Terminal:
    """A program at a pseudo-terminal, which is its controlling one, so that Ctrl-C works."""

    def __init__(self, process: subprocess.Popen[bytes], descriptor: int) -> None:
        self.text = ""
        """All that was shown so far."""
        self._process, self._descriptor = process, descriptor
        self._seen = 0

    def type(self, keys: str) -> None:
        """Sends keys; a line ends with a line feed, and Ctrl-C is `\\x03`."""
        os.write(self._descriptor, keys.encode())

    def wait_for(self, words: str) -> str:
        """What was shown since the last wait, up to these words."""
        end = time.monotonic() + DEADLINE
        while (found := self.text.find(words, self._seen)) < 0:
            assert self._read(end), f"{words!r} never came: {self.text[self._seen :]!r}"
        start, self._seen = self._seen, found + len(words)
        return self.text[start : self._seen]

    def finish(self) -> int:
        """Waits for the end, and gives the exit code."""
        end = time.monotonic() + DEADLINE
        while self._read(end):
            pass
        return self._process.wait(max(1.0, end - time.monotonic()))

    def _read(self, end: float) -> bool:
        with selectors.DefaultSelector() as selector:
            selector.register(self._descriptor, selectors.EVENT_READ)
            if not selector.select(max(0.0, end - time.monotonic())):
                raise TimeoutError(self.text[self._seen :])
        try:
            data = os.read(self._descriptor, 65_536)
        except OSError:  # On Linux, what the other side has left cannot be read.
            return False
        self.text += data.decode("utf-8", "replace")
        return bool(data)


@contextlib.contextmanager
def open_terminal(
    *arguments: str | Path, cwd: Path, environment: Mapping[str, str] | None = None
) -> Generator[Terminal]:
    """Starts the program at a terminal of its own; it has ended when this block has."""
    import fcntl
    import pty
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
    # The first terminal that the leader of a new session opens becomes the controlling one.
    command = ["sh", "-c", AT_TERMINAL, os.ttyname(theirs), *PROGRAM, *map(str, arguments)]
    usual = {"TERM": "xterm-256color"}
    process = subprocess.Popen(
        command,
        cwd=cwd,
        env=create_environment(cwd, {**usual, **(environment or {})}),
        stdin=theirs,  # Held open until the shell has opened it.
        start_new_session=True,
    )
    os.close(theirs)
    try:
        yield Terminal(process, ours)
    finally:
        process.kill()
        process.wait(DEADLINE)
        os.close(ours)
