# SPDX-License-Identifier: Apache-2.0
"""A server process on asyncio: its lines, its last words, its end, and how it is brought to an end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import anyio

from ..oversize.spills import Bounds, Spill
from ..secrecy import Secrets
from ..stderr import StderrRing
from .framing import Framer

_POLITE_GRACE = 2.0
_FORCED_GRACE = 3.0
_LAST_WORDS_PATIENCE = 0.25
_log = logging.getLogger(__name__)
_KEEPER = Path(__file__).with_name("keeper.py")


class ServerProcess(asyncio.SubprocessProtocol):
    """Hands on each line of stdout, keeps the last ones of stderr, and tells of the end.

    Twice: at once that the server is lost, and a moment later that its exit code and last words
    are known, which whoever waits for an answer will want to hear.
    """

    def __init__(
        self,
        ring: StderrRing,
        bounds: Bounds,
        on_line: Callable[[bytes | Spill], None],
        on_lost: Callable[[], None],
        on_end: Callable[[], None],
    ) -> None:
        self._ring = ring
        self._on_line = on_line
        self._on_lost = on_lost
        self._on_end = on_end
        self._framer = Framer(bounds)
        self._over = False
        self._ails = self._is_sent_off = False
        self._exited = anyio.Event()
        self._transport: asyncio.SubprocessTransport | None = None
        self._stdin: asyncio.WriteTransport | None = None
        self._lifeline: int | None = None
        self._loop = asyncio.get_running_loop()

    @property
    def exit_code(self) -> int | None:
        """How the process ended, where it has."""
        return self._transport.get_returncode() if self._transport else None

    @property
    def unsent(self) -> int:
        """Bytes that the server has not read yet."""
        return self._stdin.get_write_buffer_size() if self._stdin else 0

    async def start(
        self, command: Sequence[str], environment: Mapping[str, str], cwd: str | Path | None
    ) -> None:
        """Starts the server below a keeper, which ends its whole tree should we die."""
        program = find_program(command[0], environment, cwd, self._ring.secrets)
        for other in tuple(_started):
            other.leave_if_forgotten()
        reading, self._lifeline = os.pipe()
        _started.add(self)
        keeper = (sys.executable, "-I", "-S", str(_KEEPER), str(reading))
        try:
            with anyio.CancelScope(shield=True):  # asyncio would kill the keeper, not the server
                await self._loop.subprocess_exec(
                    lambda: self,
                    *(*keeper, program, *command[1:]),
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.PIPE,
                    env=dict(environment),
                    cwd=cwd,
                    pass_fds=(reading,),
                    start_new_session=True,
                )
        finally:
            os.close(reading)

    def write(self, line: bytes) -> bool:
        """Sends a line, without waiting for the server to read it; False where its input is closed."""
        if self._stdin is None or self._stdin.is_closing():
            return False
        self._stdin.write(line)
        return not self._stdin.is_closing()

    def leave_if_forgotten(self) -> None:
        """Has its keeper end a server that nobody can speak to any more: its event loop was closed around it."""
        if not self._loop.is_closed():
            return
        self._close_lifeline()
        for number in range(3):
            stream = self._transport and self._transport.get_pipe_transport(number)
            if stream and (pipe := stream.get_extra_info("pipe")):
                pipe.close()

    async def end(self) -> None:
        """Brings the process to its end: politely, then by a signal to its tree; bounded in time."""
        if self._transport is None:  # it never started
            self._close_lifeline()
            return
        self._is_sent_off = not self._ails
        if self._stdin is not None:
            self._stdin.close()
        with anyio.move_on_after(_POLITE_GRACE):
            await self._exited.wait()
        self._close_lifeline()
        self._signal(
            signal.SIGTERM
        )  # a fork of our own process may hold the streams and the lifeline open
        with anyio.move_on_after(_FORCED_GRACE):
            await self._exited.wait()
        self._signal(signal.SIGKILL)
        self._transport.close()

    def _signal(self, number: signal.Signals) -> None:
        if self._transport is not None and not self._exited.is_set():
            with contextlib.suppress(ProcessLookupError):
                self._transport.send_signal(number)

    def _close_lifeline(self) -> None:
        _started.discard(self)
        if self._lifeline is not None:
            os.close(self._lifeline)
            self._lifeline = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by the loop when the process has started."""
        self._transport = cast("asyncio.SubprocessTransport", transport)
        self._stdin = cast("Any", self._transport.get_pipe_transport(0))
        stdout = self._transport.get_pipe_transport(1)
        if stdout is not None:
            usual = cast("asyncio.Protocol", stdout.get_protocol())
            stdout.set_protocol(_Shortcut(usual, lambda data: self.pipe_data_received(1, data)))

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Called by the loop with what the process wrote."""
        if fd == 2:
            self._ring.feed(data)
            return
        try:
            for line in self._framer.feed(data):
                self._on_line(line)
        except Exception:
            _log.exception("A line of a server could not be taken")
            self._finish()  # nobody shall wait for what was lost with it

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """Called by the loop when a stream has ended; who reads no more may still answer what it has read."""
        self._ails = self._ails or fd != 2
        if fd == 0:
            self._on_lost()
        elif fd == 1:
            self._finish_soon()

    def process_exited(self) -> None:
        """Called by the loop when the process has ended; its last lines may still be on their way."""
        self._exited.set()
        if not self._is_sent_off:  # else it says nothing of what went wrong
            self._ring.exit_code = self.exit_code
        self._finish_soon()

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by the loop when the process and all of its streams have ended."""
        self._finish()

    def _finish_soon(self) -> None:
        if not self._over:
            self._on_lost()
            asyncio.get_running_loop().call_later(_LAST_WORDS_PATIENCE, self._finish)

    def _finish(self) -> None:
        if not self._over:
            self._over = True
            self._framer.discard()
            self._on_end()


_started: set[ServerProcess] = set()
"""Those whose keepers still wait for our end."""


class _Shortcut(asyncio.Protocol):
    """Reads a stream of a process at once, where asyncio would do it one turn of its loop later."""

    def __init__(self, usual: asyncio.Protocol, on_data: Callable[[bytes], None]) -> None:
        self._usual = usual
        self._on_data = on_data

    def data_received(self, data: bytes) -> None:
        """Called by the loop with what the process wrote."""
        self._on_data(data)

    def eof_received(self) -> bool | None:
        """Called by the loop at the end of the stream."""
        return self._usual.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by the loop when the stream is closed; the process counts its open streams."""
        self._usual.connection_lost(exc)


def find_program(
    name: str, environment: Mapping[str, str], cwd: str | Path | None, secrets: Secrets
) -> str:
    """The path of a program as the server's own PATH has it; says at once where there is none."""
    if cwd is not None and not Path(cwd).is_dir():
        raise FileNotFoundError(2, "There is no such folder", str(cwd))
    if os.sep in name:
        path = str(Path(cwd, name)) if cwd is not None and not os.path.isabs(name) else name  # noqa: PTH117
        found = shutil.which(path)
    else:
        path, found = name, shutil.which(name, path=environment.get("PATH"))
    if found is not None:
        return found
    if Path(path).exists():
        raise PermissionError(13, "It is not executable", secrets.hide_in(name))
    raise FileNotFoundError(2, "There is no such program", secrets.hide_in(name))
