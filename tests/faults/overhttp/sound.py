# SPDX-License-Identifier: Apache-2.0
"""A sound server over HTTP of either era: its tool `echo` always works; faults are mostly in `trouble`."""

from __future__ import annotations

import asyncio
import json

from tests.faults.overhttp.wire import JSON, HttpServer, Line, Request
from tests.faults.overstdio.sound import ECHO, MODERN, TROUBLE, text_result

SLOW: JSON = {"name": "slow", "inputSchema": {"type": "object", "properties": {}}}
CACHE: JSON = {"resultType": "complete", "ttlMs": 0, "cacheScope": "public"}


class Sound:
    """A sound server of the older era, with sessions."""

    server: HttpServer
    capabilities: JSON = {"tools": {}}  # noqa: RUF012

    def __init__(self) -> None:
        self.sessions: set[str] = set()
        self.sessions_made = 0
        self.release = asyncio.Event()

    async def handle(self, request: Request, line: Line) -> None:
        if request.method == "GET":
            await self.on_get(request, line)
        elif request.method == "DELETE":
            await self.on_delete(request, line)
        elif "method" not in request.message or "id" not in request.message:
            await self.on_notification(request, line)
        else:
            await self.on_request(request, line)

    async def on_get(self, request: Request, line: Line) -> None:
        await line.respond(405)

    async def on_delete(self, request: Request, line: Line) -> None:
        await line.respond(200)

    async def on_notification(self, request: Request, line: Line) -> None:
        await line.respond(202)

    async def on_request(self, request: Request, line: Line) -> None:
        method = request.message["method"]
        if method == "server/discover":
            await self.on_discover(request, line)
        elif method == "initialize":
            await self.on_initialize(request, line)
        elif request.headers.get("mcp-session-id", "") not in self.sessions:
            await self.on_lost_session(request, line)
        elif method == "tools/list":
            await self.on_list(request, line)
        elif request.message["params"]["name"] == "echo":
            await self.reply(request, line, text_result(self.read_text(request)))
        elif request.message["params"]["name"] == "slow":
            await self.on_slow(request, line)
        else:
            await self.trouble(request, line)

    def read_text(self, request: Request) -> str:
        return str((request.message["params"].get("arguments") or {}).get("text"))

    async def on_discover(self, request: Request, line: Line) -> None:
        error = {"code": -32601, "message": "Method not found"}
        await line.respond_json({"jsonrpc": "2.0", "id": request.message["id"], "error": error})

    async def on_initialize(self, request: Request, line: Line) -> None:
        self.sessions_made += 1
        session = f"session-{self.sessions_made}"
        self.sessions.add(session)
        result = {
            "protocolVersion": "2025-06-18",
            "capabilities": self.capabilities,
            "serverInfo": {"name": "faulty", "version": "1"},
        }
        message = {"jsonrpc": "2.0", "id": request.message["id"], "result": result}
        await line.respond_json(message, headers={"mcp-session-id": session})

    async def on_lost_session(self, request: Request, line: Line) -> None:
        await line.respond(404)

    async def on_list(self, request: Request, line: Line) -> None:
        await self.reply(request, line, {"tools": [ECHO, TROUBLE, SLOW], **CACHE})

    async def on_slow(self, request: Request, line: Line) -> None:
        await self.release.wait()
        await self.reply(request, line, text_result("slow but sure"))

    async def trouble(self, request: Request, line: Line) -> None:
        await self.reply(request, line, text_result("fine"))

    async def reply(self, request: Request, line: Line, result: JSON) -> None:
        await line.respond_json(compose_reply(request, result))


class Modern(Sound):
    """A sound server of the newer era, without sessions."""

    async def on_request(self, request: Request, line: Line) -> None:
        self.sessions.add(request.headers.get("mcp-session-id", ""))
        await super().on_request(request, line)

    async def on_discover(self, request: Request, line: Line) -> None:
        result = {"supportedVersions": [MODERN], "capabilities": self.capabilities, **CACHE}
        await self.reply(request, line, result)


def compose_reply(request: Request, result: JSON) -> JSON:
    return {"jsonrpc": "2.0", "id": request.message["id"], "result": result}


def encode_reply(request: Request, result: JSON) -> bytes:
    return json.dumps(compose_reply(request, result)).encode()


JSON_TYPE = {"content-type": "application/json"}
