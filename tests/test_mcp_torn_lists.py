# SPDX-License-Identifier: Apache-2.0
"""A list of tools whose later pages do not come: what came is used, the rest is told, and nothing vanishes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

import converser
from converser.rosters.catalogue import Drift, read_catalogue
from tests.faults.overhttp.sound import CACHE, Sound
from tests.faults.overhttp.wire import HttpServer, Line, Request
from tests.faults.overstdio.sound import ECHO
from tests.places import LIMIT
from tests.rosters import Ears, call
from tests.servers import processes

pytestmark = pytest.mark.anyio

FIRST = ["good", "lose", "mend", "tear"]


def make_server(scenario: str, **settings: Any) -> converser.MCPServer:
    command = processes.raw_command(scenario)
    return converser.MCPServer.stdio("t", command, tool_prefix="", **settings)


@pytest.mark.parametrize(
    ("scenario", "reason"),
    [
        ("torn", "Not now"),
        ("torn-oddly", "Method not found"),
        ("torn-silently", "within 1 s. Raise `connect_timeout`"),
        ("torn-slowly", "within 1 s. Raise `connect_timeout`"),
    ],
)
async def test_the_pages_that_came_are_used_and_the_rest_is_told(
    scenario: str, reason: str
) -> None:
    client = converser.StdioMCPClient(processes.raw_command(scenario), connect_timeout=1.0)
    with anyio.fail_after(LIMIT):
        async with await converser.discover_mcp_tools(client, "t") as ensemble:
            [remark] = ensemble.remarks
            assert [name for name in ensemble.invokers if "slow" not in name] == FIRST
            assert f"broke off after {len(ensemble.invokers)} tools:" in remark
            assert reason in remark
            assert isinstance(ensemble.interruption, converser.MCPFailure)
            assert (await ensemble.access_invoker("good")()).text == "good was called"


async def test_what_did_not_come_is_asked_for_again() -> None:
    ears = Ears()
    with anyio.fail_after(LIMIT):
        async with converser.Roster([make_server("torn-once")], observer=ears) as roster:
            ensemble = roster.access_ensemble("t")
            assert list(ensemble.invokers) == FIRST
            await ears.wait_until(lambda: ears.changes("t"))
            assert list(ensemble.invokers) == ["also_good", *FIRST]
            assert (ensemble.remarks, ensemble.interruption) == ((), None)
    assert ears.changes("t") == [converser.ToolsChanged(server="t", added=("also_good",))]


async def test_tools_whose_page_does_not_come_any_more_are_kept_until_a_whole_list_lacks_them(
    tmp_path: Path,
) -> None:
    ears, lock = Ears(), tmp_path / "converser.lock"
    with anyio.fail_after(LIMIT):
        async with converser.Roster([make_server("torn")], observer=ears, lock=lock) as roster:
            ensemble = roster.access_ensemble("t")
            assert not lock.exists()  # half a list is no beginning
            await call(roster, "t", "mend")
            await ears.wait_until(lambda: ears.changes("t"))
            assert roster.survey()["t"].drift == Drift()

            await call(roster, "t", "tear")
            await ears.wait_until(lambda: len(ears.changes("t")) == 2)
            assert list(ensemble.invokers) == ["also_good", *FIRST[:-1], "new", "tear"]
            assert roster.survey()["t"].drift == Drift(added=("new",))
            assert "kept as they were known: also_good." in str(roster.survey()["t"].remarks)
            assert await call(roster, "t", "also_good") == "also_good was called"

            await call(roster, "t", "lose")
            await ears.wait_until(lambda: len(ears.changes("t")) == 3)
            assert roster.survey()["t"].drift == Drift(removed=("also_good",))
    changes = [(change.added, change.removed) for change in ears.changes("t")]
    assert changes == [(("also_good",), ()), (("new",), ()), ((), ("also_good",))]
    written = [tool.name for tool in read_catalogue(lock).servers["t"].tools]
    assert written == ["good", "lose", "mend", "new", "tear"]


async def test_tools_from_the_lock_are_kept_where_the_first_list_is_torn(tmp_path: Path) -> None:
    ears, lock = Ears(), tmp_path / "converser.lock"
    server = make_server("torn", lazy=True)
    with anyio.fail_after(LIMIT):
        async with converser.Roster([server], observer=ears, lock=lock) as roster:
            await roster.reconnect("t")
            await call(roster, "t", "mend")
            await ears.wait_until(lambda: ears.changes("t"))
        before = lock.read_text()
        async with converser.Roster([server], lock=lock) as roster:
            await roster.reconnect("t")
            survey = roster.survey()["t"]
            assert [tool.name for tool in survey.tools] == ["also_good", *FIRST]
            assert "broke off" in str(survey.remarks)
            assert not survey.drift
            await roster.write_lock()
    assert lock.read_text() == before


async def test_a_server_that_ends_while_it_is_listed_has_not_listed_its_tools() -> None:
    client = converser.StdioMCPClient(processes.raw_command("torn-apart"), reconnect_attempts=0)
    with anyio.fail_after(LIMIT), pytest.raises(converser.MCPConnectionFailure) as caught:
        await converser.discover_mcp_tools(client, "t")
    assert caught.value.exit_code == 3


class Forgetful(Sound):
    """Has a second page of tools, and whoever asks for it is forgotten."""

    async def on_list(self, request: Request, line: Line) -> None:
        if "cursor" in (request.message.get("params") or {}):
            await line.respond(404)
        else:
            await self.reply(request, line, {"tools": [ECHO], "nextCursor": "2", **CACHE})


class Moody(Forgetful):
    """Refuses its second page of tools."""

    async def on_list(self, request: Request, line: Line) -> None:
        if "cursor" in (request.message.get("params") or {}):
            error = {"code": -32603, "message": "Not now"}
            await line.respond_json({"jsonrpc": "2.0", "id": request.message["id"], "error": error})
        else:
            await super().on_list(request, line)


async def test_a_session_that_is_forgotten_over_a_page_is_told_as_such() -> None:
    with HttpServer(Forgetful()).running() as server, anyio.fail_after(LIMIT):
        client = converser.HttpMCPClient(f"{server.origin}/mcp", reconnect_attempts=1)
        with pytest.raises(converser.MCPConnectionFailure) as caught:
            await converser.discover_mcp_tools(client, "h")
    assert "has forgotten the session" in str(caught.value)
    assert "by hand" not in caught.value.remedy  # it is not ours to start


async def test_one_tool_is_one_tool() -> None:
    with HttpServer(Moody()).running() as server, anyio.fail_after(LIMIT):
        client = converser.HttpMCPClient(f"{server.origin}/mcp")
        async with await converser.discover_mcp_tools(client, "h") as ensemble:
            [remark] = ensemble.remarks
    assert "after 1 tool:" in remark


class Stumbling(Sound):
    """Breaks the connection off whenever it is asked for its tools for the first, the third, … time."""

    async def on_list(self, request: Request, line: Line) -> None:
        self.server.notes["listed"] += 1
        if self.server.notes["listed"] % 2:
            line.reset()
        else:
            await super().on_list(request, line)


async def test_a_listing_that_the_network_breaks_off_is_made_again() -> None:
    with HttpServer(Stumbling()).running() as server, anyio.fail_after(LIMIT):
        client = converser.HttpMCPClient(f"{server.origin}/mcp")
        async with await converser.discover_mcp_tools(client, "h") as ensemble:
            await ensemble.refresh()
            assert (await ensemble.access_invoker("echo")({"text": "hi"})).text == "hi"
    assert server.notes["listed"] == 4
