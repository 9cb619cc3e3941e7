# SPDX-License-Identifier: Apache-2.0
"""A sound server that writes down each call that it executes: `python -m tests.soak_server stdio|http ERA [PORT]`.

Over HTTP it prints its URL, and ends with its standard input.
"""

from __future__ import annotations

import os
import random
import sys
import time
from typing import Any

from tests.faults.overstdio import sound

_TOKEN: dict[str, Any] = {"type": "object", "properties": {"token": {"type": "string"}}}
TOOLS: list[dict[str, Any]] = [
    {"name": "act", "inputSchema": _TOKEN},
    {"name": "look", "inputSchema": _TOKEN, "annotations": {"readOnlyHint": True}},
]
_WORK = 0.01
"""Seconds that a call takes at most, so that some are under way when the server is killed."""


def execute(arguments: dict[str, Any]) -> dict[str, Any]:
    """Writes the call down, works a little, and gives back what it was given."""
    token = str(arguments["token"])
    ledger = os.open(os.environ["SOAK_LEDGER"], os.O_WRONLY | os.O_APPEND)
    os.write(ledger, token.encode() + b"\n")
    os.close(ledger)
    return sound.text_result(f"done {token}")


class _Calls:
    tools = TOOLS

    def on_tools_call(self, number: Any, params: dict[str, Any]) -> None:
        result = execute(params["arguments"])
        time.sleep(random.uniform(0, _WORK))
        self.reply(number, result)  # type: ignore[attr-defined]


class Legacy(_Calls, sound.Server):
    """Over stdio, of the older era."""


class Modern(_Calls, sound.Modern):
    """Over stdio, of the newer era."""


def _serve_http(era: str, port: int) -> None:
    import asyncio

    from tests.faults.overhttp import sound as over_http
    from tests.faults.overhttp.wire import HttpServer, Line, Request

    class Calls(over_http.Modern if era == "modern" else over_http.Sound):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.sessions_made = random.randrange(10**9)  # none of the process before

        async def on_list(self, request: Request, line: Line) -> None:
            await self.reply(request, line, {"tools": TOOLS, **over_http.CACHE})

        async def trouble(self, request: Request, line: Line) -> None:
            result = execute(request.message["params"]["arguments"])
            await asyncio.sleep(random.uniform(0, _WORK))
            await self.reply(request, line, result)

    server = HttpServer(Calls())
    server.port = port
    with server.running():
        print(f"{server.origin}/mcp", flush=True)
        sys.stdin.read()


def main() -> None:
    """Serves until its input ends, or it is killed."""
    transport, era, *port = sys.argv[1:]
    if transport == "http":
        _serve_http(era, int(port[0]) if port else 0)
    else:
        (Modern if era == "modern" else Legacy)().serve()


if __name__ == "__main__":
    main()
