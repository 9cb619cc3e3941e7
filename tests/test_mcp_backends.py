# SPDX-License-Identifier: Apache-2.0
"""The same life on trio, and over stdio on the SDK's own transport, which stands in for ours there."""

from __future__ import annotations

import anyio
import pytest

import converser
import converser.mcp.sessions
from tests.servers.awkward import create_awkward_server
from tests.servers.processes import RunningServer

pytestmark = pytest.mark.anyio
DEADLINE = 30.0


async def live(client: converser.MCPClient) -> None:
    """Lists, calls, times out, calls again, and leaves."""
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


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_in_process_on_both_backends() -> None:
    await live(converser.InProcessMCPClient(create_awkward_server()))


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_stdio_on_both_backends(awkward_command: list[str]) -> None:
    await live(converser.StdioMCPClient(awkward_command))


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_http_on_both_backends(awkward_http: RunningServer) -> None:
    await live(converser.HttpMCPClient(awkward_http.url))


async def test_stdio_on_the_transport_of_the_sdk(
    awkward_command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(converser.mcp.sessions, "_can_keep_processes", lambda: False)
    client = converser.StdioMCPClient(awkward_command)
    await live(client)
    with anyio.fail_after(DEADLINE):
        async with await converser.discover_mcp_tools(client, "guest") as ensemble:
            with pytest.raises(converser.ToolExecutionFailure) as caught:
                await ensemble.access_invoker("crash")({})
            assert caught.value.outcome is converser.Outcome.UNKNOWN
            assert (await ensemble.access_invoker("echo")({"text": "back"})).text == "back"
