# SPDX-License-Identifier: Apache-2.0
"""A server from configuration becomes an ensemble, with its settings, and with secrets read late."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

import converser
from converser.testing import ScriptedModel
from tests.conversations import converse, results_of
from tests.places import LIMIT, TRANSPORTS, walk_causes
from tests.servers import awkward, processes
from tests.servers.awkward import TOOL_NAMES, AwkwardServer, create_awkward_server

pytestmark = pytest.mark.anyio
CANARY = "canary-77aa01"

# Tells what it sees of its surroundings.
WITNESS = """
import json, os, sys
from tests.servers import raw
def tell(self, name, arguments):
    facts = {"environment": dict(os.environ), "cwd": os.getcwd(), "argv": sys.argv[1:]}
    return {"content": [], "structuredContent": facts}
raw.Scenario.call_tool = tell
sys.argv.insert(1, "sound")
raw.main()
"""


def serve_witness(**settings: Any) -> converser.MCPServer:
    root = str(Path(__file__).parent.parent)
    environment = {"PYTHONPATH": root, **settings.pop("environment", {})}
    command = [sys.executable, "-c", WITNESS, *settings.pop("args", ())]
    return converser.MCPServer.stdio("witness", command, environment=environment, **settings)


async def ask_witness(server: converser.MCPServer) -> Any:
    with anyio.fail_after(LIMIT):
        async with converser.create_mcp_ensemble(server) as ensemble:
            return (await ensemble.access_invoker("good")()).structured


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_each_transport_can_be_configured(
    transport: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    if transport == "in-process":
        monkeypatch.setattr(awkward, "configured", create_awkward_server(), raising=False)
        server = converser.MCPServer.in_process("awk", "tests.servers.awkward:configured")
    elif transport == "stdio":
        server = converser.MCPServer.stdio("awk", processes.awkward_command())
    else:
        running = request.getfixturevalue(f"awkward_{transport}")
        create = getattr(converser.MCPServer, transport)
        server = create("awk", running.url)
    with anyio.fail_after(LIMIT):
        async with converser.create_mcp_ensemble(server) as ensemble:
            assert ensemble.name == "awk"
            assert list(ensemble.invokers) == sorted(f"awk_{name}" for name in TOOL_NAMES)
            result = await ensemble.access_invoker("echo")({"text": "hello"})
    assert result.text == "hello"


@pytest.mark.parametrize("server", ["tests.servers.awkward:create_awkward_server", object()])
async def test_what_is_no_server_is_told_in_words_of_configuration(server: object) -> None:
    ensemble = converser.create_mcp_ensemble(converser.MCPServer.in_process("awk", server))
    with anyio.fail_after(LIMIT), pytest.raises(converser.MCPConnectionFailure) as caught:
        await ensemble.connect()
    assert isinstance(caught.value.cause, converser.ConfigurationFailure)
    assert "no MCP server" in str(caught.value)
    with anyio.fail_after(LIMIT):
        await ensemble.disconnect()


async def test_an_ensemble_is_not_connected_before_it_is_asked_to() -> None:
    server = converser.MCPServer.stdio("absent", ["no-such-program"])
    ensemble = converser.create_mcp_ensemble(server)
    assert dict(ensemble.invokers) == {}
    with anyio.fail_after(LIMIT), pytest.raises(converser.MCPConnectionFailure) as caught:
        await ensemble.connect()
    assert (caught.value.server, caught.value.transport) == ("absent", "stdio")
    with anyio.fail_after(LIMIT):
        await ensemble.disconnect()


async def test_a_conversation_connects_ensembles_whose_tools_are_not_known_yet(
    awkward_server: AwkwardServer, caplog: pytest.LogCaptureFixture
) -> None:
    stranger = converser.create_mcp_ensemble(converser.MCPServer.in_process("awk", awkward_server))
    absent = converser.create_mcp_ensemble(converser.MCPServer.stdio("absent", ["no-such-program"]))
    model = ScriptedModel([[("echo", {"text": "x"})], "Done."])
    states: list[converser.Event] = []
    try:
        reply = await converse(model, ensembles=[absent, stranger], events=states.append)
    finally:
        await stranger.disconnect()
    assert [result.text for result in results_of(reply)] == ["x"]
    assert "goes on without ensemble 'absent'" in caplog.text
    told = [(each.server, each.state) for each in states if hasattr(each, "server")]
    assert ("absent", "failed") in told
    assert ("awk", "connected") in told


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        ({}, ["awk_add", "awk_echo"]),
        ({"tool_prefix": ""}, ["add", "echo"]),
        ({"tool_prefix": "x"}, ["x_add", "x_echo"]),
        ({"tool_names": "mcp"}, ["mcp__awk__add", "mcp__awk__echo"]),
        ({"disabled_tools": ["e*"]}, ["awk_add"]),
        ({"enabled_tools": ["echo"]}, ["awk_echo"]),
    ],
)
async def test_names_and_tools_are_as_configured(
    awkward_server: AwkwardServer, settings: dict[str, Any], names: list[str]
) -> None:
    defaults = {"enabled_tools": ["echo", "add"], **settings}
    server = converser.MCPServer.in_process("awk", awkward_server, **defaults)
    with anyio.fail_after(LIMIT):
        async with converser.create_mcp_ensemble(server) as ensemble:
            assert list(ensemble.invokers) == names


async def test_the_timeout_of_calls_is_as_configured(awkward_server: AwkwardServer) -> None:
    server = converser.MCPServer.in_process("awk", awkward_server, timeout=0.2)
    with anyio.fail_after(LIMIT):
        async with converser.create_mcp_ensemble(server) as ensemble:
            with pytest.raises(converser.ToolExecutionFailure, match=r"0\.2 s") as caught:
                await ensemble.access_invoker("slow")()
    assert caught.value.outcome is converser.Outcome.TIMED_OUT


async def test_the_timeout_of_connecting_is_as_configured(
    raw_command: Callable[[str], list[str]],
) -> None:
    server = converser.MCPServer.stdio("deaf", raw_command("deaf"), connect_timeout=0.3)
    ensemble = converser.create_mcp_ensemble(server)
    with anyio.fail_after(LIMIT), pytest.raises(converser.MCPTimeoutFailure, match=r"0\.3 s"):
        await ensemble.connect()
    with anyio.fail_after(LIMIT):
        await ensemble.disconnect()


async def test_questions_are_answered_by_the_handler(awkward_server: AwkwardServer) -> None:
    async def answer(question: converser.Elicitation) -> converser.ElicitationAnswer:
        assert question.server == "awk"
        return converser.ElicitationAnswer(values={"name": "Ada"})

    server = converser.MCPServer.in_process("awk", awkward_server)
    with anyio.fail_after(LIMIT):
        async with converser.create_mcp_ensemble(server, elicit=answer) as ensemble:
            assert (await ensemble.access_invoker("ask")()).text == "Hello, Ada!"


async def test_a_server_sees_what_is_configured_and_a_few_harmless_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNRELATED_TOKEN", CANARY)
    monkeypatch.setenv("TOKEN_OF_OURS", "resolved")
    (tmp_path / "secret").write_text("from a file\n")
    facts = await ask_witness(
        serve_witness(
            environment={
                "A": "env:TOKEN_OF_OURS",
                "B": "env:NOT_SET_HERE:fallback",
                "C": f"file:{tmp_path / 'secret'}",
                "D": "literal",
            },
            cwd=tmp_path,
            args=["--flag"],
        )
    )
    environment = facts["environment"]
    assert {k: environment[k] for k in "ABCD"} == {
        "A": "resolved",
        "B": "fallback",
        "C": "from a file",
        "D": "literal",
    }
    assert CANARY not in str(environment)
    assert Path(facts["cwd"]) == tmp_path
    assert "--flag" in facts["argv"]


async def test_secrets_are_read_at_each_connect(monkeypatch: pytest.MonkeyPatch) -> None:
    ensemble = converser.create_mcp_ensemble(serve_witness(environment={"A": "env:ROTATING"}))
    seen: list[str] = []
    with anyio.fail_after(LIMIT):
        for value in ("first", "second"):
            monkeypatch.setenv("ROTATING", value)
            async with ensemble:
                facts: Any = (await ensemble.access_invoker("good")()).structured
                seen.append(facts["environment"]["A"])
    assert seen == ["first", "second"]


async def test_a_secret_that_is_missing_is_told_by_its_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("MISSING_TOKEN", raising=False)
    ensemble = converser.create_mcp_ensemble(serve_witness(environment={"A": "env:MISSING_TOKEN"}))
    with anyio.fail_after(LIMIT), pytest.raises(converser.MCPConnectionFailure) as caught:
        await ensemble.connect()
    assert "MISSING_TOKEN" in str(caught.value)
    assert caught.value.server == "witness"
    assert isinstance(caught.value.cause, converser.ConfigurationFailure)
    with anyio.fail_after(LIMIT):
        await ensemble.disconnect()


@pytest.mark.parametrize("transport", ["stdio", "http", "sse"])
async def test_secrets_are_never_shown(
    transport: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("TOKEN_OF_OURS", CANARY)
    if transport == "stdio":
        words = "import os, sys; sys.exit('Bad key ' + os.environ['KEY'])"
        server = converser.MCPServer.stdio(
            "s", [sys.executable, "-c", words], environment={"KEY": "env:TOKEN_OF_OURS"}
        )
    else:
        create = getattr(converser.MCPServer, transport)
        server = create(
            "s", "http://127.0.0.1:9/mcp", headers={"Authorization": "env:TOKEN_OF_OURS"}
        )
    ensemble = converser.create_mcp_ensemble(server)
    with anyio.fail_after(LIMIT):
        with pytest.raises(converser.MCPConnectionFailure) as caught:
            await ensemble.connect()
        await ensemble.disconnect()
    shown = [words for each in walk_causes(caught.value) for words in (str(each), repr(each))]
    shown += [repr(ensemble), repr(ensemble.connection), repr(server)]
    shown += [r.getMessage() for r in caplog.records if r.name.startswith("converser")]
    assert not [text for text in shown if CANARY in text]


async def test_a_file_of_configuration_becomes_ensembles(tmp_path: Path) -> None:
    command = [sys.executable, str(Path(processes.__file__).with_name("raw.py"))]
    file = tmp_path / "converser.toml"
    file.write_text(
        f"[mcp.sound]\ncommand = {[*command, 'sound']!r}\ntool_prefix = 'snd'\n"
        f"[mcp.other]\ncommand = {[*command, 'sound']!r}\ndisabled_tools = ['also_*']\n"
    )
    configuration = converser.load_configuration(file)
    ensembles = [converser.create_mcp_ensemble(s) for s in configuration.servers.values()]
    with anyio.fail_after(LIMIT):
        for ensemble in ensembles:
            await ensemble.connect()
        gathered = converser.gather_invokers(ensembles)
        for ensemble in ensembles:
            await ensemble.disconnect()
    assert sorted(gathered) == ["other_good", "snd_also_good", "snd_good"]
