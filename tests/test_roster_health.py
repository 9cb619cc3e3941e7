# SPDX-License-Identifier: Apache-2.0
"""Servers that fail are tried again without a crowd, and without delay for the care of those that work."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from mcp import types
from mcp.server import ServerRequestContext
from mcp.shared.exceptions import MCPError

import converser
from tests.places import LIMIT
from tests.rosters import Gate, GatedServer, Server
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
