# SPDX-License-Identifier: Apache-2.0
"""Servers of the transport before streamable HTTP."""

from __future__ import annotations

from typing import Any

from tests.faults.overhttp.sound import Sound
from tests.faults.overhttp.wire import Line, Request
from tests.faults.overstdio.sound import text_result


class OldEvents(Sound):
    """The transport before streamable HTTP: answers come on one stream, requests go to an endpoint."""

    endpoint = "/messages"

    def __init__(self) -> None:
        super().__init__()
        self.stream: Line | None = None
        self.sessions.add("")

    async def on_get(self, request: Request, line: Line) -> None:
        await line.begin_events()
        await line.write(f"event: endpoint\ndata: {self.endpoint}\n\n".encode())
        self.stream = line
        await line.hold()

    async def on_request(self, request: Request, line: Line) -> None:
        await line.respond(202)
        assert self.stream is not None
        await super().on_request(request, _Detour(self.stream))

    def drop_stream(self) -> None:
        assert self.stream is not None
        self.stream.reset()


class _Detour(Line):
    """Sends as an event what would be the body of a response."""

    def __init__(self, stream: Line) -> None:
        super().__init__(stream._reader, stream._writer)
        self._stream = stream

    async def respond_json(self, message: Any, *_: Any, **__: Any) -> None:
        await self._stream.send_event(message)


class OldLargeEvent(OldEvents):
    async def trouble(self, request: Request, line: Line) -> None:
        await self.reply(request, line, text_result("fine " + "x" * 5_000_000))


class OldForeignEndpoint(OldEvents):
    endpoint = "http://localhost:9/messages"


class OldWithoutEndpoint(OldEvents):
    async def on_get(self, request: Request, line: Line) -> None:
        await line.begin_events()
        await line.hold()


class OldDroppedStream(OldEvents):
    async def trouble(self, request: Request, line: Line) -> None:
        self.drop_stream()


class OldRefusedPost(OldEvents):
    async def on_request(self, request: Request, line: Line) -> None:
        if (request.message.get("params") or {}).get("name") == "trouble":
            await self.refuse(request, line)
            self.release.set()
        else:
            await super().on_request(request, line)

    async def refuse(self, request: Request, line: Line) -> None:
        await line.respond(500)


class OldBusyPost(OldRefusedPost):
    async def refuse(self, request: Request, line: Line) -> None:
        await line.respond(429, headers={"retry-after": "7"})


class OldSilentPost(OldRefusedPost):
    async def refuse(self, request: Request, line: Line) -> None:
        await line.hold()


class OldForgottenSession(OldRefusedPost):
    async def refuse(self, request: Request, line: Line) -> None:
        self.server.notes["refused"] += 1
        if self.server.notes["refused"] == 1:
            await line.respond(404)
        else:
            await OldEvents.on_request(self, request, line)


class OldSilent(OldEvents):
    async def trouble(self, request: Request, line: Line) -> None:
        """No answer."""


class OldMalformed(OldEvents):
    async def trouble(self, request: Request, line: Line) -> None:
        assert self.stream is not None
        await self.stream.write(b'data: {"jsonrpc": "2.0", "id": 4, "result": {\n\n')
