# SPDX-License-Identifier: Apache-2.0
"""Rosters that name the same server share one connection, and the last one to leave ends it."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace

import anyio
import anyio.lowlevel
import pytest

import converser
from converser.mcp.sharing import Lease
from tests.places import LIMIT, Marked
from tests.rosters import Ears, Gate, GatedServer, Server, State, call, make_server
from tests.servers import processes

pytestmark = pytest.mark.anyio


def state_of(roster: converser.Roster, name: str = "a") -> State:
    return roster.survey()[name].state


async def test_two_rosters_share_one_process_until_the_last_leaves() -> None:
    marked = Marked(processes.raw_command("sound"))
    server = Server.stdio("a", marked.command)
    one, other = Ears(), Ears()
    with anyio.fail_after(LIMIT):
        async with converser.Roster([server], observer=one) as first:
            alone = len(marked.find_processes())
            async with converser.Roster([replace(server)], observer=other) as second:
                assert len(marked.find_processes()) == alone > 0
                assert await call(second, "a", "good") == "good was called"
                assert first.survey()["a"].calls == 1
            assert other.states("a") == ["pending", "connected", "disconnected"]
            assert one.states("a") == ["pending", "connected"]
            assert await call(first, "a", "good") == "good was called"
        assert marked.find_processes() == []


async def test_settings_of_tools_do_not_keep_two_apart_but_the_way_to_the_server_does() -> None:
    server = make_server("a")
    narrow = replace(server, disabled_tools=("echo",), timeout=5.0, lazy=False)
    with anyio.fail_after(LIMIT):
        async with converser.Roster([server]) as first, converser.Roster([narrow]) as second:
            await call(second, "a", "add", a=1, b=2)
            assert first.survey()["a"].calls == 1
            assert "a_echo" not in second.access_ensemble("a").invokers
            other = Server.in_process("a", make_server("a").server)
            async with converser.Roster([other]) as third:
                assert third.survey()["a"].calls == 0


async def test_those_who_answer_questions_differently_do_not_share() -> None:
    async def answer(_: converser.Elicitation) -> converser.ElicitationAnswer:
        return converser.ElicitationAnswer(values={"name": "Ada"})

    async def answer_else(_: converser.Elicitation) -> converser.ElicitationAnswer:
        return converser.ElicitationAnswer(values={"name": "Bob"})

    server = make_server("a")
    with anyio.fail_after(LIMIT):
        async with (
            converser.Roster([server], elicit=answer) as first,
            converser.Roster([server], elicit=answer_else) as second,
        ):
            assert await call(first, "a", "ask") == "Hello, Ada!"
            assert await call(second, "a", "ask") == "Hello, Bob!"


async def test_a_crash_is_healed_for_all(awkward_command: list[str]) -> None:
    server, one, other = Server.stdio("a", awkward_command), Ears(), Ears()
    with anyio.fail_after(LIMIT):
        async with (
            converser.Roster([server], observer=one) as first,
            converser.Roster([server], observer=other) as second,
        ):
            with pytest.raises(converser.ToolExecutionFailure):
                await call(first, "a", "crash")
            await other.wait_until(lambda: other.states("a").count("connected") == 2)
            assert await call(second, "a", "echo", text="x") == "x"
    for ears in (one, other):
        ears.assert_legal("a")
        assert "reconnecting" in ears.states("a")


async def test_new_tools_reach_all() -> None:
    server, one, other = make_server("a"), Ears(), Ears()
    with anyio.fail_after(LIMIT):
        async with (
            converser.Roster([server], observer=one) as first,
            converser.Roster([server], observer=other) as second,
        ):
            await call(first, "a", "grow")
            for ears in (one, other):
                await ears.wait_until(lambda ears=ears: ears.changes("a"))  # type: ignore[misc]
                assert ears.changes("a") == [
                    converser.ToolsChanged(server="a", added=("a_grown_1",))
                ]
            assert await call(second, "a", "grown_1") == "grown_1 at your service."


async def test_reconnecting_one_reconnects_all() -> None:
    server, other = make_server("a"), Ears()
    with anyio.fail_after(LIMIT):
        async with (
            converser.Roster([server]) as first,
            converser.Roster([server], observer=other) as second,
        ):
            await first.reconnect("a")
            assert state_of(second) is State.CONNECTED
            assert await call(second, "a", "echo", text="x") == "x"
            assert other.states("a")[2:] == ["disconnected", "pending", "connected"]
    other.assert_legal("a")


async def test_a_call_waits_for_a_connection_that_is_made_anew_meanwhile() -> None:
    marked, ears, answers = Marked(processes.raw_command("sound")), Ears(), []
    server = Server.stdio("a", marked.command)

    async def ask() -> None:
        answers.append(await call(roster, "a", "good"))

    with anyio.fail_after(LIMIT):
        async with converser.Roster([server], observer=ears) as roster:
            await roster.access_ensemble("a").disconnect()
            async with anyio.create_task_group() as group:
                group.start_soon(ask)
                await ears.wait_until(lambda: ears.states("a")[-1] == "pending")
                await roster.reconnect("a")
    assert answers == ["good was called"]
    assert marked.find_processes() == []


async def test_reconnecting_what_is_closed_meanwhile_leaves_nothing_behind() -> None:
    marked = Marked(processes.raw_command("sound"))
    roster = converser.Roster([Server.stdio("a", marked.command)])

    async def be_refused() -> None:
        with pytest.raises(converser.MCPConnectionFailure, match="is closed"):
            await roster.reconnect("a")

    with anyio.fail_after(LIMIT):
        async with anyio.create_task_group() as group, roster:
            group.start_soon(be_refused)
            while state_of(roster) is State.CONNECTED:  # until it waits for the end of the old one
                await anyio.lowlevel.checkpoint()
        assert marked.find_processes() == []


async def test_who_has_not_used_a_server_is_not_connected_to_it() -> None:
    server, ears = make_server("a"), Ears()
    with anyio.fail_after(LIMIT):
        async with (
            converser.Roster([server]) as first,
            converser.Roster([server], lazy=True, observer=ears) as second,
        ):
            assert (state_of(first), state_of(second)) == (State.CONNECTED, State.DISCONNECTED)
            await first.close()
            assert ears.events == []
            await second.reconnect("a")
            assert state_of(second) is State.CONNECTED


async def test_one_can_join_while_another_is_on_its_way() -> None:
    gate = Gate(2)
    server = Server.in_process("a", GatedServer(gate))
    one, other = Ears(), Ears()
    with anyio.fail_after(LIMIT):
        first, second = (converser.Roster([server], observer=ears) for ears in (one, other))
        async with anyio.create_task_group() as group:
            group.start_soon(first.open)
            group.start_soon(second.open)
        assert gate.most == 2
        async with anyio.create_task_group() as group:
            group.start_soon(first.close)
            group.start_soon(second.close)
    for ears in (one, other):
        assert ears.states("a") == ["pending", "connected", "disconnected"]


async def test_leaving_and_joining_at_once_leaves_the_joiner_connected() -> None:
    server = make_server("a")
    first, second = converser.Roster([server]), converser.Roster([server])
    with anyio.fail_after(LIMIT):
        await first.open()
        async with anyio.create_task_group() as group:
            group.start_soon(first.close)
            group.start_soon(second.open)
        assert await call(second, "a", "echo", text="x") == "x"
        await second.close()


def test_each_event_loop_has_its_own_connection() -> None:
    server = make_server("a")

    async def use() -> int:
        async with converser.Roster([server]) as roster:
            await call(roster, "a", "echo", text="x")
            return roster.survey()["a"].calls

    assert [anyio.run(use), anyio.run(use)] == [1, 1]


async def test_nothing_is_kept_of_a_connection_that_nobody_has() -> None:
    lease = Lease(make_server("a"))
    with anyio.fail_after(LIMIT):
        await lease.connect()
        await lease.disconnect()
    client = weakref.ref(lease.client)  # type: ignore[arg-type]
    del lease
    gc.collect()
    assert client() is None
