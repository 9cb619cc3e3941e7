# SPDX-License-Identifier: Apache-2.0
"""The life of a connection against a model of it: any order of comings, goings, losses and returns."""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator
from contextlib import ExitStack, asynccontextmanager, suppress
from typing import Any

import anyio
import anyio.from_thread
import anyio.lowlevel
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from mcp.shared.memory import create_client_server_memory_streams

import converser
from converser.mcp import eras
from converser.mcp.base import SessionClient
from converser.mcp.connection import Patience
from converser.mcp.sessions import Way
from converser.mcp.states import TRANSITIONS, ConnectionState, is_legal
from tests.servers import processes
from tests.servers.awkward import create_awkward_server

pytestmark = pytest.mark.anyio
State = ConnectionState
DEADLINE = 20.0


class WireClient(SessionClient):
    """A client of a server behind a wire that can be cut, and a door that can be shut."""

    def __init__(self, *, delay: float = 0.001) -> None:
        patience = Patience(attempts=3, delay=delay, delay_max=10 * delay)
        super().__init__("wire", "http", patience, None)
        self.is_open = True
        self.wires: list[Any] = []
        self.breakage = anyio.Event()

    def open_transport(self) -> Way:
        if not self.is_open:
            raise ConnectionRefusedError("the door is shut")
        return self._open_wire()

    @asynccontextmanager
    async def _open_wire(self) -> AsyncGenerator[tuple[Any, Any], None]:
        server = create_awkward_server()
        async with create_client_server_memory_streams() as (ours, theirs):
            self.wires.append(theirs)
            async with anyio.create_task_group() as group:
                group.start_soon(server.run, *theirs, server.create_initialization_options())
                group.start_soon(self._break)
                yield ours
                group.cancel_scope.cancel()

    async def _break(self) -> None:
        await self.breakage.wait()
        self.breakage = anyio.Event()
        raise ValueError("a defect of the transport")

    async def cut(self) -> None:
        """Ends the stream that the client reads, as a dying server does."""
        await self.wires[-1][1].aclose()


class LifeOfAConnection(RuleBasedStateMachine):
    """Each rule does one thing, waits until nothing moves, and says where that must have led."""

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        self.portal = self.stack.enter_context(anyio.from_thread.start_blocking_portal())
        self.client = self.portal.call(self._create)
        self.expected = State.DISCONNECTED
        self.seen = [State.DISCONNECTED]

    async def _create(self) -> WireClient:
        self.moved = anyio.Event()
        client = WireClient()
        client.watch(on_tools=anyio.lowlevel.checkpoint, on_state=self._note)
        return client

    def _note(self, state: str, _: str) -> None:
        self.seen.append(State(state))
        self.moved.set()
        self.moved = anyio.Event()

    def run(self, work: Any, *parts: Any) -> Any:
        async def bounded() -> Any:
            with anyio.fail_after(DEADLINE):
                return await work(*parts)

        return self.portal.call(bounded)

    async def _settle(self) -> None:
        while self.client.state in (State.PENDING, State.RECONNECTING):
            await self.moved.wait()

    async def _gather(self, count: int, work: Any) -> None:
        async with anyio.create_task_group() as group:
            for _ in range(count):
                group.start_soon(work)

    async def _try_connect(self) -> None:
        with suppress(converser.MCPConnectionFailure):
            await self.client.connect()

    @rule()
    def connect(self) -> None:
        self.run(self._gather, 3, self._try_connect)
        self.run(self._settle)
        if self.expected is not State.CONNECTED:
            self.expected = State.CONNECTED if self.client.is_open else State.FAILED

    @rule()
    def disconnect(self) -> None:
        self.run(self._gather, 2, self.client.disconnect)
        self.expected = State.DISCONNECTED

    @rule()
    def shut_the_door(self) -> None:
        self.client.is_open = False

    @rule()
    def open_the_door(self) -> None:
        self.client.is_open = True

    @precondition(lambda self: self.expected is State.CONNECTED)
    @rule()
    def cut_the_wire(self) -> None:
        self.run(self._cut)
        self.run(self._settle)
        # A connection that is lost again and again is given up, even where it could be had.
        fresh = self.client.state is State.CONNECTED
        assert not fresh or self.client.is_open
        self.expected = self.client.state
        assert self.expected in (State.CONNECTED, State.FAILED)

    async def _cut(self) -> None:
        moved = self.moved
        await self.client.cut()
        await moved.wait()

    @precondition(lambda self: self.client.is_open)
    @rule()
    def call(self) -> None:
        result = self.run(self._call)
        assert result.text == "hello"
        self.expected = State.CONNECTED

    async def _call(self) -> converser.InvocationResult:
        return await self.client.call_tool("echo", {"text": "hello"})

    @invariant()
    def the_state_is_the_expected_one(self) -> None:
        assert self.client.state is self.expected

    @invariant()
    def every_step_was_legal(self) -> None:
        steps = zip(self.seen, self.seen[1:], strict=False)
        assert all(after in TRANSITIONS[before] for before, after in steps)

    def teardown(self) -> None:
        self.run(self.client.disconnect)
        assert self.client.state is State.DISCONNECTED
        self.stack.close()


TestLifeOfAConnection = LifeOfAConnection.TestCase
TestLifeOfAConnection.settings = settings(max_examples=15, stateful_step_count=12, deadline=None)


def test_each_state_has_a_row_and_none_leads_to_itself() -> None:
    assert set(TRANSITIONS) == set(State)
    assert all(state not in after for state, after in TRANSITIONS.items())
    assert is_legal(State.CONNECTED, State.CONNECTED)
    assert not is_legal(State.DISCONNECTED, State.CONNECTED)


async def test_a_lost_server_comes_back_by_itself_and_its_tools_are_compared() -> None:
    client = WireClient()
    events: list[object] = []
    back = anyio.Event()

    def observe(event: object) -> None:
        events.append(event)
        if isinstance(event, converser.ToolsChanged):
            back.set()

    with anyio.fail_after(DEADLINE):
        async with await converser.discover_mcp_tools(client, "wire") as ensemble:
            ensemble.observe(observe)
            await ensemble.access_invoker("grow")({})
            await back.wait()
            back = anyio.Event()
            await client.cut()
            await back.wait()
    states = [e.state for e in events if isinstance(e, converser.ServerStateChanged)]
    changes = [e for e in events if isinstance(e, converser.ToolsChanged)]
    assert states == ["reconnecting", "connected", "disconnected"]
    assert changes[0].added == changes[1].removed == ("grown_1",)


async def test_a_call_that_waits_for_a_lost_server_opens_nothing_after_a_disconnect() -> None:
    client = WireClient(delay=0.3)

    async def call() -> None:
        with pytest.raises(converser.MCPConnectionFailure):
            await client.call_tool("echo", {"text": "x"})

    with anyio.fail_after(DEADLINE):
        await client.connect()
        client.is_open = False
        await client.cut()
        async with anyio.create_task_group() as group:
            group.start_soon(call)
            await anyio.wait_all_tasks_blocked()
            assert client.state is State.RECONNECTING
            client.is_open = True
            await client.disconnect()
    assert client.state is State.DISCONNECTED


async def test_a_listing_opens_nothing_after_a_disconnect() -> None:
    client = converser.StdioMCPClient(processes.raw_command("leisurely-pages"))

    async def list_tools() -> None:
        with pytest.raises(converser.MCPConnectionFailure):
            await client.list_tools()

    with anyio.fail_after(DEADLINE):
        await client.connect()
        async with anyio.create_task_group() as group:
            group.start_soon(list_tools)
            await anyio.wait_all_tasks_blocked()
            await client.disconnect()
        state = client.state
        await client.disconnect()
    assert state is State.DISCONNECTED


async def test_nobody_lists_again_in_a_session_that_is_just_being_left() -> None:
    client, leave, left = WireClient(), anyio.Event(), anyio.Event()
    told: list[str] = []

    async def hear_first() -> None:
        leave.set()
        with anyio.CancelScope(shield=True):  # as one who hears last, and is not ended before
            while client.state is not State.DISCONNECTED:
                await anyio.lowlevel.checkpoint()

    async def hear_next() -> None:
        told.append("next")

    async def disconnect() -> None:
        await leave.wait()
        await client.disconnect()
        left.set()

    def ignore(_: str, __: str) -> None:
        """Not of interest."""

    client.watch(on_tools=hear_first, on_state=ignore)
    client.watch(on_tools=hear_next, on_state=ignore)
    with anyio.fail_after(DEADLINE):
        async with anyio.create_task_group() as group:
            group.start_soon(disconnect)
            await client.connect()
            await client.disconnect()
            await client.connect()  # again, so its tools may have changed, and listeners are told
            await left.wait()
    assert told == []


async def test_a_session_that_a_defect_of_its_transport_ended_comes_back_by_itself() -> None:
    client = WireClient()
    states: list[str] = []
    back = anyio.Event()

    def hear(state: str, _: str) -> None:
        states.append(state)
        if states.count("connected") == 2:
            back.set()

    client.watch(on_tools=anyio.lowlevel.checkpoint, on_state=hear)
    with anyio.fail_after(DEADLINE):
        await client.connect()
        client.breakage.set()
        await back.wait()
        assert states == ["pending", "connected", "reconnecting", "connected"]
        await client.disconnect()


async def test_a_server_that_ends_again_and_again_is_given_up_until_it_is_wanted() -> None:
    client = converser.StdioMCPClient(processes.raw_command("mayfly"), reconnect_attempts=2)
    states: list[str] = []
    failed = anyio.Event()

    async def list_again() -> None:
        await client.list_tools()

    def hear(state: str, _: str) -> None:
        states.append(state)
        if state == "failed":
            failed.set()

    client.watch(on_tools=list_again, on_state=hear)
    with anyio.fail_after(DEADLINE):
        await client.connect()
        await client.list_tools()
        await failed.wait()
        assert states == ["pending", *["connected", "reconnecting"] * 2, "connected", "failed"]
        assert client.failure is not None
        assert "closed the connection" in str(client.failure)
        assert client.failure.remedy
        await client.connect()
        assert states[7:] == ["pending", "connected"]
        await client.disconnect()


async def test_an_attempt_whose_time_is_up_has_failed_though_its_process_is_still_being_ended() -> (
    None
):
    client = converser.StdioMCPClient(["sleep", "60"], connect_timeout=0.5)
    with anyio.fail_after(DEADLINE):
        with pytest.raises(converser.MCPTimeoutFailure):
            await client.connect()
        state = client.state
        await client.disconnect()
    assert state is State.FAILED


async def test_an_attempt_whose_time_is_up_has_failed_though_it_was_slow_to_begin(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where many start at once, the owner's own time begins later than that of who waits."""
    may_begin = threading.Event()
    monkeypatch.setattr(eras.EraMemory, "recall", lambda _: not may_begin.wait(DEADLINE))
    client = converser.StdioMCPClient(["sleep", "60"], connect_timeout=0.1)
    with anyio.fail_after(DEADLINE):
        with pytest.raises(converser.MCPTimeoutFailure):
            await client.connect()
        state, failure = client.state, client.failure
        may_begin.set()
        await client.disconnect()
    assert state is State.FAILED
    assert "did not answer within 0.1 s" in str(failure)


async def test_who_waits_for_what_was_ended_hears_so_though_the_time_of_others_runs_out() -> None:
    client = converser.StdioMCPClient(["sleep", "60"])
    told: list[str] = []

    async def connect() -> None:
        with pytest.raises(converser.MCPConnectionFailure) as caught:
            await client.connect()
        told.append(str(caught.value))

    async def call() -> None:
        with pytest.raises(converser.MCPTimeoutFailure):
            await client.call_tool("echo", {}, context=converser.Context(timeout=0.5))

    with anyio.fail_after(DEADLINE):
        async with anyio.create_task_group() as group:
            group.start_soon(connect)
            group.start_soon(call)
            await anyio.wait_all_tasks_blocked()
            await client.disconnect()
    assert "closed while it was being opened" in told[0]
