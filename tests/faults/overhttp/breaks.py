# SPDX-License-Identifier: Apache-2.0
"""Answers that break off, in all places, and streams that want to be taken up again."""

from __future__ import annotations

import asyncio

from tests.faults.overhttp.sound import JSON_TYPE, Modern, Sound, compose_reply, encode_reply
from tests.faults.overhttp.wire import Line, Request
from tests.faults.overstdio.sound import text_result


class ResetBeforeHeaders(Sound):
    async def trouble(self, request: Request, line: Line) -> None:
        line.reset()


class ResetInHeaders(Sound):
    async def trouble(self, request: Request, line: Line) -> None:
        await line.write(b"HTTP/1.1 200 OK\r\ncontent-type: applic")
        line.reset()


class ResetInBody(Sound):
    async def trouble(self, request: Request, line: Line) -> None:
        body = encode_reply(request, text_result("fine"))
        await line.begin(200, {**JSON_TYPE, "content-length": str(len(body))})
        await line.write(body[:20])
        line.reset()


class ResetInBodyModern(ResetInBody, Modern):
    pass


class EndsInBody(Sound):
    async def trouble(self, request: Request, line: Line) -> None:
        await line.begin(200, {**JSON_TYPE, "content-length": "100000"})
        await line.write(encode_reply(request, text_result("fine")))
        line.open = False


class BrokenChunks(Sound):
    async def trouble(self, request: Request, line: Line) -> None:
        await line.begin(200, {**JSON_TYPE, "transfer-encoding": "chunked"})
        await line.write(b"zz\r\nnot a length\r\n")
        line.open = False


class ResetInEvents(Sound):
    async def trouble(self, request: Request, line: Line) -> None:
        await line.begin_events()
        await line.write(b'data: {"jsonrpc": "2.0", ')
        line.reset()


class EndsInEvents(Sound):
    async def trouble(self, request: Request, line: Line) -> None:
        await line.begin_events()
        await line.write(b": soon\n\n")


class HammeredStream(Sound):
    """Its stream of notifications ends at once, and asks to come back at once."""

    async def on_get(self, request: Request, line: Line) -> None:
        await line.begin_events()
        await line.write(b"retry: 0\n\n")

    async def trouble(self, request: Request, line: Line) -> None:
        await asyncio.sleep(3.0)
        await super().trouble(request, line)


class HammeredAnswer(HammeredStream):
    """The stream of an answer ends at once, and asks to be resumed at once, again and again."""

    async def on_get(self, request: Request, line: Line) -> None:
        if "last-event-id" not in request.headers:
            await line.respond(405)
            return
        await line.begin_events()
        await line.write(b"id: 1\nretry: 0\ndata:\n\n")

    async def trouble(self, request: Request, line: Line) -> None:
        await line.begin_events()
        await line.write(b"id: 1\nretry: 0\ndata:\n\n")


class Polled(HammeredStream):
    """The stream of an answer ends early, as the protocol allows; the answer comes when it is resumed."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: dict[str, Request] = {}

    async def on_get(self, request: Request, line: Line) -> None:
        if (place := request.headers.get("last-event-id")) is None:
            await line.respond(405)
            return
        await line.begin_events()
        await line.send_event(compose_reply(self.asked[place], text_result("fine")))

    async def trouble(self, request: Request, line: Line) -> None:
        place = str(request.message["id"])
        self.asked[place] = request
        await line.begin_events()
        await line.write(f"id: {place}\nretry: 10\ndata:\n\n".encode())


class HugeHeaders(Sound):
    async def trouble(self, request: Request, line: Line) -> None:
        await line.write(b"HTTP/1.1 200 OK\r\n")
        for index in range(2_000):
            await line.write(f"x-{index}: {'y' * 1_000}\r\n".encode())
        await line.write(b"\r\n")


class NotHttp(Sound):
    async def trouble(self, request: Request, line: Line) -> None:
        await line.write(b"SSH-2.0-OpenSSH_9.9\r\n")
        line.open = False


class FailsOneOfMany(Sound):
    """Breaks one call off while others wait, which it answers afterwards."""

    async def trouble(self, request: Request, line: Line) -> None:
        body = encode_reply(request, text_result("fine"))
        await line.begin(200, {**JSON_TYPE, "content-length": str(len(body))})
        await line.write(body[:20])
        line.reset()
        asyncio.get_running_loop().call_later(0.2, self.release.set)


class FailsOneOfManyModern(FailsOneOfMany, Modern):
    pass


class RedirectsToNowhere(FailsOneOfMany):
    """Redirects one call of many to another path, and from there to what is no address."""

    async def trouble(self, request: Request, line: Line) -> None:
        if request.path == "/mcp":
            await line.respond(307, headers={"location": "/moved"})
            return
        await line.respond(307, headers={"location": "javascript:alert(1)"})
        asyncio.get_running_loop().call_later(0.2, self.release.set)


class RedirectsToNowhereModern(RedirectsToNowhere, Modern):
    pass


class OddPause(FailsOneOfMany):
    """Its streams end, and ask to be opened again before they did."""

    async def on_get(self, request: Request, line: Line) -> None:
        if "last-event-id" in request.headers:
            await line.respond(405)
            return
        await line.begin_events()
        await line.write(b"retry: -1\ndata:\n\n")

    async def trouble(self, request: Request, line: Line) -> None:
        await line.begin_events()
        await line.write(b"id: 1\nretry: -1\ndata:\n\n")
        asyncio.get_running_loop().call_later(0.2, self.release.set)


class OddPauseModern(OddPause, Modern):
    pass
