# SPDX-License-Identifier: Apache-2.0
"""A bare HTTP server on sockets, in a thread of its own; what it does with a request is up to a behaviour."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import json
import socket
import struct
import threading
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

JSON = dict[str, Any]
_LIMIT = 10.0
_NO_HEADERS: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request, with its body as JSON where it has one."""

    method: str
    path: str
    headers: dict[str, str]
    message: JSON


class Behaviour(Protocol):
    """What a server does with each request."""

    server: HttpServer

    async def handle(self, request: Request, line: Line) -> None:
        """Answers a request, or does not."""


class Line:
    """The way back to the client, down to single bytes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.open = True

    async def respond(
        self, status: int, body: bytes = b"", headers: Mapping[str, str] = _NO_HEADERS
    ) -> None:
        """A whole response."""
        await self.begin(status, {**headers, "content-length": str(len(body))})
        await self.write(body)

    async def respond_json(
        self, message: Any, status: int = 200, headers: Mapping[str, str] = _NO_HEADERS
    ) -> None:
        """A whole response of JSON."""
        headers = {"content-type": "application/json", **headers}
        await self.respond(status, json.dumps(message).encode(), headers)

    async def begin(self, status: int, headers: Mapping[str, str]) -> None:
        """The head of a response."""
        lines = [f"HTTP/1.1 {status} Whatever", *(f"{k}: {v}" for k, v in headers.items())]
        await self.write("\r\n".join([*lines, "", ""]).encode())

    async def begin_events(self, headers: Mapping[str, str] = _NO_HEADERS) -> None:
        """The head of a stream of events, which ends with the connection."""
        self.open = False
        head = {"content-type": "text/event-stream", "connection": "close", **headers}
        await self.begin(200, head)

    async def send_event(self, message: Any, **fields: str) -> None:
        """One event."""
        lines = [f"{name}: {value}" for name, value in fields.items()]
        data = "" if message is None else json.dumps(message)
        await self.write("\n".join([*lines, f"data: {data}", "", ""]).encode())

    async def write(self, data: bytes) -> None:
        """Raw bytes."""
        self._writer.write(data)
        await self._writer.drain()

    async def hold(self) -> None:
        """Says nothing until the client goes away."""
        self.open = False
        await self._reader.read()

    def reset(self) -> None:
        """Breaks the connection off, so that the client sees a reset and no end."""
        self.open = False
        connection = self._writer.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()

    async def read_request(self) -> Request | None:
        """The next request, or nothing at the end."""
        head = await self._reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        method, path, _ = first.split(" ", 2)
        pairs = (line.split(":", 1) for line in lines if line)
        headers = {name.strip().lower(): value.strip() for name, value in pairs}
        body = await self._reader.readexactly(int(headers.get("content-length", "0")))
        message = json.loads(body) if body else {}
        return Request(method=method, path=path, headers=headers, message=message)


class HttpServer:
    """Listens on a port of the loopback device, also again on the same one after a pause."""

    def __init__(self, behaviour: Behaviour) -> None:
        self.behaviour = behaviour
        behaviour.server = self
        self.notes: collections.Counter[str] = collections.Counter()
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._listener: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()

    @property
    def origin(self) -> str:
        """Where it can be reached."""
        return f"http://127.0.0.1:{self.port}"

    @contextlib.contextmanager
    def running(self) -> Generator[HttpServer]:
        """Serves in a thread until the block ends."""
        thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        thread.start()
        try:
            self._do(self.listen())
            yield self
        finally:
            self._do(self._stop())
            self._loop.call_soon_threadsafe(self._loop.stop)
            thread.join(_LIMIT)
            self._loop.close()

    def _do(self, work: Any) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(_LIMIT)

    async def listen(self) -> None:
        """Begins to accept connections."""
        self._listener = await asyncio.start_server(
            self._serve, "127.0.0.1", self.port, limit=64 * 1024 * 1024, reuse_address=True
        )
        self.port = self._listener.sockets[0].getsockname()[1]

    def close(self, *, reset: bool = True) -> None:
        """Accepts no more connections, and breaks those off that there are."""
        if self._listener is not None:
            self._listener.close()
        for writer in self._writers:
            if reset:
                writer.transport.abort()

    def come_back(self, seconds: float) -> None:
        """Listens again after a pause."""
        self._loop.call_later(seconds, lambda: self._keep(self.listen()))

    def _keep(self, work: Any) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _stop(self) -> None:
        self.close()
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._writers.add(writer)
        self.notes["connections"] += 1
        line = Line(reader, writer)
        try:
            while line.open and (request := await line.read_request()):
                self.notes[request.method] += 1
                await self.behaviour.handle(request, line)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            self._writers.discard(writer)
            writer.close()
