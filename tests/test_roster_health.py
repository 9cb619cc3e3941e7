# SPDX-License-Identifier: Apache-2.0
"""Servers that fail are tried again without a crowd, and without delay for the care of those that work."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from mcp import types
from mcp.server import ServerRequestContext
from mcp.server.subscriptions import ToolsListChanged
from mcp.shared.exceptions import MCPError

import converser
from converser.rosters import operations
from tests.places import LIMIT
from tests.rosters import Ears, Gate, GatedServer, Server, make_server
from tests.servers import processes
from tests.servers.awkward import create_awkward_server

pytestmark = pytest.mark.anyio


class _Closed(GatedServer):
    """Refuses to list its tools for as long as its gate has no size, and then waits there."""

    async def _list_tools(
        self, ctx: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        if not self.gate.size:
            raise MCPError(types.INTERNAL_ERROR, "Closed.")
        return await super()._list_tools(ctx, params)


async def test_no_more_are_tried_again_at_once_than_are_opened() -> None:
    gate = Gate(0)
    servers = [Server.in_process(name, _Closed(gate)) for name in ("a", "b", "c", "d")]
    with anyio.fail_after(LIMIT):
        async with converser.Roster(servers, parallel=2) as roster:
            assert all(survey.error for survey in roster.survey().values())
            gate.size = 2
            surveys = await roster.check()
    assert not any(survey.error for survey in surveys.values())
    assert gate.most == 2


async def test_what_failed_is_forgotten_when_the_server_has_the_tools_listed_again() -> None:
    server, ears = _Closed(Gate(0)), Ears()
    with anyio.fail_after(LIMIT):
        async with converser.Roster([Server.in_process("a", server)], observer=ears) as roster:
            assert roster.survey()["a"].error
            server.gate.size = 1
            while not ears.changes("a"):  # the subscription may still be on its way
                await server.bus.publish(ToolsListChanged())
                await anyio.sleep(0.01)
            survey = roster.survey()["a"]
    assert survey.tools
    assert (survey.error, survey.is_remembered) == (None, False)


async def test_who_hangs_at_the_start_keeps_no_place_from_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(operations, "_BUSY", 0.05)
    gate, ears = Gate(2), Ears()
    hanging = Server.in_process("hanging", GatedServer(gate))
    roster = converser.Roster([hanging, make_server("good")], observer=ears, parallel=1)
    with anyio.fail_after(LIMIT / 2):  # the hanging one is given twice that
        async with anyio.create_task_group() as group:
            group.start_soon(roster.open)
            await ears.wait_until(lambda: "connected" in ears.states("good"))
            assert gate.present == 1
            group.cancel_scope.cancel()


async def test_who_hangs_when_tried_again_keeps_no_other_from_being_checked() -> None:
    gate, signs, server = Gate(0), anyio.Semaphore(0), create_awkward_server()
    usual = server.get_request_handler("server/discover")
    assert usual is not None

    async def discover(*arguments: Any) -> Any:
        signs.release()
        return await usual.handler(*arguments)

    server.add_request_handler("server/discover", usual.params_type, discover)
    servers = [Server.in_process("good", server), Server.in_process("bad", _Closed(gate))]
    with anyio.fail_after(LIMIT):
        async with converser.Roster(servers, health=0.01):
            gate.size = 99
            while not gate.present:
                await signs.acquire()
            for _ in range(10):
                await signs.acquire()


async def test_who_hangs_when_added_keeps_nobody_else_from_coming_and_going() -> None:
    ears, hanging = Ears(), Server.stdio("hanging", processes.raw_command("deaf"))
    roster = converser.Roster([make_server("old")], observer=ears)
    with anyio.fail_after(LIMIT / 2):  # the hanging one is given twice that
        async with roster, anyio.create_task_group() as group:
            group.start_soon(roster.add, hanging)
            await ears.wait_until(lambda: "pending" in ears.states("hanging"))
            await roster.add(make_server("new"))
            await roster.remove("old")
            revision = await roster.revise([hanging, make_server("other")])
            assert (revision.kept, revision.added) == (("hanging",), ("other",))
            await roster.remove("hanging")
            assert list(roster.survey()) == ["other"]


async def test_a_required_server_that_is_taken_out_while_it_is_added_is_told_and_gone() -> None:
    ears, hanging = Ears(), Server.stdio("a", processes.raw_command("deaf"), required=True)

    async def add() -> None:
        with pytest.raises(converser.MCPConnectionFailure, match="'a'"):
            await roster.add(hanging)

    with anyio.fail_after(LIMIT / 2):
        async with converser.Roster([], observer=ears) as roster:
            async with anyio.create_task_group() as group:
                group.start_soon(add)
                await ears.wait_until(lambda: "pending" in ears.states("a"))
                await roster.revise([make_server("a")])
            assert roster.survey()["a"].tools


async def test_a_revision_tells_no_failure_of_a_server_that_another_one_took_out() -> None:
    ears, hanging = Ears(), Server.stdio("a", processes.raw_command("deaf"))
    revisions: list[converser.Revision] = []

    async def revise() -> None:
        revisions.append(await roster.revise([hanging, make_server("b")]))

    with anyio.fail_after(LIMIT / 2):
        async with (
            converser.Roster([], observer=ears) as roster,
            anyio.create_task_group() as group,
        ):
            group.start_soon(revise)
            await ears.wait_until(lambda: "pending" in ears.states("a"))
            await roster.revise([make_server("b")])
    assert (revisions[0].added, revisions[0].errors) == (("a", "b"), {})
