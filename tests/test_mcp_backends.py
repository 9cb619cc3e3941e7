# SPDX-License-Identifier: Apache-2.0
"""The same life on trio, and over stdio on the SDK's own transport, which stands in for ours there."""

from __future__ import annotations

import sys
from pathlib import Path

import anyio
import pytest

import converser
import converser.mcp.sessions
from converser.testing import ScriptedModel
from tests.servers import processes
from tests.servers.awkward import create_awkward_server
from tests.servers.processes import RunningServer

pytestmark = pytest.mark.anyio
DEADLINE = 30.0


async def live(client: converser.MCPClient) -> list[str]:
    """Lists, calls, times out, calls again, and leaves; tells the states on the way."""
    states: list[str] = []
    client.watch(on_tools=_ignore, on_state=lambda state, _: states.append(state))
    with anyio.fail_after(DEADLINE):
        async with await converser.discover_mcp_tools(client, "guest") as ensemble:
            assert len(ensemble.invokers) == 13
            echo = ensemble.access_invoker("echo")
            assert (await echo({"text": "one"})).text == "one"
            hasty = converser.Context(timeout=0.2)
            with pytest.raises(converser.ToolExecutionFailure) as caught:
                await ensemble.access_invoker("slow")({"seconds": 60}, context=hasty)
            assert caught.value.outcome is converser.Outcome.TIMED_OUT
            assert (await echo({"text": "two"})).text == "two"
        assert client.state is converser.ConnectionState.DISCONNECTED
    return states


async def _ignore() -> None:
    pass


LIFE = ["pending", "connected", "disconnected"]


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_in_process_on_both_backends() -> None:
    assert await live(converser.InProcessMCPClient(create_awkward_server())) == LIFE


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_stdio_on_both_backends(awkward_command: list[str]) -> None:
    assert await live(converser.StdioMCPClient(awkward_command)) == LIFE


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_http_on_both_backends(awkward_http: RunningServer) -> None:
    assert await live(converser.HttpMCPClient(awkward_http.url)) == LIFE


@pytest.mark.parametrize("anyio_backend", [("asyncio", {"use_uvloop": True})])
async def test_stdio_on_uvloop_where_a_server_that_closes_its_output_is_noticed(
    awkward_command: list[str], tmp_path: Path
) -> None:
    pytest.importorskip("uvloop")
    assert await live(converser.StdioMCPClient(awkward_command)) == LIFE
    folder = Path(__file__).parent / "faults" / "overstdio"
    command = [sys.executable, str(folder), "ClosesStdout"]
    client = converser.StdioMCPClient(command, {"FAULT_NOTES": str(tmp_path / "notes")})
    with anyio.fail_after(DEADLINE):
        with pytest.raises(converser.MCPConnectionFailure):
            await client.call_tool("trouble", {})
        assert (await client.call_tool("echo", {"text": "back"})).text == "back"
        await client.disconnect()


async def test_stdio_on_the_transport_of_the_sdk(
    awkward_command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(converser.mcp.sessions, "_can_keep_processes", lambda: False)
    client = converser.StdioMCPClient(awkward_command)
    assert await live(client) == LIFE
    with anyio.fail_after(DEADLINE):
        async with await converser.discover_mcp_tools(client, "guest") as ensemble:
            with pytest.raises(converser.ToolExecutionFailure) as caught:
                await ensemble.access_invoker("crash")({})
            assert caught.value.outcome is converser.Outcome.UNKNOWN
            assert (await ensemble.access_invoker("echo")({"text": "back"})).text == "back"


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_a_roster_a_conversation_and_recovery_on_both_backends(
    awkward_command: list[str], awkward_http: RunningServer, awkward_sse: RunningServer
) -> None:
    def shout(words: str) -> str:
        """Says it loudly."""
        return words.upper()

    servers = [
        converser.MCPServer.stdio("process", awkward_command),
        converser.MCPServer.http("web", awkward_http.url),
        converser.MCPServer.sse("old", awkward_sse.url),
        converser.MCPServer.in_process("here", create_awkward_server()),
        converser.MCPServer.stdio("broken", ["/no/such/program"]),
    ]
    calls = [(f"{each.name}_echo", {"text": each.name}) for each in servers[:4]]
    script = [[*calls, ("shout", {"words": "hi"})], [("process_crash", {})], calls, "Done."]
    with anyio.fail_after(DEADLINE * 2):
        async with converser.Roster(servers) as roster:
            local = converser.create_local_ensemble("local", [shout])
            model = ScriptedModel(script)
            reply = await model.converse(
                [converser.user("go")], ensembles=[*roster.ensembles, local]
            )
            survey = roster.survey()
    results = [each for each in reply if isinstance(each, converser.ResultCanister)]
    names = [each.name for each in servers[:4]]
    assert [result.text for result in results[:5]] == [*names, "HI"]
    assert results[5].outcome is converser.Outcome.UNKNOWN
    assert [result.text for result in results[6:]] == names
    assert survey["broken"].state == "failed"
    assert {survey[name].state.value for name in names} == {"connected"}


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_an_oversized_result_over_http_on_both_backends(awkward_http: RunningServer) -> None:
    client = converser.HttpMCPClient(awkward_http.url, result_limit=65_536)
    with anyio.fail_after(DEADLINE):
        async with await converser.discover_mcp_tools(client, "guest") as ensemble:
            result = await ensemble.access_invoker("echo")({"text": "x" * 300_000})
    [link] = [part for part in result.contents if isinstance(part, converser.LinkContent)]
    excess = converser.access_excess(link)
    assert excess is not None
    assert excess.read(0, 400_000) == ("x" * 300_000, 300_000)


def test_a_client_is_used_in_one_loop_after_another() -> None:
    client = converser.StdioMCPClient(processes.raw_command("sound"))

    async def visit(leaves: bool = True) -> str:
        with anyio.fail_after(DEADLINE):
            ensemble = await converser.discover_mcp_tools(client, "guest")
            said = (await ensemble.access_invoker("good")()).text
            if leaves:
                await ensemble.disconnect()
            return said

    for backend in ("asyncio", "asyncio", "trio", "asyncio"):
        assert anyio.run(visit, backend=backend) == "good was called"
    assert anyio.run(visit, False) == "good was called"  # and its loop ends all the same
    assert anyio.run(visit) == "good was called"
