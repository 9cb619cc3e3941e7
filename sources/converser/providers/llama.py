# SPDX-License-Identifier: Apache-2.0
"""llama.cpp's server in a process of its own, which ends with us.

While the library loads a model it holds the interpreter's lock for seconds, in a thread too, so that an event loop in
the same process would stand still. A process of its own also gives all memory back, and takes nobody with it
when it crashes. It lives as long as the pipe to its standard input is open: that closes when we end, however we do.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import anyio
import anyio.abc

from ..exceptions import ModelFailure

CONTEXT_TOKENS = 8192
_PARTING_SECONDS = 5.0
_CODE = (
    "import sys; sys.path[:] = sys.argv[1:]; from converser.providers.llama import serve; serve()"
)
"""Looks for modules where we do, and not in the working directory."""


class LlamaServer:
    """A running server: where it is, and the key that it wants."""

    def __init__(self, process: anyio.abc.Process, address: str, key: str) -> None:
        self.url = f"{address}/v1"
        self.key = key
        self._process = process

    @classmethod
    async def start(cls, path: Path) -> LlamaServer:
        """Loads a model; cancelling this ends the process."""
        if not await anyio.Path(path).is_file():
            raise ModelFailure(
                f"There is no model file {str(path)!r}.", remedy="Give the path of a GGUF file."
            )
        # Threads that wait actively starve everything else on a small machine.
        environment = {"OMP_WAIT_POLICY": "passive", **os.environ}
        command = [sys.executable, "-c", _CODE, *sys.path]
        process = await anyio.open_process(command, stderr=subprocess.DEVNULL, env=environment)
        key = secrets.token_urlsafe(32)
        try:
            address = await _introduce(process, {"path": str(path), "key": key})
        except BaseException:
            await _end(process)
            raise
        return cls(process, address, key)

    @property
    def is_alive(self) -> bool:
        """Whether the process is still there."""
        return self._process.returncode is None

    async def close(self) -> None:
        """Ends the process, which gives the memory back."""
        await _end(self._process)


async def _introduce(process: anyio.abc.Process, wish: dict[str, str]) -> str:
    """Tells the process what to load, and hears where it serves."""
    assert process.stdin is not None
    assert process.stdout is not None
    said = b""
    with suppress(anyio.BrokenResourceError, anyio.EndOfStream):
        await process.stdin.send(f"{json.dumps(wish)}\n".encode())
        while not said.endswith(b"\n"):
            said += await process.stdout.receive()
    answer = cast("dict[str, str]", json.loads(said or b"{}"))
    if "address" not in answer:
        reason = answer.get("failure", "its process ended")
        raise ModelFailure(
            f"The model file {wish['path']!r} cannot be loaded: {reason}",
            remedy="Give another GGUF file, or free memory: it takes about 2 GB.",
        )
    return answer["address"]


async def _end(process: anyio.abc.Process) -> None:
    with anyio.CancelScope(shield=True):
        if process.stdin is not None:
            await process.stdin.aclose()
        with anyio.move_on_after(_PARTING_SECONDS):
            await process.wait()
        if process.returncode is None:
            process.kill()
        await process.aclose()


def serve() -> None:
    """The program of the process: loads what it is told to, and serves until nobody listens to it."""
    voice = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # The library may write there too.
    wish = json.loads(sys.stdin.readline())
    try:
        server = _load(wish["path"], wish["key"])
    except Exception as failure:
        answer = {"failure": str(failure)}
    else:
        answer = {"address": server.listening_address}
    voice.write(f"{json.dumps(answer)}\n")
    voice.flush()
    sys.stdin.read()
    os._exit(0)  # At once, also out of the middle of an answer.


def _load(path: str, key: str) -> Any:
    """Starts the server on a free port of this machine, behind a key."""
    library = import_module("xllamacpp")
    parameters = library.CommonParams()
    parameters.model.path = path
    parameters.n_ctx = CONTEXT_TOKENS
    parameters.n_parallel = 1
    parameters.port = 0
    parameters.api_keys = [key]
    parameters.verbosity = 0
    parameters.cpuparams.n_threads = _count_processors()
    parameters.cpuparams_batch.n_threads = _count_processors()
    return library.Server(parameters)


def _count_processors() -> int:
    with suppress(AttributeError):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
