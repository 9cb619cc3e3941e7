# SPDX-License-Identifier: Apache-2.0
"""Servers over HTTP that are sound but for one fault each; `echo` always works, `trouble` mostly not."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import struct
import zlib
from collections.abc import Callable
from typing import Any

from tests.faults.http_server import JSON, HttpServer, Line, Request
from tests.faults.stdio_server import ECHO, MODERN, TROUBLE, text_result

SLOW: JSON = {"name": "slow", "inputSchema": {"type": "object", "properties": {}}}
_CACHE: JSON = {"resultType": "complete", "ttlMs": 0, "cacheScope": "public"}


class Sound:
    """A sound server of the older era, with sessions."""

    server: HttpServer

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
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "faulty", "version": "1"},
        }
        message = {"jsonrpc": "2.0", "id": request.message["id"], "result": result}
        await line.respond_json(message, headers={"mcp-session-id": session})

    async def on_lost_session(self, request: Request, line: Line) -> None:
        await line.respond(404)

    async def on_list(self, request: Request, line: Line) -> None:
        await self.reply(request, line, {"tools": [ECHO, TROUBLE, SLOW], **_CACHE})

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
        result = {"supportedVersions": [MODERN], "capabilities": {"tools": {}}, **_CACHE}
        await self.reply(request, line, result)


def compose_reply(request: Request, result: JSON) -> JSON:
    return {"jsonrpc": "2.0", "id": request.message["id"], "result": result}


def encode_reply(request: Request, result: JSON) -> bytes:
    return json.dumps(compose_reply(request, result)).encode()


_JSON_TYPE = {"content-type": "application/json"}


class Refuses(Sound):
    """Says no to each call with a status."""

    status = 500
    headers: dict[str, str] = {}  # noqa: RUF012

    async def trouble(self, request: Request, line: Line) -> None:
        await line.respond(
            self.status, b"<h1>No</h1>", {"content-type": "text/html", **self.headers}
        )


class Status403(Refuses):
    status = 403


class Status429(Refuses):
    status = 429
    headers = {"retry-after": "7"}  # noqa: RUF012


class Status500(Refuses):
    status = 500


class Status502(Refuses):
    status = 502


class Status503(Refuses):
    status = 503
    headers = {"retry-after": "3"}  # noqa: RUF012


class Status418WithJson(Sound):
    async def trouble(self, request: Request, line: Line) -> None:
        await line.respond_json({"oops": True}, 418)


class Status401(Sound):
    async def handle(self, request: Request, line: Line) -> None:
        await line.respond(401, headers={"www-authenticate": "Bearer"})


class ForgetsTheSession(Sound):
    """Forgets the session at the first call of `trouble`, and says so in one of several ways."""

    forgotten = False
    status = 404
    error: JSON | None = None

    async def trouble(self, request: Request, line: Line) -> None:
        if not self.forgotten:
            self.forgotten = True
            self.sessions.clear()
            await self.on_lost_session(request, line)
            return
        await super().trouble(request, line)

    async def on_lost_session(self, request: Request, line: Line) -> None:
        if self.error is None:
            await line.respond(self.status)
        else:
            await line.respond_json(
                {"jsonrpc": "2.0", "id": None, "error": self.error}, self.status
            )


class ForgetsLikePython(ForgetsTheSession):
    error = {"code": -32600, "message": "Session not found"}  # noqa: RUF012


class ForgetsLikeTypescript(ForgetsTheSession):
    error = {"code": -32001, "message": "Session not found"}  # noqa: RUF012


class ForgetsLikeEverything(ForgetsTheSession):
    status = 400
    error = {"code": -32000, "message": "Bad Request: No valid session ID provided"}  # noqa: RUF012


class TalksOfSessions(Sound):
    """A tool whose own error sounds like that of a lost session."""

    async def trouble(self, request: Request, line: Line) -> None:
        error = {"code": -32000, "message": "Session not found: tmux"}
        await line.respond_json({"jsonrpc": "2.0", "id": request.message["id"], "error": error})


class Restarts(Sound):
    """Breaks everything off in the middle of a call, and comes back without its sessions."""

    pause = 0.3

    async def trouble(self, request: Request, line: Line) -> None:
        self.sessions.clear()
        self.server.close()
        self.server.come_back(self.pause)


class RestartsModern(Restarts, Modern):
    pass


class GoesDown(Restarts):
    """Is away for longer than a call lasts."""

    pause = 1.5


class Html(Sound):
    async def trouble(self, request: Request, line: Line) -> None:
        await line.respond(200, b"<h1>Please log in</h1>", {"content-type": "text/html"})


class Accepted(Sound):
    async def trouble(self, request: Request, line: Line) -> None:
        await line.respond(202)


class Silent(Sound):
    async def trouble(self, request: Request, line: Line) -> None:
        await line.hold()


class SilentModern(Silent, Modern):
    pass


class SilentFromTheStart(Sound):
    async def handle(self, request: Request, line: Line) -> None:
        await line.hold()


class SilentToNotifications(Silent):
    """Takes each notification in and never says so; a cancellation is one."""

    async def on_notification(self, request: Request, line: Line) -> None:
        if request.message["method"] == "notifications/cancelled":
            await line.hold()
        else:
            await super().on_notification(request, line)


class RefusesNotifications(Sound):
    async def on_notification(self, request: Request, line: Line) -> None:
        await line.respond(500)


class ResetsNotifications(Silent):
    async def on_notification(self, request: Request, line: Line) -> None:
        if request.message["method"] == "notifications/cancelled":
            line.reset()
        else:
            await super().on_notification(request, line)


class SilentGoodbye(Sound):
    async def on_delete(self, request: Request, line: Line) -> None:
        await line.hold()


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
        await line.begin(200, {**_JSON_TYPE, "content-length": str(len(body))})
        await line.write(body[:20])
        line.reset()


class ResetInBodyModern(ResetInBody, Modern):
    pass


class EndsInBody(Sound):
    async def trouble(self, request: Request, line: Line) -> None:
        await line.begin(200, {**_JSON_TYPE, "content-length": "100000"})
        await line.write(encode_reply(request, text_result("fine")))
        line.open = False


class BrokenChunks(Sound):
    async def trouble(self, request: Request, line: Line) -> None:
        await line.begin(200, {**_JSON_TYPE, "transfer-encoding": "chunked"})
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


class SilentEvents(Sound):
    """Keeps a stream alive with comments, and never answers."""

    async def trouble(self, request: Request, line: Line) -> None:
        await line.begin_events()
        while True:
            await line.write(b": still here\n\n")
            await asyncio.sleep(0.05)


class DrippingBody(Sound):
    async def trouble(self, request: Request, line: Line) -> None:
        await line.begin(200, {**_JSON_TYPE, "content-length": "100000"})
        while True:
            await line.write(b" ")
            await asyncio.sleep(0.05)


class EventJunk(Sound):
    """Unknown events, junk and strange lines come before the answer."""

    async def trouble(self, request: Request, line: Line) -> None:
        await line.begin_events()
        await line.write(b"event: weather\ndata: {}\n\nnonsense\n\nretry: soon\n\n:\n\ndata:\n\n")
        await line.send_event(compose_reply(request, text_result("fine")))


class MalformedEvent(Sound):
    async def trouble(self, request: Request, line: Line) -> None:
        await line.begin_events()
        await line.write(b'data: {"jsonrpc": "2.0", "result": {\n\n')
        await line.hold()


class WrongIdInEvent(Sound):
    async def trouble(self, request: Request, line: Line) -> None:
        await line.begin_events()
        await line.send_event({**compose_reply(request, text_result("fine")), "id": 987_654})


class AnswersTwice(Sound):
    async def trouble(self, request: Request, line: Line) -> None:
        await line.begin_events()
        await line.send_event(compose_reply(request, text_result("fine")))
        await line.send_event(compose_reply(request, text_result("WRONG")))


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


def _build_bomb() -> bytes:
    """A megabyte of gzip that inflates to a gigabyte; one block of it again and again."""
    block = b" " * 1024 * 1024
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = packer.compress(block) + packer.flush(zlib.Z_FULL_FLUSH)
    checksum = 0
    for _ in range(1024):
        checksum = zlib.crc32(block, checksum)
    head = b"\x1f\x8b\x08" + b"\0" * 6 + b"\xff"
    return head + packed * 1024 + b"\x03\0" + struct.pack("<II", checksum, 1024 * len(block))


class Bomb(Sound):
    async def trouble(self, request: Request, line: Line) -> None:
        body = await asyncio.to_thread(_build_bomb)
        await line.respond(200, body, {**_JSON_TYPE, "content-encoding": "gzip"})


class BombInEvents(Sound):
    async def trouble(self, request: Request, line: Line) -> None:
        body = await asyncio.to_thread(_build_bomb)
        head = {"content-encoding": "gzip", "content-length": str(len(body))}
        await line.begin_events(head)
        await line.write(body)


class BombInError(Sound):
    async def trouble(self, request: Request, line: Line) -> None:
        body = await asyncio.to_thread(_build_bomb)
        await line.respond(500, body, {**_JSON_TYPE, "content-encoding": "gzip"})


class BrokenGzip(Sound):
    async def trouble(self, request: Request, line: Line) -> None:
        body = encode_reply(request, text_result("fine"))
        await line.respond(200, body, {**_JSON_TYPE, "content-encoding": "gzip"})


class SoundGzip(Sound):
    async def trouble(self, request: Request, line: Line) -> None:
        body = gzip.compress(encode_reply(request, text_result("fine")))
        await line.respond(200, body, {**_JSON_TYPE, "content-encoding": "gzip"})


class Body(Sound):
    """Answers with a body that is spoiled."""

    spoil: Callable[[bytes], bytes] = staticmethod(lambda body: body)
    text = "fine X"

    async def trouble(self, request: Request, line: Line) -> None:
        body = type(self).spoil(encode_reply(request, text_result(self.text)))
        await line.respond(200, body, _JSON_TYPE)


class MalformedBody(Body):
    spoil = staticmethod(lambda body: body[:-5])


class EmptyBody(Body):
    spoil = staticmethod(lambda _: b"")


class InvalidUtf8Body(Body):
    spoil = staticmethod(lambda body: body.replace(b"X", b"\xff\xfe\x80"))


class LoneSurrogateBody(Body):
    spoil = staticmethod(lambda body: body.replace(b"X", b"\\ud800"))


class HugeIntegerBody(Body):
    spoil = staticmethod(lambda body: body.replace(b'"fine X"', b"9" * 10_000))


class WrongIdBody(Body):
    spoil = staticmethod(lambda body: body.replace(b'"id": ', b'"id": 98'))


class DeepBody(Body):
    spoil = staticmethod(lambda body: body.replace(b'"fine X"', b"[" * 100_000 + b"]" * 100_000))


class LargeBody(Sound):
    async def trouble(self, request: Request, line: Line) -> None:
        size = int(os.environ.get("FAULT_MEGABYTES", "30")) * 1024 * 1024
        await self.reply(request, line, text_result("fine " + "x" * size))


class LargeEvent(Sound):
    async def trouble(self, request: Request, line: Line) -> None:
        size = int(os.environ.get("FAULT_MEGABYTES", "30")) * 1024 * 1024
        await line.begin_events()
        await line.send_event(compose_reply(request, text_result("fine " + "x" * size)))


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


class RedirectsElsewhere(Sound):
    """Sends each call to another origin, which counts who comes."""

    async def handle(self, request: Request, line: Line) -> None:
        if request.path == "/elsewhere":
            self.server.notes["elsewhere"] += 1
            await line.respond(200)
        else:
            await super().handle(request, line)

    async def trouble(self, request: Request, line: Line) -> None:
        url = f"http://localhost:{self.server.port}/elsewhere"
        await line.respond(307, headers={"location": url})


class RedirectsForEver(Sound):
    async def trouble(self, request: Request, line: Line) -> None:
        await line.respond(307, headers={"location": request.path})


class FailsOneOfMany(Sound):
    """Breaks one call off while others wait, which it answers afterwards."""

    async def trouble(self, request: Request, line: Line) -> None:
        body = encode_reply(request, text_result("fine"))
        await line.begin(200, {**_JSON_TYPE, "content-length": str(len(body))})
        await line.write(body[:20])
        line.reset()
        asyncio.get_running_loop().call_later(0.2, self.release.set)


class FailsOneOfManyModern(FailsOneOfMany, Modern):
    pass


class UnsolicitedRequest(Sound):
    """Asks for sampling in the stream of an answer, and answers once it was refused."""

    def __init__(self) -> None:
        super().__init__()
        self.refused = asyncio.Event()

    async def on_notification(self, request: Request, line: Line) -> None:
        if request.message.get("id") == "q1" and "error" in request.message:
            self.refused.set()
        await super().on_notification(request, line)

    async def trouble(self, request: Request, line: Line) -> None:
        await line.begin_events()
        params = {"messages": [], "maxTokens": 10}
        question = {"jsonrpc": "2.0", "id": "q1", "method": "sampling/createMessage"}
        await line.send_event({**question, "params": params})
        await self.refused.wait()
        await line.send_event(compose_reply(request, text_result("fine, refused")))


class EventFlood(Sound):
    async def trouble(self, request: Request, line: Line) -> None:
        await line.begin_events()
        log = {"level": "info", "data": "busy"}
        notification = {"jsonrpc": "2.0", "method": "notifications/message", "params": log}
        flood = f"data: {json.dumps(notification)}\n\n".encode() * 5_000
        await line.write(flood)
        await line.send_event(compose_reply(request, text_result("fine")))


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
            await line.respond(500)
        else:
            await super().on_request(request, line)


class OldSilent(OldEvents):
    async def trouble(self, request: Request, line: Line) -> None:
        """No answer."""


class OldMalformed(OldEvents):
    async def trouble(self, request: Request, line: Line) -> None:
        assert self.stream is not None
        await self.stream.write(b'data: {"jsonrpc": "2.0", "id": 4, "result": {\n\n')
