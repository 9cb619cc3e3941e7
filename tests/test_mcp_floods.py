# SPDX-License-Identifier: Apache-2.0
"""Servers over HTTP that ask without end: it costs their own questions, and nobody's call."""

from __future__ import annotations

import asyncio
import json

import anyio
import pytest

import converser
from tests.faults.overhttp.old_events import OldEvents
from tests.faults.overhttp.sound import Sound
from tests.faults.overhttp.wire import JSON, HttpServer, Line, Request
from tests.places import LIMIT

pytestmark = pytest.mark.anyio
QUESTIONS = 5_000


def compose_flood() -> bytes:
    questions: list[JSON] = [
        {"jsonrpc": "2.0", "id": f"q{number}", "method": "ping"} for number in range(QUESTIONS)
    ]
    return b"".join(b"event: message\ndata: %b\n\n" % json.dumps(q).encode() for q in questions)


async def note_answer(self: Sound, request: Request, line: Line) -> None:
    """Takes its time with each answer of ours."""
    if str(request.message.get("id", "")).startswith("q"):
        self.server.notes["answers"] += 1
        await asyncio.sleep(0.005)
    await line.respond(202)


class Curious(Sound):
    """It asks on the stream where it may speak unasked."""

    on_notification = note_answer

    async def on_get(self, request: Request, line: Line) -> None:
        await line.begin_events()
        await line.write(compose_flood())
        await line.hold()


class OldCurious(OldEvents):
    """It asks on the one stream that there is."""

    on_notification = note_answer

    async def trouble(self, request: Request, line: Line) -> None:
        assert self.stream is not None
        await self.stream.write(compose_flood())
        await super().trouble(request, line)


@pytest.mark.parametrize(
    ("behaviour", "create_client"),
    [(Curious, converser.HttpMCPClient), (OldCurious, converser.SseMCPClient)],
)
async def test_a_flood_of_questions_keeps_no_call_waiting_and_fills_no_memory(
    behaviour: type[Sound], create_client: type[converser.HttpMCPClient]
) -> None:
    with HttpServer(behaviour()).running() as server, anyio.fail_after(LIMIT):
        client = create_client(f"{server.origin}/mcp")
        context = converser.Context(timeout=10)
        assert (await client.call_tool("trouble", {}, context=context)).text == "fine"
        while server.notes["answers"] < 5:  # noqa: ASYNC110 (another thread counts)
            await asyncio.sleep(0.01)
        for number in range(3):
            result = await client.call_tool("echo", {"text": f"{number}"}, context=context)
            assert result.text == f"{number}"
            assert len(asyncio.all_tasks()) < 300
        assert server.notes["answers"] < QUESTIONS / 2
        await client.disconnect()


class Inquirer(Curious):
    """It asks a question after the other, and waits for each answer."""

    async def on_get(self, request: Request, line: Line) -> None:
        await line.begin_events()
        for number in range(300):
            before = self.server.notes["answers"]
            message = {"jsonrpc": "2.0", "id": f"q{number % 7}", "method": "ping"}
            await line.send_event(message)
            while self.server.notes["answers"] == before:  # noqa: ASYNC110
                await asyncio.sleep(0.001)
        self.server.notes["satisfied"] += 1
        await line.hold()


async def test_however_often_a_server_asks_it_is_answered_over_the_same_few_connections() -> None:
    with HttpServer(Inquirer()).running() as server, anyio.fail_after(LIMIT):
        client = converser.HttpMCPClient(f"{server.origin}/mcp")
        await client.connect()
        while not server.notes["satisfied"]:  # noqa: ASYNC110 (another thread counts)
            await asyncio.sleep(0.01)
        assert server.notes["connections"] < 10
        await client.disconnect()
