# SPDX-License-Identifier: Apache-2.0
"""What tests of rosters share: an observer to wait with, and servers that wait for each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
from mcp import types
from mcp.server import ServerRequestContext

import converser
from converser.mcp.states import is_legal
from tests.places import LIMIT
from tests.servers.awkward import AwkwardServer, create_awkward_server

State = converser.ConnectionState
Server = converser.MCPServer


class Ears:
    """Hears all events of a roster, and lets a test wait for one."""

    def __init__(self) -> None:
        self.events: list[converser.Event] = []
        self._heard = anyio.Event()

    def __call__(self, event: converser.Event) -> None:
        self.events.append(event)
        self._heard.set()
        self._heard = anyio.Event()

    def states(self, server: str) -> list[str]:
        """The states that a server has gone through."""
        return [
            event.state
            for event in self.events
            if isinstance(event, converser.ServerStateChanged) and event.server == server
        ]

    def changes(self, server: str) -> list[converser.ToolsChanged]:
        """What became of the tools of a server."""
        return [
            event
            for event in self.events
            if isinstance(event, converser.ToolsChanged) and event.server == server
        ]

    async def wait_until(self, condition: Callable[[], Any]) -> None:
        """Wait for events until something holds."""
        with anyio.fail_after(LIMIT):
            while not condition():
                await self._heard.wait()

    def assert_legal(self, server: str) -> None:
        """Every step that was published is in the table of transitions."""
        before = State.DISCONNECTED
        for name in self.states(server):
            assert State(name) is not before
            assert is_legal(before, State(name)), self.states(server)
            before = State(name)


class Gate:
    """Servers that list their tools only when so many of them are asked at once."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.present = 0
        self.most = 0
        self._open = anyio.Event()

    async def pass_through(self) -> None:
        """Wait for the others."""
        self.present += 1
        self.most = max(self.most, self.present)
        if self.present >= self.size:
            self._open.set()
        await self._open.wait()
        self.present -= 1


class GatedServer(AwkwardServer):
    """An awkward server that waits at a gate before it lists its tools."""

    def __init__(self, gate: Gate) -> None:
        super().__init__()
        self.gate = gate

    async def _list_tools(
        self, ctx: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        if params is None or params.cursor is None:
            await self.gate.pass_through()
        return await super()._list_tools(ctx, params)


def make_server(name: str, **settings: Any) -> converser.MCPServer:
    """An awkward server in this process."""
    return Server.in_process(name, create_awkward_server(), **settings)


def make_broken(name: str, **settings: Any) -> converser.MCPServer:
    """A server that cannot be started."""
    return Server.stdio(name, ["/nonexistent/server"], **settings)


async def call(roster: converser.Roster, server: str, tool: str, **arguments: Any) -> str:
    """Call a tool of a server in a roster."""
    with anyio.fail_after(LIMIT):
        return (await roster.access_ensemble(server).access_invoker(tool)(arguments)).text
