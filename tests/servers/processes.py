# SPDX-License-Identifier: Apache-2.0
"""Servers as processes of their own: how to start each, to know when it is ready, and to end it surely."""

from __future__ import annotations

import atexit
import collections
import contextlib
import functools
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Generator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from . import third_party

HERE = Path(__file__).resolve().parent
AWKWARD = str(HERE / "awkward.py")
START_TIMEOUT = 60.0
END_TIMEOUT = 5.0
ATTEMPTS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningServer:
    """A server that can be reached by its URL until its process ends."""

    url: str
    process: subprocess.Popen[str]


@functools.cache
def _start_forks() -> str:
    """The socket of a process that has imported the SDK and forks; it ends with this one."""
    place = str(Path(tempfile.mkdtemp(), "forks"))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(place)
        listener.listen()
        descriptor = listener.fileno()
        process = subprocess.Popen(
            [sys.executable, str(HERE / "forks.py"), str(descriptor)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            pass_fds=[descriptor],
            start_new_session=True,
        )
    atexit.register(process.communicate)
    return place


def fork_command(*program: str) -> list[str]:
    """A command that is Python with this program, but for the libraries that it finds imported when it starts."""
    if not hasattr(os, "fork"):
        return [sys.executable, *program]
    return [sys.executable, "-I", "-S", str(HERE / "forked.py"), _start_forks(), *program]


def awkward_command() -> list[str]:
    """The awkward server over stdio."""
    return fork_command(AWKWARD)


def raw_command(scenario: str) -> list[str]:
    """The raw server over stdio; the scenarios are in `raw.SCENARIOS`."""
    return [sys.executable, str(HERE / "raw.py"), scenario]


def _listen_to(process: subprocess.Popen[str], readiness: str, found: Future[str]) -> None:
    """Read all that a process says, so that it never blocks, and tell when it says that it is ready."""
    assert process.stdout is not None
    last_lines = collections.deque[str](maxlen=50)
    for line in process.stdout:
        last_lines.append(line)
        match = None if found.done() else re.search(readiness, line)
        if match:
            found.set_result(match[0])
    if not found.done():
        found.set_exception(ChildProcessError(f"{process.args} ended:\n{''.join(last_lines)}"))


def _end(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.wait(END_TIMEOUT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(END_TIMEOUT)


@contextlib.contextmanager
def _running(
    command: list[str], readiness: str, environment: Mapping[str, str] | None = None
) -> Generator[tuple[subprocess.Popen[str], str]]:
    with subprocess.Popen(
        command,
        env={**os.environ, **(environment or {})},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    ) as process:
        found = Future[str]()
        listener = threading.Thread(
            target=_listen_to, args=(process, readiness, found), daemon=True
        )
        listener.start()
        try:
            yield process, found.result(START_TIMEOUT)
        finally:
            _end(process)
            listener.join(END_TIMEOUT)


@contextlib.contextmanager
def serve_awkward(
    transport: Literal["http", "sse"], command: list[str] | None = None
) -> Generator[RunningServer]:
    """Run the awkward server on a free port; it ends with this block, or with this process."""
    options = ["--transport", transport, "--until-eof"]
    with _running([*(command or awkward_command()), *options], r"^http\S+") as (process, url):
        yield RunningServer(url=url, process=process)


def _find_free_port() -> int:
    with socket.create_server(("", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


def _start_everything(
    stack: contextlib.ExitStack, command: list[str], path: str, attempts: int = ATTEMPTS
) -> RunningServer:
    port = _find_free_port()
    running = _running(command, r"(running|listening) on port", {"PORT": str(port)})
    try:
        process, _ = stack.enter_context(running)
    except ChildProcessError:
        if attempts == 1:
            raise
        return _start_everything(stack, command, path, attempts - 1)
    return RunningServer(url=f"http://127.0.0.1:{port}/{path}", process=process)


@contextlib.contextmanager
def serve_everything(transport: Literal["http", "sse"]) -> Generator[RunningServer]:
    """Run npm's `server-everything`; it wants a port beforehand, so a lost race is run again."""
    mode, path = {"http": ("streamableHttp", "mcp"), "sse": ("sse", "sse")}[transport]
    command = [*third_party.node_server_command("everything"), mode]
    with contextlib.ExitStack() as stack:
        yield _start_everything(stack, command, path)
