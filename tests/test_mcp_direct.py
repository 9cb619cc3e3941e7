# SPDX-License-Identifier: Apache-2.0
"""Calls over HTTP that go past the SDK's streams, and those that turn out not to."""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import pytest
from anyio.to_thread import run_sync
from mcp.client.session import ClientSession
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED

import converser
from converser.mcp.http.direct import DirectDispatcher
from converser.mcp.transports import open_http
from tests.faults.overhttp.sound import Modern, Sound, compose_reply
from tests.faults.overhttp.wire import HttpServer, Line, Request
from tests.faults.overstdio.sound import text_result

LIMIT = 20
pytestmark = pytest.mark.anyio


class Watched(Modern):
    """Notes the calls that come."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[Request] = []

    async def on_request(self, request: Request, line: Line) -> None:
        if request.message["method"] == "tools/call":
            self.calls.append(request)
        await super().on_request(request, line)


class Telling(Watched):
    """Answers a call with events: progress, and the result."""

    async def trouble(self, request: Request, line: Line) -> None:
        token = request.message["params"]["_meta"]["progressToken"]
        params = {"progressToken": token, "progress": 1.0}
        await line.begin_events()
        await line.send_event(
            {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}
        )
        await line.send_event(compose_reply(request, text_result("fine")))


class Moved(Watched):
    """Redirects calls: to another path, or to nowhere."""

    async def trouble(self, request: Request, line: Line) -> None:
        if request.path == "/mcp":
            await line.respond(307, headers={"location": "/moved"})
        else:
            await super().trouble(request, line)

    async def on_slow(self, request: Request, line: Line) -> None:
        await line.respond(307, headers={"location": "http://nowhere:at-all/"})


class Choosy(Watched):
    """Sends a result, and says that there are others."""

    async def trouble(self, request: Request, line: Line) -> None:
        await line.respond_json(compose_reply(request, text_result("fine")), status=300)


class Misaddressed(Watched):
    """Sends answers that name another request, or none, or are among others."""

    async def trouble(self, request: Request, line: Line) -> None:
        others = [{"jsonrpc": "2.0", "method": "notifications/message", "params": {}}]
        await line.respond_json([*others, compose_reply(request, text_result("fine"))])

    async def on_slow(self, request: Request, line: Line) -> None:
        await line.respond_json({"jsonrpc": "2.0", "id": 7, "result": text_result("not yours")})


class Anonymous(Sound):
    """Says in the older era that calls fail, but not which."""

    async def trouble(self, request: Request, line: Line) -> None:
        error = {"code": -32603, "message": "no idea"}
        await line.respond_json({"jsonrpc": "2.0", "id": None, "error": error})


class AnonymousModern(Watched, Anonymous):
    """The same in the newer era."""


class Silent(Watched):
    """Never answers a slow call, and sees how it is given up."""

    def __init__(self) -> None:
        super().__init__()
        self.came = threading.Event()
        self.given_up = threading.Event()

    async def on_slow(self, request: Request, line: Line) -> None:
        self.came.set()
        await line.hold()
        self.given_up.set()


@asynccontextmanager
async def connect(behaviour: Sound) -> AsyncGenerator[converser.Ensemble, None]:
    with HttpServer(behaviour).running() as server, anyio.fail_after(LIMIT):
        client = converser.HttpMCPClient(f"{server.origin}/mcp")
        async with await converser.discover_mcp_tools(client, "h") as ensemble:
            yield ensemble


async def test_nobody_can_guess_the_id_of_a_call() -> None:
    server = Watched()
    async with connect(server) as ensemble:
        for _ in range(3):
            await ensemble.access_invoker("echo")({"text": "hi"})
    ids = [request.message["id"] for request in server.calls]
    assert len(set(ids)) == 3
    assert max(ids) > 2**32


async def test_a_call_that_is_answered_with_events_is_made_once() -> None:
    server, heard = Telling(), list[float]()

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append(progress)

    async with connect(server) as ensemble:
        for _ in range(2):
            context = converser.Context(on_progress=hear)
            assert (await ensemble.access_invoker("trouble")({}, context=context)).text == "fine"
    assert heard == [1.0, 1.0]
    assert len(server.calls) == 2


async def test_a_call_follows_a_redirection_within_its_origin() -> None:
    server = Moved()
    async with connect(server) as ensemble:
        assert (await ensemble.access_invoker("trouble")()).text == "fine"
    assert [request.path for request in server.calls] == ["/mcp", "/moved"]


async def test_a_redirection_to_nowhere_fails_one_call() -> None:
    async with connect(Moved()) as ensemble:
        with pytest.raises(converser.ToolExecutionFailure, match="outcome is unknown"):
            await ensemble.access_invoker("slow")()
        assert (await ensemble.access_invoker("echo")({"text": "hi"})).text == "hi"


async def test_a_result_may_come_with_a_status_that_leaves_a_choice() -> None:
    async with connect(Choosy()) as ensemble:
        assert (await ensemble.access_invoker("trouble")()).text == "fine"


async def test_a_call_ends_with_the_session() -> None:
    server = Silent()
    failures: list[MCPError] = []
    ended = anyio.Event()
    with HttpServer(server).running() as listener, anyio.fail_after(LIMIT):
        async with (
            anyio.create_task_group() as group,
            open_http(f"{listener.origin}/mcp", {}) as streams,
        ):
            session = ClientSession(dispatcher=DirectDispatcher(streams, lambda _, result: result))

            async def call() -> None:
                with pytest.raises(MCPError) as caught:
                    await session.call_tool("slow", {})
                failures.append(caught.value)
                ended.set()

            async with session:
                await session.discover()
                await session.list_tools()
                group.start_soon(call)
                await run_sync(server.came.wait, LIMIT)
            await ended.wait()  # before the connection ends
            assert await run_sync(server.given_up.wait, LIMIT)
    assert [failure.code for failure in failures] == [CONNECTION_CLOSED]


async def test_a_call_that_is_given_up_ends_on_the_server_too() -> None:
    server = Silent()
    async with connect(server) as ensemble:
        with pytest.raises(converser.ToolExecutionFailure, match="did not answer"):
            await ensemble.access_invoker("slow")({}, context=converser.Context(timeout=0.2))
        assert await run_sync(server.given_up.wait, LIMIT)


async def test_an_answer_to_another_request_fails_the_call_at_once() -> None:
    async with connect(Misaddressed()) as ensemble:
        with pytest.raises(converser.ToolExecutionFailure, match="cannot be used"):
            await ensemble.access_invoker("slow")({}, context=converser.Context(timeout=5))
        assert (await ensemble.access_invoker("trouble")()).text == "fine"


@pytest.mark.parametrize("behaviour", [Anonymous, AnonymousModern])
async def test_an_error_that_names_no_request_is_heard(behaviour: type[Sound]) -> None:
    async with connect(behaviour()) as ensemble:
        with pytest.raises(converser.ToolExecutionFailure, match="no idea"):
            await ensemble.access_invoker("trouble")({}, context=converser.Context(timeout=5))
