# SPDX-License-Identifier: Apache-2.0
"""A server that wants another token, or speaks another era, than when it was connected."""

from __future__ import annotations

import anyio
import pytest

import converser
from tests.faults.overhttp.sound import Modern, Sound
from tests.faults.overhttp.wire import JSON, HttpServer, Line, Request
from tests.places import LIMIT

pytestmark = pytest.mark.anyio


class Rotating(Sound):
    """It takes one token at a time."""

    token = "first"

    async def handle(self, request: Request, line: Line) -> None:
        if request.headers.get("authorization") != self.token:
            await line.respond(401)
        elif request.message.get("method") == "ping":
            await self.reply(request, line, {})
        else:
            await super().handle(request, line)


class Older(Sound):
    """It says in its own words that it misses a session."""

    def __init__(self, words: str) -> None:
        super().__init__()
        self.words = words

    async def on_lost_session(self, request: Request, line: Line) -> None:
        error: JSON = {"code": -32600, "message": f"Bad Request: {self.words}"}
        await line.respond_json({"jsonrpc": "2.0", "id": None, "error": error}, status=400)

    async def on_discover(self, request: Request, line: Line) -> None:
        await self.on_lost_session(request, line)


async def test_a_renewed_token_is_taken_up_by_listings_and_signs_of_life_as_well(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    behaviour = Rotating()
    with HttpServer(behaviour).running() as server, anyio.fail_after(LIMIT):
        monkeypatch.setenv("TOKEN", behaviour.token)
        headers = {"Authorization": "env:TOKEN"}
        configured = converser.MCPServer.http("h", f"{server.origin}/mcp", headers=headers)
        async with converser.Roster([configured]) as roster:
            for token in ("second", "third"):
                behaviour.token = token
                monkeypatch.setenv("TOKEN", token)
                if token == "second":
                    await roster.access_ensemble("h").refresh()
                else:
                    await roster.check()
                survey = roster.survey()["h"]
                assert (survey.state, survey.trouble) == ("connected", "")
                assert len(roster.ensembles) == 1

            behaviour.token = "unknown"
            with pytest.raises(converser.MCPConnectionFailure, match="401"):
                await roster.access_ensemble("h").refresh()
            assert roster.survey()["h"].state == "needs-auth"


@pytest.mark.parametrize(
    "words",
    [
        "Missing session ID",
        "Mcp-Session-Id header is required",
        "Unsupported protocol version: 2026-07-28",
    ],
)
async def test_a_server_that_was_replaced_by_an_older_one_is_connected_in_its_era(
    words: str,
) -> None:
    server = HttpServer(Modern())
    with server.running(), anyio.fail_after(LIMIT):
        client = converser.HttpMCPClient(f"{server.origin}/mcp")
        async with await converser.discover_mcp_tools(client, "h") as ensemble:
            assert client.protocol_version == "2026-07-28"
            server.behaviour = older = Older(words)
            older.server = server
            assert (await ensemble.access_invoker("echo")({"text": "hi"})).text == "hi"
            assert client.protocol_version == "2025-06-18"
            assert client.reconnects == 1
