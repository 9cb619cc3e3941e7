# SPDX-License-Identifier: Apache-2.0
"""Answers that come whole, and are broken, huge, or in strange company."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import struct
import zlib
from collections.abc import Callable

from tests.faults.overhttp.sound import JSON_TYPE, Sound, compose_reply, encode_reply
from tests.faults.overhttp.wire import Line, Request
from tests.faults.overstdio.sound import text_result


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
        await line.respond(200, body, {**JSON_TYPE, "content-encoding": "gzip"})


class BombInEvents(Sound):
    async def trouble(self, request: Request, line: Line) -> None:
        body = await asyncio.to_thread(_build_bomb)
        head = {"content-encoding": "gzip", "content-length": str(len(body))}
        await line.begin_events(head)
        await line.write(body)


class BombInError(Sound):
    async def trouble(self, request: Request, line: Line) -> None:
        body = await asyncio.to_thread(_build_bomb)
        await line.respond(500, body, {**JSON_TYPE, "content-encoding": "gzip"})


class BrokenGzip(Sound):
    async def trouble(self, request: Request, line: Line) -> None:
        body = encode_reply(request, text_result("fine"))
        await line.respond(200, body, {**JSON_TYPE, "content-encoding": "gzip"})


class SoundGzip(Sound):
    async def trouble(self, request: Request, line: Line) -> None:
        body = gzip.compress(encode_reply(request, text_result("fine")))
        await line.respond(200, body, {**JSON_TYPE, "content-encoding": "gzip"})


class Body(Sound):
    """Answers with a body that is spoiled."""

    spoil: Callable[[bytes], bytes] = staticmethod(lambda body: body)
    text = "fine X"

    async def trouble(self, request: Request, line: Line) -> None:
        body = type(self).spoil(encode_reply(request, text_result(self.text)))
        await line.respond(200, body, JSON_TYPE)


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


class ManyPartsBody(Body):
    spoil = staticmethod(lambda body: body.replace(b'"fine X"', b"[" + b"[]," * 5_000_000 + b"[]]"))


class LargeBody(Sound):
    async def trouble(self, request: Request, line: Line) -> None:
        size = int(os.environ.get("FAULT_MEGABYTES", "30")) * 1024 * 1024
        await self.reply(request, line, text_result("fine " + "x" * size))


class LargeEvent(Sound):
    async def trouble(self, request: Request, line: Line) -> None:
        size = int(os.environ.get("FAULT_MEGABYTES", "30")) * 1024 * 1024
        await line.begin_events()
        await line.send_event(compose_reply(request, text_result("fine " + "x" * size)))


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


class CountlessProgress(Sound):
    async def trouble(self, request: Request, line: Line) -> None:
        await line.begin_events()
        token = request.message["params"]["_meta"]["progressToken"]
        for facts in ({"progress": 10**400}, {"progress": 1, "total": 10**400}):
            params = {"progressToken": token, **facts}
            message = {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}
            await line.send_event(message)
        await line.send_event(compose_reply(request, text_result("fine")))


class EventFlood(Sound):
    async def trouble(self, request: Request, line: Line) -> None:
        await line.begin_events()
        log = {"level": "info", "data": "busy"}
        notification = {"jsonrpc": "2.0", "method": "notifications/message", "params": log}
        flood = f"data: {json.dumps(notification)}\n\n".encode() * 5_000
        await line.write(flood)
        await line.send_event(compose_reply(request, text_result("fine")))
