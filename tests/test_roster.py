# SPDX-License-Identifier: Apache-2.0
"""A roster opens servers together, keeps one bad one from the others, and changes while it runs."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.to_thread import run_sync

import converser
from converser.rosters import watching
from converser.rosters.chores import Chores, repeat
from converser.testing import ScriptedModel
from tests.conversations import converse, results_of
from tests.places import LIMIT, Marked, serve_on_port
from tests.rosters import (
    Ears,
    Gate,
    GatedServer,
    Server,
    State,
    call,
    make_broken,
    make_server,
)
from tests.servers import processes
from tests.servers.awkward import TOOL_NAMES, AwkwardServer, create_awkward_server

pytestmark = pytest.mark.anyio


@contextlib.asynccontextmanager
async def opened(*servers: converser.MCPServer, **options: Any) -> AsyncGenerator[converser.Roster]:
    with anyio.fail_after(LIMIT):
        roster = converser.Roster(servers, **options)
        await roster.open()
    try:
        yield roster
    finally:
        with anyio.fail_after(LIMIT):
            await roster.close()


def names_of(roster: converser.Roster) -> list[str]:
    return [ensemble.name for ensemble in roster.ensembles]


def states_of(roster: converser.Roster) -> dict[str, State]:
    return {name: survey.state for name, survey in roster.survey().items()}


# Opening and closing.


async def test_servers_are_opened_at_once() -> None:
    gate = Gate(3)
    servers = [Server.in_process(name, GatedServer(gate)) for name in ("a", "b", "c")]
    async with opened(*servers) as roster:
        assert names_of(roster) == ["a", "b", "c"]
    assert gate.most == 3


async def test_no_more_are_opened_at_once_than_is_allowed() -> None:
    gate = Gate(2)
    servers = [Server.in_process(name, GatedServer(gate)) for name in ("a", "b", "c", "d")]
    async with opened(*servers, parallel=2):
        assert gate.most == 2


async def test_tools_of_all_transports_can_be_called(
    awkward_command: list[str], awkward_http: processes.RunningServer
) -> None:
    servers = (
        Server.http("web", awkward_http.url),
        Server.stdio("process", awkward_command),
        make_server("inside"),
    )
    async with opened(*servers) as roster:
        assert names_of(roster) == ["web", "process", "inside"]
        for name in names_of(roster):
            assert await call(roster, name, f"{name}_echo", text=name) == name


async def test_a_bad_server_does_not_spoil_the_others() -> None:
    async with opened(make_broken("bad"), make_server("good")) as roster:
        assert names_of(roster) == ["good"]
        survey = roster.survey()["bad"]
        assert survey.state is State.FAILED
        assert isinstance(survey.error, converser.MCPConnectionFailure)
        assert survey.error.server == "bad"
        assert survey.remedy == "Install it, or correct its `command` or `cwd`."
        assert roster.survey()["good"].error is None


async def test_a_server_that_lacks_a_secret_fails_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ROSTER_TOKEN", raising=False)
    bad = Server.http(
        "bad", "http://127.0.0.1:9/mcp", headers={"Authorization": "env:ROSTER_TOKEN"}
    )
    async with opened(bad, make_server("good")) as roster:
        assert names_of(roster) == ["good"]
        assert "ROSTER_TOKEN is not set" in str(roster.survey()["bad"].error)


async def test_a_required_server_that_fails_raises_plainly_and_the_others_are_closed() -> None:
    marked, ears = Marked(processes.raw_command("sound")), Ears()
    servers = [Server.stdio("good", marked.command), make_broken("bad", required=True)]
    roster = converser.Roster(servers, observer=ears, parallel=1)
    with anyio.fail_after(LIMIT), pytest.raises(converser.MCPConnectionFailure, match="'bad'"):
        async with roster:
            raise AssertionError("It must not open.")
    assert ears.states("good") == ["pending", "connected", "disconnected"]
    assert marked.find_processes() == []


async def test_a_required_server_that_fails_waits_for_no_slow_one() -> None:
    slow = Server.in_process("slow", GatedServer(Gate(2)))
    with anyio.fail_after(LIMIT / 2), pytest.raises(converser.MCPConnectionFailure, match="'bad'"):
        await converser.Roster([slow, make_broken("bad", required=True)]).open()


async def test_cancelling_the_opening_leaves_no_process() -> None:
    marked = Marked(processes.raw_command("sound"))
    gate = Gate(2)
    servers = (Server.stdio("a", marked.command), Server.in_process("b", GatedServer(gate)))
    ears = Ears()
    roster = converser.Roster(servers, observer=ears)
    with anyio.fail_after(LIMIT):
        async with anyio.create_task_group() as group:
            group.start_soon(roster.open)
            await ears.wait_until(lambda: "connected" in ears.states("a"))
            group.cancel_scope.cancel()
    assert marked.find_processes() == []


async def test_what_the_body_raises_comes_out_as_it_is() -> None:
    with pytest.raises(KeyError, match="mine"):
        async with converser.Roster([make_server("a")]):
            raise KeyError("mine")


async def test_it_can_be_closed_from_another_task_and_repeatedly_and_opened_again() -> None:
    roster = converser.Roster([make_server("a")])
    with anyio.fail_after(LIMIT):
        for _ in range(2):
            await roster.open()
            await roster.open()
            assert await call(roster, "a", "echo", text="x") == "x"
            async with anyio.create_task_group() as group:
                group.start_soon(roster.close)
                group.start_soon(roster.close)
            await roster.close()
            assert states_of(roster) == {"a": State.DISCONNECTED}


async def test_closing_ends_what_is_on_its_way() -> None:
    slow, ears = Server.in_process("slow", GatedServer(Gate(2))), Ears()
    roster = converser.Roster([slow], observer=ears)

    async def be_refused(work: Callable[[], Awaitable[object]]) -> None:
        with pytest.raises(converser.ConfigurationFailure, match="not open"):
            await work()

    with anyio.fail_after(LIMIT / 3):
        async with anyio.create_task_group() as group:
            group.start_soon(be_refused, roster.open)
            await ears.wait_until(lambda: "connected" in ears.states("slow"))
            await roster.close()
        assert states_of(roster) == {"slow": State.DISCONNECTED}
    async with opened(observer=ears) as roster:
        with anyio.fail_after(LIMIT / 3):
            async with anyio.create_task_group() as group:
                group.start_soon(be_refused, lambda: roster.add(replace(slow, name="late")))
                group.start_soon(be_refused, lambda: roster.add(make_server("later")))
                await ears.wait_until(lambda: "connected" in ears.states("late"))
                await roster.close()
        assert states_of(roster) == {}


@pytest.mark.parametrize("steps", range(1, 6))
@pytest.mark.parametrize("until", ["pending", "connected"])
async def test_who_is_cancelled_again_leaves_nothing_behind(until: str, steps: int) -> None:
    """While it is being opened, or closed."""
    marked, ears = Marked(processes.raw_command("sound")), Ears()

    async def work() -> None:
        async with converser.Roster([Server.stdio("a", marked.command)], observer=ears, health=60):
            await anyio.sleep_forever()

    def list_tasks() -> list[str]:
        names = [task.get_name() for task in asyncio.all_tasks()]
        return [name for name in names if name.startswith("converser")]

    before = list_tasks()
    task = asyncio.create_task(work())
    with anyio.fail_after(LIMIT):
        await ears.wait_until(lambda: until in ears.states("a"))
        task.cancel()
        for _ in range(steps):
            await anyio.lowlevel.checkpoint()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        while list_tasks() != before or marked.find_processes():
            await anyio.lowlevel.checkpoint()


async def test_tools_of_a_closed_roster_refuse_instead_of_starting_what_nobody_ends() -> None:
    marked = Marked(processes.raw_command("sound"))
    async with opened(Server.stdio("a", marked.command)) as roster:
        invoker = roster.access_ensemble("a").access_invoker("good")
    with anyio.fail_after(LIMIT), pytest.raises(converser.ToolExecutionFailure, match="is closed"):
        await invoker()
    assert marked.find_processes() == []


# Surveys and events.


async def test_a_survey_tells_all_of_a_server(awkward_command: list[str]) -> None:
    server = Server.stdio(
        "a", awkward_command, environment={"TOKEN": "hush-hush"}, disabled_tools=["crash"]
    )
    async with opened(server) as roster:
        assert await call(roster, "a", "echo", text="x") == "x"
        with pytest.raises(converser.ToolExecutionFailure):
            await call(roster, "a", "rpc_error")
        survey = roster.survey()["a"]
    assert (survey.name, survey.state, survey.transport) == ("a", State.CONNECTED, "stdio")
    assert (survey.server_name, survey.server_version) == ("awkward", "1.0.0")
    assert survey.protocol_version == "2026-07-28"
    assert survey.instructions == "Everything here is awkward on purpose."
    assert survey.scope == "application"
    assert list(survey.configuration["environment"]) == ["TOKEN"]
    assert "hush-hush" not in repr(survey)
    assert [tool.own_name for tool in survey.tools] == sorted({*TOOL_NAMES} - {"crash"})
    echo = next(tool for tool in survey.tools if tool.own_name == "echo")
    assert (echo.name, echo.annotations.read_only) == ("a_echo", True)
    assert survey.tokens == sum(tool.tokens for tool in survey.tools) > 12 * 10
    assert (survey.calls, survey.failures, survey.reconnects) == (2, 1, 0)
    assert survey.last_seen is not None
    assert 0 < (survey.latency or 0) < LIMIT
    assert not survey.is_degraded
    assert not survey.is_remembered


async def test_unusable_tools_are_surveyed_with_the_reason() -> None:
    command = processes.raw_command("broken-schema")
    async with opened(Server.stdio("raw", command)) as roster:
        survey = roster.survey()["raw"]
    assert survey.disabled_tools
    assert all(survey.disabled_tools.values())
    assert "good" in [tool.own_name for tool in survey.tools]


async def test_costs_grow_with_definitions() -> None:
    async with opened(make_server("a")) as roster:
        costs = roster.access_ensemble("a").cost()
    assert costs["a_add"] > costs["a_fail"] > 0


async def test_an_observer_hears_legal_steps_only() -> None:
    ears = Ears()
    async with opened(
        make_server("a"), make_broken("b"), make_server("c", enabled=False), observer=ears
    ):
        pass
    assert ears.states("a") == ["pending", "connected", "disconnected"]
    assert ears.states("b") == ["pending", "failed", "disconnected"]
    assert ears.states("c") == ["disabled"]
    for name in "abc":
        ears.assert_legal(name)
    reasons = {e.state: e.reason for e in ears.events if getattr(e, "server", "") == "b"}  # type: ignore[union-attr]
    assert "/nonexistent/server" in reasons["failed"]
    assert reasons["pending"] == ""


async def test_an_async_observer_hears_all_until_the_end() -> None:
    heard: list[converser.Event] = []

    async def observe(event: converser.Event) -> None:
        await anyio.lowlevel.checkpoint()
        heard.append(event)

    async with opened(make_server("a"), observer=observe):
        pass
    assert [getattr(event, "state", "") for event in heard] == [
        "pending",
        "connected",
        "disconnected",
    ]


async def test_an_observer_that_raises_harms_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def observe(event: converser.Event) -> None:
        raise ValueError("no ears")

    async with opened(make_server("a"), observer=observe) as roster:
        assert await call(roster, "a", "echo", text="x") == "x"
    assert "no ears" in caplog.text


async def test_an_observer_can_close_the_roster() -> None:
    closed = anyio.Event()

    async def observe(event: converser.Event) -> None:
        if isinstance(event, converser.ServerStateChanged) and event.state == "connected":
            await roster.close()
            closed.set()

    roster = converser.Roster([make_server("a")], observer=observe)
    with anyio.fail_after(LIMIT):
        with contextlib.suppress(converser.ConfigurationFailure):  # it may be closed so soon
            await roster.open()
        await closed.wait()
        await roster.close()
    assert states_of(roster) == {"a": State.DISCONNECTED}


async def test_an_observer_that_adds_what_hangs_does_not_hinder_closing() -> None:
    ears = Ears()

    async def observe(event: converser.Event) -> None:
        ears(event)
        if isinstance(event, converser.ServerStateChanged) and event.server == "a":
            await roster.add(Server.stdio("hanging", processes.raw_command("deaf")))

    roster = converser.Roster([make_server("a")], observer=observe)
    with anyio.fail_after(LIMIT / 2):  # the hanging one is given twice that
        async with roster:
            while states_of(roster).get("hanging") is not State.PENDING:
                await anyio.lowlevel.checkpoint()
    assert list(roster.survey()) == ["a"]


# Recovery and health.


async def test_a_server_that_crashes_comes_back_and_stays_usable_meanwhile(
    awkward_command: list[str],
) -> None:
    ears = Ears()
    async with opened(Server.stdio("a", awkward_command), observer=ears) as roster:
        with pytest.raises(converser.ToolExecutionFailure, match="outcome is unknown"):
            await call(roster, "a", "crash")
        assert names_of(roster) == ["a"]
        await ears.wait_until(lambda: ears.states("a").count("connected") == 2)
        assert await call(roster, "a", "echo", text="x") == "x"
        assert roster.survey()["a"].reconnects == 1
    ears.assert_legal("a")


async def test_tools_that_appear_are_told_and_exposed() -> None:
    ears = Ears()
    async with opened(make_server("a"), observer=ears) as roster:
        await call(roster, "a", "grow")
        await ears.wait_until(lambda: ears.changes("a"))
        assert ears.changes("a") == [converser.ToolsChanged(server="a", added=("a_grown_1",))]
        assert await call(roster, "a", "grown_1") == "grown_1 at your service."


async def test_reconnecting_makes_a_new_connection() -> None:
    async with opened(make_server("a")) as roster:
        with anyio.fail_after(LIMIT):
            survey = await roster.reconnect("a")
        assert (survey.state, survey.reconnects) == (State.CONNECTED, 1)


@pytest.mark.parametrize("options", [{}, {"renew_lock": False}], ids=["plain", "not-renewed"])
async def test_tools_that_changed_before_a_reconnection_are_told_once(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    lock = tmp_path / "converser.lock" if options else None
    ears, server = Ears(), create_awkward_server()
    async with opened(
        Server.in_process("a", server), observer=ears, lock=lock, **options
    ) as roster:
        server.tools["new"] = server.tools.pop("echo").model_copy(update={"name": "new"})
        change = converser.ToolsChanged(server="a", added=("a_new",), removed=("a_echo",))
        for _ in range(2):
            with anyio.fail_after(LIMIT):
                await roster.reconnect("a")
            assert ears.changes("a") == [change]
    assert ears.changes("a") == [change]


async def test_reconnecting_raises_what_hinders_it() -> None:
    async with opened(make_broken("bad")) as roster:
        with anyio.fail_after(LIMIT), pytest.raises(converser.MCPConnectionFailure, match="'bad'"):
            await roster.reconnect("bad")
        assert states_of(roster) == {"bad": State.FAILED}


async def test_a_check_tries_a_failed_server_again() -> None:
    with processes.serve_awkward("http") as running:
        port = int(running.url.split(":")[2].split("/")[0])
    async with opened(Server.http("a", running.url)) as roster:
        assert states_of(roster) == {"a": State.FAILED}
        assert names_of(roster) == []
        with serve_on_port("http", port), anyio.fail_after(LIMIT):
            survey = (await roster.check())["a"]
            assert (survey.state, survey.error) == (State.CONNECTED, None)
            assert names_of(roster) == ["a"]
            await roster.close()


async def test_a_server_that_connects_but_does_not_list_is_told_and_tried_again() -> None:
    gate = Gate(2)
    server = Server.in_process("a", GatedServer(gate), connect_timeout=0.5)
    async with opened(server) as roster:
        survey = roster.survey()["a"]
        assert (survey.state, survey.tools) == (State.CONNECTED, ())
        assert isinstance(survey.error, converser.MCPTimeoutFailure)
        gate.size = 1
        with anyio.fail_after(LIMIT):
            survey = (await roster.check())["a"]
        assert survey.error is None
        assert len(survey.tools) == len(TOOL_NAMES)


@pytest.mark.parametrize("command", [processes.awkward_command(), processes.raw_command("sound")])
async def test_a_check_measures_in_both_eras(command: list[str]) -> None:
    async with opened(Server.stdio("a", command), make_server("off", enabled=False)) as roster:
        with anyio.fail_after(LIMIT):
            surveys = await roster.check()
        assert surveys["a"].pulse is not None
        assert surveys["a"].pulse > 0
        assert not surveys["a"].is_degraded
        assert surveys["off"].pulse is None


async def test_a_server_that_gives_no_sign_of_life_is_degraded_until_it_does() -> None:
    command = [sys.executable, processes.AWKWARD]  # It is to be stopped, and not who forked it.
    with processes.serve_awkward("http", command) as server:
        async with opened(Server.http("a", server.url, connect_timeout=3)) as roster:
            os.kill(server.process.pid, signal.SIGSTOP)
            try:
                with anyio.fail_after(LIMIT):
                    survey = (await roster.check())["a"]
            finally:
                os.kill(server.process.pid, signal.SIGCONT)
            assert survey.is_degraded
            assert "did not answer within 3 s" in survey.trouble
            with anyio.fail_after(LIMIT):
                while roster.survey()["a"].is_degraded:
                    await roster.check()


async def test_servers_are_checked_again_and_again_where_that_is_wanted() -> None:
    server = create_awkward_server()
    signs = anyio.create_memory_object_stream[None](100)
    usual = server.get_request_handler("server/discover")
    assert usual is not None

    async def discover(*arguments: Any) -> Any:
        signs[0].send_nowait(None)
        return await usual.handler(*arguments)

    server.add_request_handler("server/discover", usual.params_type, discover)
    async with opened(Server.in_process("a", server), health=0.01):
        with anyio.fail_after(LIMIT):
            for _ in range(4):
                await signs[1].receive()
    signs[0].close()
    signs[1].close()


def test_a_pulse_far_from_the_usual_is_trouble_until_it_is_usual() -> None:
    from converser.rosters.health import Pulse

    pulse = Pulse()
    for _ in range(5):
        pulse.note(0.2)
    assert not pulse.trouble
    pulse.note(0.4)
    assert not pulse.trouble
    pulse.note(3.0)
    assert pulse.trouble.startswith("It answers in 3 s, and usually in 0.2")
    pulse.note_failure("Gone.")
    assert pulse.trouble == "It gave no sign of life: Gone."
    for _ in range(100):
        pulse.note(3.0)
    assert not pulse.trouble


# Toggling.


async def test_a_disabled_server_keeps_its_connection_and_shows_no_tools() -> None:
    ears = Ears()
    async with opened(make_server("a"), observer=ears) as roster:
        ensemble = roster.access_ensemble("a")
        survey = await roster.toggle("a", False)
        assert (survey.state, survey.tools) == (State.DISABLED, ())
        assert names_of(roster) == []
        assert not ensemble.invokers
        with pytest.raises(converser.InvokerAbsence, match="is disabled"):
            ensemble.access_invoker("echo")
        await roster.toggle("a", False)
        with anyio.fail_after(LIMIT):
            survey = await roster.toggle("a", True)
        assert (survey.state, survey.reconnects) == (State.CONNECTED, 0)
        assert len(ensemble.invokers) == len(TOOL_NAMES)
    assert ears.states("a") == ["pending", "connected", "disabled", "connected", "disconnected"]


async def test_nothing_is_heard_of_a_disabled_server_but_it_is_kept_up_to_date() -> None:
    ears = Ears()
    async with opened(make_server("a"), observer=ears) as roster:
        ensemble = roster.access_ensemble("a")
        grow = ensemble.access_invoker("grow")
        await roster.toggle("a", False)
        with anyio.fail_after(LIMIT):
            await grow()
            while "grown_1" not in [tool.name for tool in ensemble.tools]:
                await anyio.lowlevel.checkpoint()
            await roster.toggle("a", True)
        assert "a_grown_1" in ensemble.invokers
    assert ears.changes("a") == []
    assert ears.states("a") == ["pending", "connected", "disabled", "connected", "disconnected"]


async def test_a_server_that_is_disabled_at_first_is_connected_when_it_is_enabled() -> None:
    async with opened(make_server("a", enabled=False), make_broken("b", enabled=False)) as roster:
        assert states_of(roster) == {"a": State.DISABLED, "b": State.DISABLED}
        with anyio.fail_after(LIMIT):
            assert (await roster.toggle("a", True)).state is State.CONNECTED
            assert (await roster.toggle("b", True)).state is State.FAILED
        assert names_of(roster) == ["a"]


# Adding, removing, revising.


async def test_a_server_can_be_added_and_removed() -> None:
    ears = Ears()
    async with opened(make_server("a"), observer=ears) as roster:
        with anyio.fail_after(LIMIT):
            assert (await roster.add(make_server("b"))).state is State.CONNECTED
            ensemble = roster.access_ensemble("b")
            invoker = ensemble.access_invoker("echo")
            assert names_of(roster) == ["a", "b"]
            await roster.remove("b")
            assert names_of(roster) == ["a"]
            assert not ensemble.invokers
            with pytest.raises(converser.ToolExecutionFailure, match="taken out of its roster"):
                await invoker({"text": "x"})
    assert ears.states("b") == ["pending", "connected", "disconnected"]


async def test_a_failed_addition_is_told_and_a_required_one_raises() -> None:
    async with opened() as roster:
        with anyio.fail_after(LIMIT):
            assert (await roster.add(make_broken("bad"))).state is State.FAILED
            with pytest.raises(converser.MCPConnectionFailure, match="'worse'"):
                await roster.add(make_broken("worse", required=True))
        assert list(roster.survey()) == ["bad"]


async def test_mistakes_are_told_with_the_way_out() -> None:
    with pytest.raises(converser.ConfigurationFailure, match="two servers of the name 'a'"):
        converser.Roster([make_server("a"), make_server("a")])
    roster = converser.Roster([make_server("weather")])
    with pytest.raises(converser.ConfigurationFailure, match="not open"):
        await roster.add(make_server("b"))
    with pytest.raises(converser.ConfigurationFailure, match="not made from a file"):
        await roster.reload()
    async with opened(make_server("weather")) as roster:
        with pytest.raises(converser.ConfigurationFailure, match="Did you mean 'weather'"):
            await roster.toggle("wether", False)
        with pytest.raises(converser.ConfigurationFailure, match="There are: weather"):
            roster.access_ensemble("xyz")
        with pytest.raises(converser.ConfigurationFailure, match="two servers"):
            await roster.add(make_server("weather"))


async def test_a_revision_changes_only_what_changed() -> None:
    ears = Ears()
    a, b, c, d = (make_server(name) for name in "abcd")
    async with opened(a, b, c, observer=ears) as roster:
        before = {name: roster.access_ensemble(name) for name in "abc"}
        b_else = Server.in_process("b", create_awkward_server())
        c_narrow = replace(c, disabled_tools=("echo",))
        with anyio.fail_after(LIMIT):
            revision = await roster.revise([d, c_narrow, b_else, make_broken("e")])
        assert (revision.added, revision.removed) == (("d", "e"), ("a",))
        assert (revision.changed, revision.kept) == (("c", "b"), ())
        assert set(revision.errors) == {"e"}
        assert names_of(roster) == ["d", "c", "b"]
        assert roster.access_ensemble("c") is before["c"]
        assert roster.access_ensemble("b") is not before["b"]
        assert ears.states("c") == ["pending", "connected"]
        assert ears.changes("c") == [converser.ToolsChanged(server="c", removed=("c_echo",))]
        assert ears.states("a") == ["pending", "connected", "disconnected"]
        assert ears.states("b") == ["pending", "connected", "disconnected", "pending", "connected"]
        assert not before["a"].invokers
        with anyio.fail_after(LIMIT):
            same = await roster.revise([d, c_narrow, b_else])
        assert (same.kept, same.removed) == (("d", "c", "b"), ("e",))
        assert (same.added, same.changed, same.errors) == ((), (), {})


class Lingerer(AwkwardServer):
    """Takes its leave only when it may."""

    def __init__(self) -> None:
        super().__init__()
        self.leaving, self.may_leave = anyio.Event(), anyio.Event()
        self.lifespan = self._linger

    @contextlib.asynccontextmanager
    async def _linger(self, _: Any) -> AsyncGenerator[dict[str, Any]]:
        yield {}
        self.leaving.set()
        with anyio.CancelScope(shield=True):
            await self.may_leave.wait()


async def test_a_revision_that_was_cancelled_can_be_made_up_for() -> None:
    lingerer = Lingerer()
    async with opened(Server.in_process("a", lingerer)) as roster:
        servers = [make_server(name) for name in "abc"]
        before = roster.access_ensemble("a")
        with anyio.fail_after(LIMIT):
            async with anyio.create_task_group() as group:
                group.start_soon(roster.revise, servers)
                await lingerer.leaving.wait()
                group.cancel_scope.cancel()
        assert not before.invokers
        lingerer.may_leave.set()
        with anyio.fail_after(LIMIT):
            assert (await roster.reconnect("a")).state is State.CONNECTED
            revision = await roster.revise(servers)
        assert (revision.kept, revision.errors) == (("a", "b", "c"), {})
        assert names_of(roster) == ["a", "b", "c"]
        assert await call(roster, "c", "c_echo", text="x") == "x"


async def test_a_revision_begins_nothing_new_in_a_roster_that_is_being_closed() -> None:
    lingerer, gated = Lingerer(), GatedServer(Gate(2))
    async with opened(Server.in_process("a", lingerer)) as roster:
        with anyio.fail_after(LIMIT / 2):
            async with anyio.create_task_group() as group:
                group.start_soon(roster.revise, [Server.in_process("b", gated)])
                await lingerer.leaving.wait()
                group.start_soon(roster.close)
                await anyio.wait_all_tasks_blocked()
                lingerer.may_leave.set()
        assert gated.gate.present == 0


async def test_a_revision_follows_what_is_enabled_and_leaves_what_was_toggled() -> None:
    ears = Ears()
    a, b, c = make_server("a"), make_server("b", enabled=False), make_server("c")
    async with opened(a, b, c, observer=ears) as roster:
        with anyio.fail_after(LIMIT):
            await roster.toggle("c", False)
            await roster.revise([replace(a, enabled=False), replace(b, enabled=True), c])
        assert states_of(roster) == {
            "a": State.DISABLED,
            "b": State.CONNECTED,
            "c": State.DISABLED,
        }
    for name in "abc":
        ears.assert_legal(name)
    assert ears.states("a") == ["pending", "connected", "disabled"]


async def test_what_was_toggled_stays_where_a_revision_needs_another_connection() -> None:
    async with opened(make_server("a"), make_server("b", enabled=False)) as roster:
        with anyio.fail_after(LIMIT):
            await roster.toggle("a", False)
            await roster.toggle("b", True)
            await roster.revise([make_server("a"), make_server("b", enabled=False)])
            assert states_of(roster) == {"a": State.DISABLED, "b": State.CONNECTED}
            await roster.revise([make_server("a", enabled=False), make_server("b")])
            await roster.revise([make_server("a"), make_server("b", enabled=False)])
        assert states_of(roster) == {"a": State.CONNECTED, "b": State.DISABLED}


async def test_what_is_toggled_while_its_connection_is_exchanged_is_told_once_and_in_order() -> (
    None
):
    ears = Ears()
    async with opened(make_server("a"), observer=ears) as roster:
        with anyio.fail_after(LIMIT):
            async with anyio.create_task_group() as group:
                group.start_soon(roster.revise, [make_server("a")])
                await ears.wait_until(lambda: "disconnected" in ears.states("a"))
                await roster.toggle("a", False)
    assert ears.states("a") == ["pending", "connected", "disconnected", "disabled"]


@pytest.mark.parametrize("work", ["add", "toggle"])
async def test_what_was_cancelled_on_its_way_can_be_done_again(work: str) -> None:
    ears, gate = Ears(), Gate(2)
    server = Server.in_process("a", GatedServer(gate), enabled=work == "add")
    async with opened(*([server] if work == "toggle" else []), observer=ears) as roster:

        async def do() -> None:
            await (roster.add(server) if work == "add" else roster.toggle("a", True))

        with anyio.fail_after(LIMIT):
            async with anyio.create_task_group() as group:
                group.start_soon(do)
                await ears.wait_until(lambda: "connected" in ears.states("a"))
                group.cancel_scope.cancel()
            gate.size = 0
            await do()
        assert states_of(roster) == {"a": State.CONNECTED}
        assert await call(roster, "a", "echo", text="x") == "x"
    ears.assert_legal("a")


async def test_comings_and_goings_at_once_end_in_order() -> None:
    async with opened() as roster:
        with anyio.fail_after(LIMIT):
            async with anyio.create_task_group() as group:
                for name in "abcdef":
                    group.start_soon(roster.add, make_server(name))
            async with anyio.create_task_group() as group:
                for name in "abc":
                    group.start_soon(roster.remove, name)
                    group.start_soon(roster.reconnect, chr(ord(name) + 3))
        assert states_of(roster) == dict.fromkeys("def", State.CONNECTED)


# Configuration files.

COMMAND = [sys.executable, str(processes.HERE / "raw.py")]


def write_configuration(path: Path, **scenarios: str) -> None:
    tables = [
        f'[mcp.{name}]\ntransport = "stdio"\ncommand = {[*COMMAND, scenario]!r}\n'
        for name, scenario in scenarios.items()
    ]
    path.write_text("\n".join(tables), "utf-8")


async def test_a_roster_is_opened_from_a_file_and_reloaded(tmp_path: Path) -> None:
    path = tmp_path / "converser.toml"
    write_configuration(path, a="sound", b="sound")
    with anyio.fail_after(LIMIT):
        async with converser.open_roster(path, lock=None) as roster:
            assert names_of(roster) == ["a", "b"]
            assert roster.survey()["a"].scope == "project"
            await roster.add(make_server("guest"))
            write_configuration(path, b="sound", c="sound")
            revision = await roster.reload()
            assert (revision.added, revision.removed) == (("c",), ("a",))
            assert revision.kept == ("b", "guest")
            path.write_text("[mcp.b]\nnonsense = 1\n", "utf-8")
            with pytest.raises(converser.ConfigurationFailure, match="nonsense"):
                await roster.reload()
            assert names_of(roster) == ["b", "c", "guest"]
    assert not (tmp_path / "converser.lock").exists()


async def test_a_roster_is_opened_from_a_configuration(tmp_path: Path) -> None:
    path = tmp_path / "converser.toml"
    write_configuration(path, a="sound")
    configuration = converser.load_configuration(path)
    with anyio.fail_after(LIMIT):
        async with converser.open_roster(configuration) as roster:
            assert names_of(roster) == ["a"]
            assert (await roster.reload()).kept == ("a",)
    assert (tmp_path / "converser.lock").exists()
    with anyio.fail_after(LIMIT):
        async with converser.open_roster(converser.Configuration()) as roster:
            assert names_of(roster) == []


async def test_without_a_path_the_files_of_the_project_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    write_configuration(tmp_path / "converser.toml", a="sound")
    with anyio.fail_after(LIMIT):
        async with converser.open_roster() as roster:
            assert names_of(roster) == ["a"]
    assert (tmp_path / "converser.lock").exists()


async def test_a_file_that_is_made_when_there_was_none_is_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    ears = Ears()
    with anyio.fail_after(LIMIT):
        async with converser.open_roster(watch=0.05, observer=ears) as roster:
            write_configuration(tmp_path / "converser.toml", a="sound")  # before the first look
            await ears.wait_until(lambda: "connected" in ears.states("a"))
            assert names_of(roster) == ["a"]


async def test_a_watched_file_is_followed_and_its_mistakes_are_remarked(tmp_path: Path) -> None:
    path, ears = tmp_path / "converser.toml", Ears()
    write_configuration(path, a="sound")
    with anyio.fail_after(LIMIT):
        async with converser.open_roster(path, watch=0.01, observer=ears, lock=None) as roster:
            path.write_text("[mcp.a", "utf-8")
            while not roster.remarks:
                await anyio.lowlevel.checkpoint()
            assert "not valid TOML" in roster.remarks[0]
            path.unlink()
            while "cannot be read" not in "".join(roster.remarks):
                await anyio.lowlevel.checkpoint()
            assert names_of(roster) == ["a"]
            write_configuration(path, b="sound")
            await ears.wait_until(lambda: "connected" in ears.states("b"))
            await ears.wait_until(lambda: "disconnected" in ears.states("a"))
            while roster.remarks:
                await anyio.lowlevel.checkpoint()
            assert names_of(roster) == ["b"]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pipes with a path")
async def test_a_pipe_is_read_once(tmp_path: Path) -> None:
    """Whoever watched it by its contents would take them away, and wait for more."""
    pipe, over, looks = tmp_path / "converser.toml", threading.Event(), list[int]()
    write_configuration(tmp_path / "text", a="sound")
    text = (tmp_path / "text").read_text("utf-8")
    os.mkfifo(pipe)

    def feed() -> None:
        while not over.wait(0.1):
            pipe.write_text(text, "utf-8")  # waits until somebody reads
            looks.append(1)

    feeder = threading.Thread(target=feed, daemon=True)
    feeder.start()
    with anyio.fail_after(LIMIT):
        async with converser.open_roster(pipe, watch=0.01, lock=None) as roster:
            assert names_of(roster) == ["a"]
            await call(roster, "a", "good")
    assert len(looks) == 1
    over.set()
    descriptor = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    await run_sync(feeder.join, LIMIT)
    os.close(descriptor)


async def test_a_file_that_is_still_being_written_ends_no_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, ears, looks = tmp_path / "converser.toml", Ears(), 0
    digest = watching._digest

    def count(path: Path) -> str:
        nonlocal looks
        looks += 1
        return digest(path)

    monkeypatch.setattr(watching, "_digest", count)
    write_configuration(path, a="sound")
    with anyio.fail_after(LIMIT):
        async with converser.open_roster(path, watch=0.1, observer=ears, lock=None) as roster:
            line, half = 0, tmp_path / "half"
            while looks < 6:
                half.write_text(f"# half of it, {line}", "utf-8")
                half.replace(path)  # Else it is empty in between, which may be seen twice.
                line += 1
                await anyio.lowlevel.checkpoint()
            write_configuration(path, a="sound", b="sound")
            await ears.wait_until(lambda: "connected" in ears.states("b"))
            assert names_of(roster) == ["a", "b"]
            assert ears.states("a") == ["pending", "connected"]


async def test_a_server_that_hangs_keeps_no_later_change_of_its_file_waiting(
    tmp_path: Path,
) -> None:
    path, ears = tmp_path / "converser.toml", Ears()
    write_configuration(path, a="sound")
    with anyio.fail_after(LIMIT / 2):  # the hanging one is given twice that
        async with converser.open_roster(path, watch=0.05, observer=ears, lock=None) as roster:
            write_configuration(path, a="sound", mute="deaf")
            await ears.wait_until(lambda: "pending" in ears.states("mute"))
            write_configuration(path, a="sound", b="sound")
            await ears.wait_until(lambda: "connected" in ears.states("b"))
            assert names_of(roster) == ["a", "b"]
    assert ears.states("a") == ["pending", "connected", "disconnected"]


# The catalogue.


async def test_the_catalogue_is_written_and_stays_the_same_over_restarts(tmp_path: Path) -> None:
    lock = tmp_path / "converser.lock"
    server = make_server("a")
    async with opened(server, make_broken("b"), lock=lock):
        pass
    first = lock.read_bytes()
    entries = converser.read_catalogue(lock).servers
    assert [tool.name for tool in entries["a"].tools] == sorted(TOOL_NAMES)
    assert "b" not in entries
    before = lock.stat()
    async with opened(server, lock=lock) as roster:
        assert not roster.survey()["a"].drift
    assert lock.read_bytes() == first
    assert lock.stat().st_mtime_ns == before.st_mtime_ns


async def test_drift_is_reported_and_the_catalogue_renewed(tmp_path: Path) -> None:
    lock, ears, server = tmp_path / "converser.lock", Ears(), create_awkward_server()
    async with opened(Server.in_process("a", server), lock=lock):
        pass
    add = server.tools["add"]
    server.tools["add"] = add.model_copy(update={"description": "Adds, and tells others."})
    server.tools["new"] = server.tools.pop("echo").model_copy(update={"name": "new"})
    async with opened(Server.in_process("a", server), lock=lock, observer=ears) as roster:
        survey = roster.survey()["a"]
    assert survey.drift == converser.Drift(
        added=("new",), removed=("echo",), changed={"add": ("description",)}
    )
    assert any("added: new" in remark for remark in survey.remarks)
    assert ears.changes("a") == [
        converser.ToolsChanged(
            server="a", added=("a_new",), removed=("a_echo",), changed=("a_add",)
        )
    ]
    async with opened(Server.in_process("a", server), lock=lock) as roster:
        assert not roster.survey()["a"].drift


async def test_a_catalogue_that_is_not_renewed_stays_until_the_drift_is_accepted(
    tmp_path: Path,
) -> None:
    lock, server = tmp_path / "converser.lock", create_awkward_server()
    async with opened(Server.in_process("a", server), lock=lock):
        pass
    del server.tools["echo"]
    before = lock.read_bytes()
    for _ in range(2):
        async with opened(Server.in_process("a", server), lock=lock, renew_lock=False) as roster:
            assert roster.survey()["a"].drift.removed == ("echo",)
        assert lock.read_bytes() == before
    async with opened(Server.in_process("a", server), lock=lock, renew_lock=False) as roster:
        with anyio.fail_after(LIMIT):
            await roster.write_lock()
        assert not roster.survey()["a"].drift
    assert "echo" not in [t.name for t in converser.read_catalogue(lock).servers["a"].tools]


async def test_tools_that_appear_are_catalogued(tmp_path: Path) -> None:
    lock, ears = tmp_path / "converser.lock", Ears()
    async with opened(make_server("a"), lock=lock, observer=ears) as roster:
        await call(roster, "a", "grow")
        await ears.wait_until(lambda: ears.changes("a"))
    assert "grown_1" in [t.name for t in converser.read_catalogue(lock).servers["a"].tools]


async def test_what_others_wrote_into_the_catalogue_stays(tmp_path: Path) -> None:
    lock = tmp_path / "converser.lock"
    async with opened(make_server("a"), lock=lock), opened(make_server("b"), lock=lock):
        pass
    assert list(converser.read_catalogue(lock).servers) == ["a", "b"]


async def test_a_server_that_is_reached_otherwise_is_another_one(tmp_path: Path) -> None:
    lock = tmp_path / "converser.lock"
    async with opened(make_server("a"), lock=lock):
        pass
    other = Server.stdio("a", processes.raw_command("sound"), lazy=True)
    async with opened(other, lock=lock) as roster:
        assert dict(roster.access_ensemble("a").invokers) == {}
        with anyio.fail_after(LIMIT):
            await roster.reconnect("a")
        assert not roster.survey()["a"].drift
    assert len(converser.read_catalogue(lock).servers["a"].tools) == 2


async def test_a_damaged_catalogue_is_told_before_anything_is_started(tmp_path: Path) -> None:
    lock, ears = tmp_path / "converser.lock", Ears()
    lock.write_text("{", "utf-8")
    with anyio.fail_after(LIMIT), pytest.raises(converser.ConfigurationFailure, match="delete it"):
        await converser.Roster([make_server("a")], lock=lock, observer=ears).open()
    assert ears.events == []


async def test_a_catalogue_that_cannot_be_written_is_remarked(tmp_path: Path) -> None:
    lock = tmp_path / "nowhere" / "converser.lock"
    async with opened(make_server("a"), lock=lock) as roster:
        assert names_of(roster) == ["a"]
        assert "cannot be written" in roster.remarks[0]


# Lazy servers.


async def test_a_lazy_server_that_was_never_seen_says_so() -> None:
    marked = Marked(processes.raw_command("sound"))
    async with opened(Server.stdio("a", marked.command, lazy=True)) as roster:
        survey = roster.survey()["a"]
        assert (survey.state, survey.error) == (State.DISCONNECTED, None)
        assert names_of(roster) == ["a"]
        assert "roster.reconnect('a')" in survey.remarks[0]
        with pytest.raises(converser.InvokerAbsence, match="connect it first"):
            roster.access_ensemble("a").access_invoker("good")
        assert marked.find_processes() == []
        with anyio.fail_after(LIMIT):
            await roster.reconnect("a")
        assert names_of(roster) == ["a"]
        assert roster.survey()["a"].remarks == ()


async def test_a_lazy_server_that_was_never_seen_is_connected_by_the_first_conversation(
    tmp_path: Path,
) -> None:
    lock, model = tmp_path / "converser.lock", ScriptedModel([[("echo", {"text": "x"})], "Done."])
    servers = make_server("a", lazy=True), make_broken("b", lazy=True)
    async with opened(*servers, lock=lock) as roster:
        assert names_of(roster) == ["a", "b"]
        assert states_of(roster) == {"a": State.DISCONNECTED, "b": State.DISCONNECTED}
        reply = await converse(model, ensembles=roster.ensembles)
        (result,) = results_of(reply)
        assert result.text == "x"
        assert states_of(roster) == {"a": State.CONNECTED, "b": State.FAILED}
        assert names_of(roster) == ["a"]
    assert list(converser.read_catalogue(lock).servers) == ["a"]


async def test_a_lazy_server_is_listed_from_the_catalogue_and_connected_by_the_first_call(
    tmp_path: Path,
) -> None:
    lock, ears = tmp_path / "converser.lock", Ears()
    marked = Marked(processes.raw_command("sound"))
    server = Server.stdio("a", marked.command)
    async with opened(server, lock=lock) as roster:
        eager = roster.access_ensemble("a").invokers
    async with opened(server, lock=lock, lazy=True, observer=ears) as roster:
        lazy = roster.access_ensemble("a").invokers
        assert names_of(roster) == ["a"]
        assert roster.survey()["a"].is_remembered
        assert list(lazy) == list(eager)
        for name, invoker in lazy.items():
            assert invoker.tool == eager[name].tool
            assert repr(invoker.arguments_schema) == repr(eager[name].arguments_schema)
        assert marked.find_processes() == []
        assert await call(roster, "a", "good") == "good was called"
        assert len(marked.find_processes()) > 0
        with anyio.fail_after(LIMIT):
            while roster.survey()["a"].is_remembered:
                await anyio.lowlevel.checkpoint()
    assert ears.states("a") == ["pending", "connected", "disconnected"]
    assert ears.changes("a") == []


async def test_the_first_call_of_a_lazy_server_shows_its_drift(tmp_path: Path) -> None:
    lock, ears, server = tmp_path / "converser.lock", Ears(), create_awkward_server()
    async with opened(Server.in_process("a", server), lock=lock):
        pass
    del server.tools["fail"]
    lazy = Server.in_process("a", server, lazy=True)
    async with opened(lazy, lock=lock, observer=ears) as roster:
        assert "a_fail" in roster.access_ensemble("a").invokers
        assert await call(roster, "a", "echo", text="x") == "x"
        await ears.wait_until(lambda: ears.changes("a"))
        assert ears.changes("a") == [converser.ToolsChanged(server="a", removed=("a_fail",))]
        assert "a_fail" not in roster.access_ensemble("a").invokers


async def test_a_lazy_server_that_cannot_be_reached_fails_the_call_and_stays_on_offer(
    tmp_path: Path,
) -> None:
    lock = tmp_path / "converser.lock"
    with processes.serve_awkward("http") as running:
        server = Server.http("a", running.url, lazy=True)
        async with opened(replace(server, lazy=False), lock=lock):
            pass
    async with opened(server, lock=lock) as roster:
        with pytest.raises(converser.ToolExecutionFailure, match="cannot be reached"):
            await call(roster, "a", "echo", text="x")
        assert states_of(roster) == {"a": State.FAILED}
        assert names_of(roster) == ["a"]


def test_a_lazy_start_does_not_even_load_the_sdk(tmp_path: Path) -> None:
    script = """
        import sys, anyio, converser
        from converser.rosters.catalogue import describe_server
        server = converser.MCPServer.stdio("a", ["program"], lazy=True)
        entry = describe_server(server, [converser.Tool(name="x")])
        converser.write_catalogue("converser.lock", converser.Catalogue(servers={"a": entry}))

        async def main():
            async with converser.Roster([server], lock="converser.lock") as roster:
                print(*roster.ensembles[0].invokers, "mcp" in sys.modules)

        anyio.run(main)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.split() == ["a_x", "False"]


async def test_what_is_done_again_and_again_survives_a_failure() -> None:
    done, enough = 0, anyio.Event()

    async def work() -> None:
        nonlocal done
        done += 1
        if done == 1:
            raise RuntimeError("once")
        enough.set()

    chores = Chores()
    with anyio.fail_after(LIMIT):
        chores.start(lambda: repeat(0.001, work), "test")
        await enough.wait()
        await chores.end()
    assert done >= 2


async def test_a_server_was_seen_when_it_listed_its_tools() -> None:
    async with converser.Roster([make_server("a")]) as roster:
        assert roster.survey()["a"].last_seen is not None
        assert roster.survey()["a"].calls == 0
