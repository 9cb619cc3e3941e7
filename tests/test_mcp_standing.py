# SPDX-License-Identifier: Apache-2.0
"""The stream on which an HTTP server of the older era speaks unasked: how it breaks, and what it shows."""

from __future__ import annotations

import asyncio

import anyio
import anyio.lowlevel
import pytest

import converser
from converser.mcp import changes
from converser.mcp.http import exchanges, guard
from tests.faults.overhttp.breaks import HammeredAnswer
from tests.faults.overhttp.sound import CACHE, Modern, Sound
from tests.faults.overhttp.wire import JSON, HttpServer, Line, Request
from tests.places import LIMIT
from tests.rosters import Ears

pytestmark = pytest.mark.anyio

CHANGE = b'data: {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}\n\n'
NEW: JSON = {"name": "new", "inputSchema": {"type": "object"}}


class Standing(Sound):
    """Has such a stream, and opens it again within a moment."""

    def __init__(self) -> None:
        super().__init__()
        self.streams = 0
        self.listed = asyncio.Event()
        self.has_news = False

    async def on_list(self, request: Request, line: Line) -> None:
        await self.reply(request, line, {"tools": [NEW] if self.has_news else [], **CACHE})
        self.listed.set()

    async def on_get(self, request: Request, line: Line) -> None:
        self.streams += 1
        line.open = False
        head = {"content-type": "text/event-stream", "transfer-encoding": "chunked"}
        await line.begin(200, head)
        await self.send(line, b"retry: 10\n\n")
        await self.stand(line)

    async def send(self, line: Line, data: bytes) -> None:
        await line.write(b"%x\r\n%b\r\n" % (len(data), data))

    async def stand(self, line: Line) -> None:
        """What it does with the stream."""
        await line.hold()


class Brittle(Standing):
    """Its stream breaks three times; only then it tells of a change."""

    async def stand(self, line: Line) -> None:
        if self.streams <= 3:
            line.reset()
            return
        self.has_news = True
        await self.send(line, CHANGE)
        await line.hold()


class Distracted(Standing):
    """It changes its tools while its stream is away, and so nobody hears of it."""

    capabilities: JSON = {"tools": {"listChanged": True}}  # noqa: RUF012

    async def stand(self, line: Line) -> None:
        if self.streams > 1:
            await line.hold()
            return
        await self.listed.wait()
        await line.write(b"0\r\n\r\n")
        self.has_news = True


class Unsteady(Distracted):
    """Its stream never lasts; it counts how often it is asked for its tools."""

    def __init__(self) -> None:
        super().__init__()
        self.has_news = True

    async def on_list(self, request: Request, line: Line) -> None:
        self.server.notes["listed"] += 1
        await super().on_list(request, line)

    async def stand(self, line: Line) -> None:
        self.server.notes["streams"] += 1
        await line.write(b"0\r\n\r\n")


class Numbered(Standing):
    """It numbers its events, has trouble with its stream, and tells of a change in the end."""

    def __init__(self, status: int, times: int) -> None:
        super().__init__()
        self.status, self.times = status, times

    async def on_get(self, request: Request, line: Line) -> None:
        if self.streams and self.status != 200 and self.times:
            self.times -= 1
            await line.respond(self.status)
        else:
            await super().on_get(request, line)

    async def stand(self, line: Line) -> None:
        await self.send(line, b"id: 7\ndata: \n\n")
        if self.streams > 1 and (not self.times or self.streams > self.times):
            self.has_news = True
            await self.send(line, CHANGE)
            await line.hold()
        await line.write(b"0\r\n\r\n")


class Forgetful(Standing):
    """It forgets its first session, whose stream ends, and has a new tool in the second one."""

    async def on_get(self, request: Request, line: Line) -> None:
        if request.headers["mcp-session-id"] not in self.sessions:
            await line.respond(404)
        else:
            await super().on_get(request, line)

    async def stand(self, line: Line) -> None:
        if self.sessions_made > 1:
            await line.hold()
        else:
            await self.listed.wait()
            self.sessions.clear()
            self.has_news = True
            await line.write(b"0\r\n\r\n")


class Subscribed(Modern):
    """Of the newer era: what brings it its subscription breaks twice; only then it tells of a change."""

    capabilities: JSON = {"tools": {"listChanged": True}}  # noqa: RUF012

    def __init__(self) -> None:
        super().__init__()
        self.has_news = False
        self.subscriptions = 0

    async def on_request(self, request: Request, line: Line) -> None:
        if request.message["method"] != "subscriptions/listen":
            await super().on_request(request, line)
            return
        self.subscriptions += 1
        await line.begin_events()
        await self.tell(request, line, "subscriptions/acknowledged")
        if self.subscriptions <= 2:
            line.reset()
            return
        self.has_news = True
        await self.tell(request, line, "tools/list_changed")
        await line.hold()

    async def tell(self, request: Request, line: Line, what: str) -> None:
        meta = {"io.modelcontextprotocol/subscriptionId": request.message["id"]}
        params = {"notifications": {"toolsListChanged": True}, "_meta": meta}
        message = {"jsonrpc": "2.0", "method": f"notifications/{what}", "params": params}
        await line.send_event(message)

    async def on_list(self, request: Request, line: Line) -> None:
        await self.reply(request, line, {"tools": [NEW] if self.has_news else [], **CACHE})


class Pinged(Sound):
    """Shows signs of life, in the sessions that it knows."""

    async def on_request(self, request: Request, line: Line) -> None:
        is_known = request.headers.get("mcp-session-id") in self.sessions
        if request.message["method"] == "ping" and is_known:
            await self.reply(request, line, {})
        else:
            await super().on_request(request, line)


class Leavable(Sound):
    """Notes which of its sessions was left; its slow calls end one by one, each when `trouble` is called."""

    def __init__(self) -> None:
        super().__init__()
        self.slow: list[asyncio.Event] = []

    async def on_delete(self, request: Request, line: Line) -> None:
        self.server.notes[request.headers["mcp-session-id"]] += 1
        await super().on_delete(request, line)

    async def on_slow(self, request: Request, line: Line) -> None:
        self.server.notes["slow"] += 1
        self.slow.append(asyncio.Event())
        await self.slow[-1].wait()
        await self.reply(request, line, {"content": [], **CACHE})

    async def trouble(self, request: Request, line: Line) -> None:
        self.slow.pop(0).set()
        await super().trouble(request, line)


class WithoutStream(Sound):
    """It knows nothing of streams, and says so in the words for what is not there."""

    async def on_get(self, request: Request, line: Line) -> None:
        await line.respond(404)
        self.server.notes["refused"] += 1


async def _watch(server: HttpServer, ears: Ears) -> list[str]:
    """The states that a server goes through until it has the new tool, of which nobody asks it."""
    configured = converser.MCPServer.http("h", f"{server.origin}/mcp", tool_prefix="")
    with anyio.fail_after(LIMIT):
        async with converser.Roster([configured], observer=ears) as roster:
            await ears.wait_until(lambda: ears.changes("h"))
            assert list(roster.access_ensemble("h").invokers) == ["new"]
            return ears.states("h")


async def test_a_stream_that_breaks_again_and_again_is_opened_again() -> None:
    with HttpServer(Brittle()).running() as server:
        assert await _watch(server, Ears()) == ["pending", "connected"]


async def test_a_subscription_that_breaks_again_and_again_is_made_again() -> None:
    with HttpServer(Subscribed()).running() as server:
        assert await _watch(server, Ears()) == ["pending", "connected"]


async def test_a_change_while_the_stream_was_away_is_found() -> None:
    with HttpServer(Distracted()).running() as server:
        assert await _watch(server, Ears()) == ["pending", "connected"]


async def test_a_stream_that_never_lasts_is_no_reason_to_list_without_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(changes, "_GAPS", 2)
    with HttpServer(Unsteady()).running() as server, anyio.fail_after(LIMIT):
        client = converser.HttpMCPClient(f"{server.origin}/mcp")
        async with await converser.discover_mcp_tools(client, "h"):
            await _wait_for(server, "streams", 9)
        assert 2 <= server.notes["listed"] <= 3


@pytest.mark.parametrize(("status", "times"), [(200, 70), (503, 8), (409, 3)])
async def test_a_stream_with_numbers_is_opened_again_as_well(
    status: int, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchanges.Pace, "wait", lambda _: anyio.lowlevel.checkpoint())
    monkeypatch.setattr(guard, "_KNOCK_PAUSE_MAX", 0.01)
    with HttpServer(Numbered(status, times)).running() as server:
        assert await _watch(server, Ears()) == ["pending", "connected"]


async def test_an_answer_that_only_asks_to_be_resumed_is_given_up_in_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(exchanges.Pace, "wait", lambda _: anyio.lowlevel.checkpoint())
    monkeypatch.setattr(guard, "Pace", lambda: exchanges.Pace(limit=5))
    with HttpServer(HammeredAnswer()).running() as server, anyio.fail_after(LIMIT):
        client = converser.HttpMCPClient(f"{server.origin}/mcp")
        async with await converser.discover_mcp_tools(client, "h") as ensemble:
            for times in (1, 2):
                with pytest.raises(converser.ToolExecutionFailure, match="outcome is unknown"):
                    await ensemble.access_invoker("trouble")({})
                assert server.notes["GET"] == 1 + 5 * times


async def test_a_forgotten_session_is_noticed_without_a_call() -> None:
    with HttpServer(Forgetful()).running() as server:
        states = await _watch(server, Ears())
    assert states == ["pending", "connected", "reconnecting", "connected"]


async def test_a_server_without_such_a_stream_has_not_forgotten_the_session() -> None:
    behaviour = WithoutStream()
    with HttpServer(behaviour).running() as server, anyio.fail_after(LIMIT):
        client = converser.HttpMCPClient(f"{server.origin}/mcp")
        async with await converser.discover_mcp_tools(client, "h") as ensemble:
            while not server.notes["refused"]:
                await ensemble.access_invoker("echo")({"text": "hi"})
            await ensemble.access_invoker("echo")({"text": "hi"})
            assert client.reconnects == 0
    assert behaviour.sessions_made == 1


async def test_what_changes_nothing_is_asked_again_where_the_session_was_forgotten() -> None:
    behaviour = Pinged()
    with HttpServer(behaviour).running() as server, anyio.fail_after(LIMIT):
        configured = converser.MCPServer.http("h", f"{server.origin}/mcp")
        async with converser.Roster([configured]) as roster:
            behaviour.sessions.clear()
            await roster.access_ensemble("h").refresh()
            behaviour.sessions.clear()
            survey = (await roster.check())["h"]
    assert behaviour.sessions_made == 3
    assert (survey.trouble, survey.error, survey.is_degraded) == ("", None, False)


async def test_each_forgotten_session_is_left_when_its_own_calls_are_over() -> None:
    behaviour = Leavable()
    with HttpServer(behaviour).running() as server, anyio.fail_after(LIMIT):
        client = converser.HttpMCPClient(f"{server.origin}/mcp")
        async with (
            await converser.discover_mcp_tools(client, "h") as ensemble,
            anyio.create_task_group() as group,
        ):
            for number in (1, 2):
                group.start_soon(ensemble.access_invoker("slow"))
                await _wait_for(server, "slow", number)
                behaviour.sessions.clear()
                await ensemble.access_invoker("echo")({"text": "hi"})  # in a new session
            for number in (1, 2):
                await ensemble.access_invoker("trouble")()
                await _wait_for(server, f"session-{number}", 1)
    assert [server.notes[f"session-{number}"] for number in (1, 2)] == [1, 1]


async def _wait_for(server: HttpServer, word: str, count: int) -> None:
    while server.notes[word] < count:
        await anyio.lowlevel.checkpoint()
