# SPDX-License-Identifier: Apache-2.0
"""Starts Python programs that need the SDK at once: as forks of a process that has imported it.

`python forks.py FD` listens at a socket that it inherits, until its standard input ends; then it removes the
folder of that socket. Those who connect are `forked.py`.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import runpy
import select
import shutil
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

IMPORTS = (
    "mcp",
    "mcp.server.sse",
    "mcp.server.stdio",
    "cyclopts",
    "openai",
    "rich.console",
    "starlette.applications",
    "uvicorn",
)
"""Not what is tested: each program imports that itself."""
STREAMS = (0, 1, 2)


def serve(listener: socket.socket) -> None:
    """Fork for everyone who connects; each has a process that looks after its program."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # Nobody waits for those who look after programs.
    while True:
        ready, _, _ = select.select([listener, sys.stdin], [], [])
        if listener not in ready:
            shutil.rmtree(Path(listener.getsockname()).parent)
            return
        client, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            look_after(client)
            return
        client.close()


def look_after(client: socket.socket) -> None:
    """Be the program, and leave another process behind that tells of its end, or ends it with its client."""
    _, streams, _, _ = socket.recv_fds(client, 1, len(STREAMS))
    with client.makefile("rb") as lines:
        order: dict[str, Any] = json.loads(lines.readline())
    lifeline, held = os.pipe()
    if program := os.fork():
        for descriptor in (*streams, held):
            os.close(descriptor)
        ready, _, _ = select.select([client, lifeline], [], [])
        if client in ready:  # It has been ended, or has died.
            os.kill(program, signal.SIGKILL)
        _, status = os.waitpid(program, 0)
        with suppress(OSError):
            client.sendall(str(os.waitstatus_to_exitcode(status) % 256).encode())
        os._exit(0)
    client.close()
    os.close(lifeline)
    become(order, streams)


def become(order: dict[str, Any], streams: list[int]) -> None:
    """Run a program as if Python had just been started with it."""
    for given, usual in zip(streams, STREAMS, strict=True):
        os.dup2(given, usual)
        os.close(given)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", 1, "utf-8", "backslashreplace", closefd=False)  # noqa: SIM115
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["environment"])
    sys.argv = order["program"]
    if sys.argv[0] == "-m":
        del sys.argv[0]
        sys.path[0] = order["folder"]
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = str(Path(sys.argv[0]).resolve().parent)
        runpy.run_path(sys.argv[0], run_name="__main__")


def main() -> None:
    """Import what takes its time, and serve."""
    for name in IMPORTS:
        importlib.import_module(name)
    gc.freeze()  # Forks share what they do not touch.
    with socket.socket(fileno=int(sys.argv[1])) as listener:
        serve(listener)


if __name__ == "__main__":
    main()
