# SPDX-License-Identifier: Apache-2.0
"""Canary secrets over full runs: none of them is in a log, an event, an error, a survey or a file of ours."""

from __future__ import annotations

import logging
import traceback
from pathlib import Path
from typing import Any

import anyio
import pytest

import converser
from converser.testing import ScriptedModel
from tests.servers import processes
from tests.servers.gated import serve_gated
from tests.servers.processes import RunningServer

pytestmark = pytest.mark.anyio
CANARY = "canary-4f7d"


def _plant(url: str) -> str:
    """A URL with a secret in each place in which people put one."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://user:{CANARY}-password@{rest}?key={CANARY}-query"


@pytest.fixture
def servers(
    awkward_http: RunningServer, awkward_sse: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> list[converser.MCPServer]:
    """Servers that work and servers that fail, all of which have secrets."""
    monkeypatch.setenv("CANARY_TOKEN", f"Bearer {CANARY}-variable")
    monkeypatch.setenv("CANARY_URL", _plant(awkward_http.url))
    headers = {"Authorization": "env:CANARY_TOKEN", "X-Key": f"{CANARY}-header"}
    environment = {"TOKEN": f"{CANARY}-environment", "OTHER": "env:CANARY_TOKEN"}
    return [
        converser.MCPServer.http("web", "env:CANARY_URL", headers=headers),
        converser.MCPServer.sse("old", _plant(awkward_sse.url), headers=headers),
        converser.MCPServer.stdio("process", processes.awkward_command(), environment=environment),
        converser.MCPServer.stdio("gone", ["/no/such/program"], environment=environment),
        converser.MCPServer.http("down", _plant("http://127.0.0.1:9/mcp"), headers=headers),
        converser.MCPServer.sse("out", _plant("http://127.0.0.1:9/sse"), headers=headers),
        converser.MCPServer.http("wrong", _plant(awkward_http.url + "/nowhere"), headers=headers),
        converser.MCPServer.sse("lost", _plant(awkward_sse.url + "/nowhere"), headers=headers),
    ]


async def test_no_secret_leaves_a_roster(
    servers: list[converser.MCPServer], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    told: list[str] = []
    script: list[Any] = [
        [("web_echo", {"text": "a"}), ("old_echo", {"text": "b"})],
        [("process_crash", {})],
    ]
    with anyio.fail_after(60), serve_gated() as gate:
        servers.append(converser.MCPServer.http("gated", _plant(gate.url)))
        lock = tmp_path / "converser.lock"
        async with converser.Roster(
            servers, lock=lock, observer=lambda event: told.append(repr(event))
        ) as roster:
            model = ScriptedModel([*script, "Done."])
            reply = await model.converse([converser.user("go")], ensembles=roster.ensembles)
            survey = roster.survey()
    states = {name: each.state.value for name, each in survey.items()}
    working = {name for name, state in states.items() if state == "connected"}
    assert working >= {"web", "old"}
    assert states["gated"] == "needs-auth"
    assert states["down"] == states["gone"] == states["wrong"] == "failed"
    told += [repr(survey), repr(servers), repr(reply), lock.read_text("utf-8"), caplog.text]
    for each in survey.values():
        if each.error is not None:
            told += [str(each.error), *traceback.format_exception(each.error)]
    assert "httpx2" in caplog.text
    assert [line for words in told for line in words.splitlines() if CANARY in line] == []


async def test_no_secret_is_in_what_a_failed_connection_raises(
    servers: list[converser.MCPServer], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with anyio.fail_after(60):
        for server in servers[3:]:
            with pytest.raises(converser.MCPFailure) as caught:
                await converser.create_mcp_ensemble(server).connect()
            assert CANARY not in str(caught.value)
            assert CANARY not in repr(caught.value)
            assert CANARY not in repr(caught.value.cause)
    assert [line for line in caplog.text.splitlines() if CANARY in line] == []


async def test_a_user_and_a_password_in_a_url_are_sent_as_such() -> None:
    with anyio.fail_after(30), serve_gated() as gate:
        gate.tokens.add("Basic dTpwJTIwdw==")
        client = converser.HttpMCPClient(gate.url.replace("://", "://u:p%2520w@"))
        async with await converser.discover_mcp_tools(client, "gated") as ensemble:
            assert (await ensemble.access_invoker("quick")()).text == "quick is done"
