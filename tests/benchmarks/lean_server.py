# SPDX-License-Identifier: Apache-2.0
"""A server without any SDK that answers as fast as Python can, so that what is measured is the client.

`python lean_server.py [--http] [--tools N] [--slow-start SECONDS]`. It speaks 2026-07-28. Over HTTP
it prints its URL, and ends with its standard input.
"""

from __future__ import annotations

import argparse
import asyncio
import heapq
import json
import os
import selectors
import sys
import time
from collections.abc import Iterable
from typing import Any

JSON = dict[str, Any]

PAGE = 100
SLOW_SECONDS = 0.02
BIG_CHARACTERS = 10_000_000
_COMPLETE = {"resultType": "complete"}
_LISTED = {**_COMPLETE, "ttlMs": 0, "cacheScope": "private"}
_NUMBER = {"type": "number"}
_SCHEMAS: JSON = {
    "echo": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    "add": {"type": "object", "properties": {"a": _NUMBER, "b": _NUMBER}, "required": ["a", "b"]},
    "slow": {"type": "object", "properties": {}},
    "big": {"type": "object", "properties": {}},
}
_SUM = {"type": "object", "properties": {"result": _NUMBER}, "required": ["result"]}


def define_tools(count: int) -> list[JSON]:
    """The four tools that do something, and as many others as are wanted, of everyday size."""
    tools: list[JSON] = [
        {"name": name, "description": f"The tool {name}.", "inputSchema": schema}
        for name, schema in _SCHEMAS.items()
    ]
    tools[1]["outputSchema"] = _SUM
    return tools + [define_filler(number) for number in range(count - len(tools))]


def define_filler(number: int) -> JSON:
    """A tool as servers have many of: five parameters, an enumeration, a list and an object."""
    point = {"type": "object", "properties": {"x": _NUMBER, "y": _NUMBER}, "required": ["x"]}
    properties = {
        "path": {"type": "string", "description": f"Where item {number} is kept."},
        "limit": {"type": "integer", "minimum": 1, "maximum": 1000 + number, "default": 10},
        "mode": {"type": "string", "enum": ["fast", "slow", f"mode-{number}"]},
        "tags": {"type": "array", "items": {"type": "string"}},
        "point": point,
    }
    return {
        "name": f"tool_{number:05}",
        "description": f"Does what tool number {number} does, and says how it went.",
        "inputSchema": {"type": "object", "properties": properties, "required": ["path"]},
        "annotations": {"readOnlyHint": bool(number % 2)},
    }


class LeanServer:
    """Answers messages; what does not depend on the question is encoded once."""

    def __init__(self, tools: int) -> None:
        listed = define_tools(tools)
        self._pages = [
            self._encode_page(listed[start : start + PAGE], start + PAGE, len(listed))
            for start in range(0, len(listed), PAGE)
        ]
        text = "0123456789" * (BIG_CHARACTERS // 10)
        self._big = json.dumps({**_COMPLETE, "content": [{"type": "text", "text": text}]}).encode()

    def answer(self, line: bytes) -> tuple[bytes, float] | None:
        """The answer to a message, and how many seconds it takes; none to a notification."""
        message = json.loads(line)
        if "id" not in message:
            return None
        method, params = message["method"], message.get("params") or {}
        identifier = json.dumps(message["id"]).encode()
        if method == "tools/call":
            result, delay = self._call(params["name"], params.get("arguments") or {})
        else:
            result, delay = self._reply(method, params), 0.0
        return b'{"jsonrpc":"2.0","id":%b,%b}' % (identifier, result), delay

    def _call(self, name: str, arguments: JSON) -> tuple[bytes, float]:
        if name == "big":
            return b'"result":' + self._big, 0.0
        result: JSON = {
            **_COMPLETE,
            "content": [{"type": "text", "text": arguments.get("text", name)}],
        }
        if name == "add":
            total = arguments["a"] + arguments["b"]
            result["content"] = [{"type": "text", "text": json.dumps({"result": total})}]
            result["structuredContent"] = {"result": total}
        return b'"result":' + json.dumps(result).encode(), SLOW_SECONDS if name == "slow" else 0.0

    def _reply(self, method: str, params: JSON) -> bytes:
        if method == "tools/list":
            return b'"result":' + self._pages[int(params.get("cursor") or 0) // PAGE]
        if method == "server/discover":
            about = {
                **_LISTED,
                "supportedVersions": ["2026-07-28"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "lean", "version": "1"},
            }
            return b'"result":' + json.dumps(about).encode()
        return b'"error":{"code":-32601,"message":"Method not found"}'

    @staticmethod
    def _encode_page(tools: list[JSON], following: int, total: int) -> bytes:
        page: JSON = {**_LISTED, "tools": tools}
        if following < total:
            page["nextCursor"] = str(following)
        return json.dumps(page).encode()


def serve_stdio(server: LeanServer) -> None:
    """Answer lines of standard input; slow answers wait without keeping others."""
    due: list[tuple[float, int, bytes]] = []
    count, buffer = 0, b""
    selector = selectors.SelectSelector()  # epoll would wait for whole milliseconds
    selector.register(0, selectors.EVENT_READ)
    while True:
        ready = selector.select(max(0.0, due[0][0] - time.monotonic()) if due else None)
        if ready:
            chunk = os.read(0, 1 << 20)
            if not chunk:
                return
            *lines, buffer = (buffer + chunk).split(b"\n")
            for reply, delay in filter(None, map(server.answer, filter(None, lines))):
                count += 1
                heapq.heappush(due, (time.monotonic() + delay, count, reply + b"\n"))
        now = time.monotonic()
        write_all(heapq.heappop(due)[2] for _ in range(sum(entry[0] <= now for entry in due)))


def write_all(replies: Iterable[bytes]) -> None:
    """Write whole replies, however little a pipe takes at a time."""
    view = memoryview(b"".join(replies))
    while view:
        view = view[os.write(1, view) :]


async def serve_http(server: LeanServer) -> None:
    """Answer POST requests with JSON on connections that are kept."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = int(head.lower().partition(b"content-length:")[2].split(b"\r", 1)[0] or 0)
                answered = (
                    server.answer(body) if (body := await reader.readexactly(length)) else None
                )
                reply, delay = answered or (b"", 0.0)
                await asyncio.sleep(delay)
                status = b"200 OK" if reply else b"202 Accepted"
                kind = b"content-type: application/json\r\n" if reply else b""
                writer.write(
                    b"HTTP/1.1 %b\r\n%bcontent-length: %d\r\n\r\n" % (status, kind, len(reply))
                )
                writer.write(reply)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    listener = await asyncio.start_server(handle, "127.0.0.1", 0)
    print(f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/mcp", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


def main() -> None:
    """Read the command line, and serve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--http", action="store_true")
    parser.add_argument("--tools", type=int, default=4)
    parser.add_argument("--slow-start", type=float, default=0.0)
    options = parser.parse_args()
    time.sleep(options.slow_start)
    server = LeanServer(options.tools)
    if options.http:
        asyncio.run(serve_http(server))
    else:
        serve_stdio(server)


if __name__ == "__main__":
    main()
