# SPDX-License-Identifier: Apache-2.0
"""Code of the application's that a connection calls: whatever it does, the connection lives on."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

import anyio
import pytest

import converser
from tests.places import LIMIT, PLACES, Place, open_place

pytestmark = pytest.mark.anyio
State = converser.ConnectionState


@pytest.fixture(scope="module", params=PLACES)
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    with open_place(request.param) as opened:
        yield opened


async def wait_in_vain(*_: object) -> None:
    """Waits for work that somebody cancels, such as a dialog that was closed."""
    work = asyncio.get_running_loop().create_future()
    work.cancel()
    await work


async def answer_in_vain(_: converser.Elicitation) -> converser.ElicitationAnswer:
    await wait_in_vain()
    return converser.ElicitationAnswer()


def ignore(_state: str, _reason: str) -> None:
    """Has no ears for states."""


@pytest.fixture(scope="module")
async def client(place: Place) -> AsyncGenerator[converser.MCPClient]:
    client = place.create_client(elicit=answer_in_vain)
    yield client
    with anyio.fail_after(LIMIT):
        await client.disconnect()


async def test_a_listener_whose_own_work_was_cancelled_harms_no_call(
    client: converser.MCPClient, caplog: pytest.LogCaptureFixture
) -> None:
    context = converser.Context(on_progress=wait_in_vain)
    with anyio.fail_after(LIMIT):
        result = await client.call_tool("slow", {"seconds": 0, "steps": 3}, context=context)
        after = await client.call_tool("echo", {"text": "still here"}, context=context)
        await anyio.wait_all_tasks_blocked()
    assert result.text == "Done after 3 steps."
    assert after.text == "still here"
    assert "A listener for progress raised" in caplog.text


async def test_a_handler_whose_own_work_was_cancelled_fails_the_call_and_nothing_else(
    client: converser.MCPClient, caplog: pytest.LogCaptureFixture
) -> None:
    with anyio.fail_after(LIMIT):
        with pytest.raises(converser.MCPExecutionFailure):
            await client.call_tool("ask", {})
        after = await client.call_tool("echo", {"text": "still here"})
    assert after.text == "still here"
    assert "its own work was cancelled" in caplog.text


async def test_a_caller_that_is_cancelled_while_its_listener_listens_ends(
    client: converser.MCPClient,
) -> None:
    listens = asyncio.Event()

    async def listen(*_: object) -> None:
        listens.set()
        await anyio.sleep_forever()

    context = converser.Context(on_progress=listen)
    call = asyncio.ensure_future(
        client.call_tool("slow", {"seconds": 60, "steps": 60}, context=context)
    )
    with anyio.fail_after(LIMIT):
        await listens.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert (await client.call_tool("echo", {"text": "fine"})).text == "fine"


@pytest.mark.parametrize("mistake", [ValueError("no ears"), asyncio.CancelledError()])
async def test_a_listener_for_states_that_raises_harms_no_connection(
    place: Place, mistake: BaseException
) -> None:
    heard: list[str] = []

    def hear(state: str, _: str) -> None:
        heard.append(state)
        raise mistake

    client = place.create_client()
    client.watch(on_tools=wait_in_vain, on_state=hear)
    with anyio.fail_after(LIMIT):
        await client.connect()
        assert (await client.call_tool("echo", {"text": "fine"})).text == "fine"
        await client.disconnect()
    assert heard == [State.PENDING, State.CONNECTED, State.DISCONNECTED]


async def test_a_listener_for_tools_whose_own_work_was_cancelled_ends_no_session(
    tmp_path: Path,
) -> None:
    heard = asyncio.Event()

    async def hear() -> None:
        heard.set()
        await wait_in_vain()

    folder = Path(__file__).parent / "faults" / "overstdio"
    command = [sys.executable, str(folder), "ChangeFlood"]
    client = converser.StdioMCPClient(command, {"FAULT_NOTES": str(tmp_path / "notes")})
    client.watch(on_tools=hear, on_state=ignore)
    with anyio.fail_after(LIMIT):
        await client.call_tool("trouble", {})
        await heard.wait()
        await anyio.wait_all_tasks_blocked()
        assert (await client.call_tool("echo", {"text": "fine"})).text == "fine"
        assert client.reconnects == 0
        await client.disconnect()
