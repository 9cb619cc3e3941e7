# SPDX-License-Identifier: Apache-2.0
"""Answers over HTTP with small slips, as hand-written servers make them: they are read all the same."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import pytest

import converser
from tests.faults.overhttp.old_events import OldEvents
from tests.faults.overhttp.sound import CACHE, JSON_TYPE, Modern, Sound, compose_reply, encode_reply
from tests.faults.overhttp.wire import JSON, HttpServer, Line, Request
from tests.faults.overstdio.sound import ECHO, TROUBLE, text_result
from tests.places import LIMIT

pytestmark = pytest.mark.anyio

BOM = b"\xef\xbb\xbf"
FINE: JSON = {"content": [{"type": "text", "text": "fine, é"}], "resultType": "complete"}
EVENTS: JSON = {
    "without a line at its end": (b"data: ", b""),
    "without an empty line at its end": (b"event: message\r\ndata:", b"\r\n"),
    "with a byte order mark": (BOM + b"data: ", b"\n\n"),
}


class Events(Sound):
    """Answers a call with one event."""

    kind = "text/event-stream"
    frame = (b"data: ", b"\n\n")

    async def trouble(self, request: Request, line: Line) -> None:
        head, tail = self.frame
        await line.begin_events({"content-type": self.kind})
        answer = json.dumps(compose_reply(request, FINE), ensure_ascii=False)
        await line.write(head + answer.encode() + tail)


class Chatty(Events):
    """Shows signs of life that are no messages, before, between and with its events."""

    async def trouble(self, request: Request, line: Line) -> None:
        log: JSON = {
            "jsonrpc": "2.0",
            "method": "notifications/message",
            "params": {"level": "info"},
        }
        await line.begin_events()
        await line.write(b"data: ping\n\ndata: {}\n\n")
        await line.write(b'data: {"type": "keep-alive"}\r\n\r\ndata: [DONE]\r\r')
        await line.send_event(log)
        answer = encode_reply(request, FINE)
        await line.write(b"id: 1\ndata: still\ndata: here\n\ndata: " + answer + b"\n\n")


class ChattyModern(Chatty, Modern):
    """The same in the newer era."""


class Deep(Sound):
    """Lists a tool whose schema has more levels than strict decoders take."""

    async def on_list(self, request: Request, line: Line) -> None:
        schema: JSON = {"type": "object"}
        for _ in range(150):
            schema = {"type": "object", "properties": {"in": schema}}
        tools = [ECHO, {"name": "deep", "inputSchema": schema}, TROUBLE]
        await self.reply(request, line, {"tools": tools, **CACHE})


class DeepModern(Deep, Modern):
    """The same in the newer era."""


class DeepEvents(Deep):
    """The same in an event."""

    async def reply(self, request: Request, line: Line, result: JSON) -> None:
        await line.begin_events()
        await line.send_event(compose_reply(request, result))


class Aimless(Modern):
    """Redirects a call without saying where to."""

    async def trouble(self, request: Request, line: Line) -> None:
        await line.respond(304)


class Marked(Sound):
    """Answers a call with JSON behind a byte order mark."""

    async def trouble(self, request: Request, line: Line) -> None:
        await line.respond(200, BOM + encode_reply(request, FINE), JSON_TYPE)


class Halved(Events):
    """Its stream ends within the answer; it numbers its events, and has the whole answer when asked for it again."""

    async def trouble(self, request: Request, line: Line) -> None:
        self.answer = encode_reply(request, FINE)
        await line.begin_events()
        await line.write(b"retry: 1\nid: 1\ndata:\n\nid: 2\ndata: " + self.answer[:-1])

    async def on_get(self, request: Request, line: Line) -> None:
        if request.headers.get("last-event-id") != "1":
            await line.respond(405)
            return
        await line.begin_events()
        await line.write(b"id: 2\ndata: " + self.answer + b"\n\n")


class Terse(Modern):
    """Lists without what the protocol wants of a page besides its tools, and with a cursor that is none."""

    async def on_list(self, request: Request, line: Line) -> None:
        page = {"tools": [ECHO, TROUBLE], "nextCursor": 7, "ttlMs": "soon"}
        await line.respond_json(compose_reply(request, page))

    async def trouble(self, request: Request, line: Line) -> None:
        await self.reply(request, line, text_result("fine, é"))


@asynccontextmanager
async def discover(behaviour: Sound) -> AsyncGenerator[converser.Ensemble, None]:
    with HttpServer(behaviour).running() as server, anyio.fail_after(LIMIT):
        client = converser.HttpMCPClient(f"{server.origin}/mcp")
        async with await converser.discover_mcp_tools(client, "rough") as ensemble:
            yield ensemble


async def call(behaviour: Sound) -> str:
    async with discover(behaviour) as ensemble:
        return (await ensemble.access_invoker("trouble")()).text


@pytest.mark.parametrize("slip", EVENTS)
@pytest.mark.parametrize("era", [Sound, Modern])
async def test_an_event_counts_also(slip: str, era: type[Sound]) -> None:
    behaviour = type("Rough", (Events, era), {"frame": EVENTS[slip]})
    assert await call(behaviour()) == "fine, é"


async def test_events_are_utf_8_whatever_a_server_says() -> None:
    behaviour = Events()
    behaviour.kind = "text/event-stream;charset=ISO-8859-1"
    assert await call(behaviour) == "fine, é"


async def test_half_an_answer_is_asked_for_again() -> None:
    assert await call(Halved()) == "fine, é"


async def test_a_byte_order_mark_before_json_is_skipped() -> None:
    assert await call(Marked()) == "fine, é"


async def test_what_a_page_lacks_besides_tools_does_not_cost_them() -> None:
    async with discover(Terse()) as ensemble:
        assert (await ensemble.access_invoker("trouble")()).text == "fine, é"
    assert ensemble.remarks == ("The listing was cut: the server's cursor is no text.",)


class Long(OldEvents):
    """Sends what it is told to in place of an answer, in one event of two megabytes."""

    def __init__(self, message: bytes) -> None:
        super().__init__()
        self.message = message

    async def trouble(self, request: Request, line: Line) -> None:
        assert self.stream is not None
        number = str(request.message["id"]).encode()
        message = self.message.replace(b"ID", number).replace(b"LONG", b"x" * 2_000_000)
        await self.stream.write(b"event: message\r\ndata: " + message + b"\r\n\r\n")


@pytest.mark.parametrize(
    ("message", "told"),
    [
        (
            b'{"jsonrpc": "2.0", "id": ID, "result": {"content": "LONG}}',
            "cannot be used: it is not",
        ),
        (b'{"jsonrpc": "2.0", "id": ID, "error": {"code": 7, "message": "LONG"}}', "error 7: xxx"),
        (b'{"jsonrpc": "2.0", "method": "notifications/x", "params": {"a": "LONG"}}', "within 1 s"),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"a": "LONG"}}', "within 1 s"),
        (b'[1, "LONG"', "within 1 s"),
    ],
)
async def test_a_long_event_of_the_older_kind_ends_no_session(message: bytes, told: str) -> None:
    with HttpServer(Long(message)).running() as server, anyio.fail_after(LIMIT):
        client = converser.SseMCPClient(f"{server.origin}/sse")
        async with await converser.discover_mcp_tools(client, "old") as ensemble:
            with pytest.raises(converser.ToolExecutionFailure, match=told):
                await ensemble.access_invoker("trouble")(context=converser.Context(timeout=1.0))
            assert (await ensemble.access_invoker("echo")({"text": "hi"})).text == "hi"
            assert client.reconnects == 0


@pytest.mark.parametrize("behaviour", [Chatty, ChattyModern])
async def test_signs_of_life_among_events_are_not_taken_for_the_answer(
    behaviour: type[Sound],
) -> None:
    async with discover(behaviour()) as ensemble:
        assert (await ensemble.access_invoker("trouble")()).text == "fine, é"


@pytest.mark.parametrize("behaviour", [Deep, DeepModern, DeepEvents])
async def test_a_schema_that_is_nested_too_deeply_costs_one_tool(behaviour: type[Sound]) -> None:
    async with discover(behaviour()) as ensemble:
        assert list(ensemble.invokers) == ["echo", "trouble"]
        assert (await ensemble.access_invoker("echo")({"text": "fine"})).text == "fine"
        assert "levels" in ensemble.disabled["deep"]


async def test_a_redirection_that_leads_nowhere_is_told_by_its_status() -> None:
    async with discover(Aimless()) as ensemble:
        with pytest.raises(converser.ToolExecutionFailure, match="status 304") as caught:
            await ensemble.access_invoker("trouble")()
        assert caught.value.outcome is converser.Outcome.UNKNOWN
