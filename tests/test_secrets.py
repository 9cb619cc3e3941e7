# SPDX-License-Identifier: Apache-2.0
"""Canary secrets over full runs: none of them is in a log, an event, an error, a survey or a file of ours."""

from __future__ import annotations

import json
import logging
import sys
import traceback
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

import converser
from converser.mcp import transports
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


QUOTING = """
import json, os, sys
words = " ".join([*sys.argv[1:], os.environ.get("TOKEN", "")])
print("I was given", words, file=sys.stderr, flush=True)
for line in sys.stdin:
    if (number := json.loads(line).get("id")) is not None:
        error = {"code": -32603, "message": "Nobody knows " + words}
        print(json.dumps({"jsonrpc": "2.0", "id": number, "error": error}), flush=True)
"""


def _quote_headers(request: httpx2.Request) -> httpx2.Response:
    """Answers with an error of the protocol, as a server does that tells which key it refuses."""
    words = f"Nobody knows {dict(request.headers)} {request.url}"
    error = {"code": -32603, "message": words}
    number = json.loads(request.content)["id"]
    return httpx2.Response(200, json={"jsonrpc": "2.0", "id": number, "error": error})


async def test_no_secret_that_a_server_quotes_is_in_what_is_told_of_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("CANARY_TOKEN", f"{CANARY}-variable")
    monkeypatch.setattr(
        transports, "create_lean_transport", lambda _: httpx2.MockTransport(_quote_headers)
    )
    environment = {"TOKEN": f"{CANARY}-environment"}
    program = [sys.executable, "-c", QUOTING, "--key=${env:CANARY_TOKEN}"]
    headers = {"Authorization": f"Bearer {CANARY}-header", "X-Key": "env:CANARY_TOKEN"}
    url = "http://127.0.0.1:9/${env:CANARY_TOKEN}/mcp?key=" + CANARY + "-query"
    servers = [
        converser.MCPServer.stdio("process", program, environment=environment),
        converser.MCPServer.stdio("gone", ["/nowhere/${env:CANARY_TOKEN}"]),
        converser.MCPServer.http("web", url, headers=headers),
    ]
    told: list[str] = []
    caplog.set_level(logging.INFO)
    with anyio.fail_after(60):
        async with converser.Roster(servers, observer=lambda e: told.append(repr(e))) as roster:
            errors = {name: each.error for name, each in roster.survey().items()}
    for error in errors.values():
        assert isinstance(error, converser.MCPFailure)
        told += [repr(error), *traceback.format_exception(error), *error.stderr]
    assert "Nobody knows --key=[hidden] [hidden]" in str(errors["process"])
    assert "'x-key': '[hidden]'" in str(errors["web"])
    assert "no such program: '/nowhere/[hidden]'" in str(errors["gone"])
    told.append(caplog.text)
    assert [line for words in told for line in words.splitlines() if CANARY in line] == []
