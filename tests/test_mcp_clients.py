# SPDX-License-Identifier: Apache-2.0
"""Every client behaves alike over every transport, and lives with any order of comings and goings."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import mcp_types
import pytest
from hypothesis import given, settings, strategies as st
from mcp.server import Server, ServerRequestContext

import converser
from tests.places import LIMIT, PLACES, Marked, Place, open_place, serve_on_port
from tests.servers import processes
from tests.servers.awkward import TOOL_NAMES

pytestmark = pytest.mark.anyio
State = converser.ConnectionState


@dataclass(frozen=True, kw_only=True)
class Scene:
    """An awkward server, and an ensemble that is connected to it."""

    place: Place
    client: converser.MCPClient
    ensemble: converser.Ensemble
    names_at_first: tuple[str, ...]

    async def call(self, name: str, **arguments: Any) -> converser.InvocationResult:
        with anyio.fail_after(LIMIT):
            return await self.ensemble.access_invoker(name)(arguments)


async def answer(question: converser.Elicitation) -> converser.ElicitationAnswer:
    return converser.ElicitationAnswer(values={"name": f"{question.message[5]}. Ada"})


@pytest.fixture(scope="module", params=PLACES)
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    with open_place(request.param) as opened:
        yield opened


@pytest.fixture(scope="module")
async def scene(place: Place) -> AsyncGenerator[Scene]:
    client = place.create_client(elicit=answer)
    with anyio.fail_after(LIMIT):
        ensemble = await converser.discover_mcp_tools(client, "awkward")
    names = tuple(ensemble.invokers)
    yield Scene(place=place, client=client, ensemble=ensemble, names_at_first=names)
    with anyio.fail_after(LIMIT):
        await ensemble.disconnect()


async def count_cancellations(scene: Scene, at_least: int = 0) -> int:
    return int((await scene.call("cancellations", at_least=at_least)).text)


async def test_all_thirteen_tools_of_all_pages_are_there(scene: Scene) -> None:
    assert len(TOOL_NAMES) == 13
    assert scene.names_at_first == tuple(sorted(TOOL_NAMES))


async def test_tools_carry_all_that_the_server_says_of_them(scene: Scene) -> None:
    add = scene.ensemble.access_invoker("add")
    assert add.description == "Adds two numbers."
    assert add.arguments_schema["required"] == ["a", "b"]
    assert (add.output_schema or {})["required"] == ["sum"]
    assert add.annotations == converser.Annotations(read_only=True, idempotent=True)
    assert scene.ensemble.access_invoker("crash").annotations.destructive is True
    assert scene.ensemble.access_invoker("fail").annotations == converser.Annotations()
    assert scene.ensemble.access_invoker("fail").output_schema is None


async def test_the_client_tells_of_the_server(scene: Scene) -> None:
    client: Any = scene.client
    assert client.state is State.CONNECTED
    assert client.name == "awkward"
    assert client.protocol_version == "2026-07-28"
    assert client.instructions == "Everything here is awkward on purpose."
    assert client.transport == scene.place.transport


async def test_a_call_gives_contents_and_structured_data(scene: Scene) -> None:
    assert (await scene.call("echo", text="Grüße \u2028 🌦")).text == "Grüße \u2028 🌦"
    assert (await scene.call("add", a=2, b=3)).structured == {"sum": 5}


async def test_arguments_are_mended_before_the_wire(scene: Scene) -> None:
    assert (await scene.call("add", a="2", b="3.5")).structured == {"sum": 5.5}


async def test_arguments_that_do_not_fit_never_reach_the_server(scene: Scene) -> None:
    with pytest.raises(converser.ToolExecutionFailure, match="A valid example") as c:
        await scene.call("add", a="two", b=3)
    assert c.value.outcome is converser.Outcome.INVALID


async def test_a_tool_that_fails_raises_with_what_it_had_to_say(scene: Scene) -> None:
    with pytest.raises(converser.ToolExecutionFailure, match="failed on purpose") as caught:
        await scene.call("fail")
    failure, cause = caught.value, caught.value.__cause__
    assert isinstance(cause, converser.MCPExecutionFailure)
    assert failure.contents == (converser.TextualContent(text="The tool failed on purpose."),)
    assert cause.contents == failure.contents
    assert failure.outcome is converser.Outcome.TOOL_ERROR
    assert (failure.tool, failure.ensemble) == ("fail", "awkward")
    assert (cause.server, cause.tool) == ("awkward", "fail")
    assert cause.transport == scene.place.transport


async def test_an_error_of_the_protocol_is_an_error_of_the_tool(scene: Scene) -> None:
    with pytest.raises(converser.ToolExecutionFailure, match=r"Refused on purpose\.") as caught:
        await scene.call("rpc_error")
    cause = caught.value.__cause__
    assert isinstance(cause, converser.MCPExecutionFailure)
    assert cause.code == -32602
    assert cause.cause is not None
    assert caught.value.outcome is converser.Outcome.TOOL_ERROR
    assert (await scene.call("echo", text="still here")).text == "still here"


async def test_a_tool_that_the_server_does_not_know_is_an_error_of_the_tool(scene: Scene) -> None:
    with anyio.fail_after(LIMIT), pytest.raises(converser.MCPExecutionFailure, match="nonsense"):
        await scene.client.call_tool("nonsense", {})


async def test_a_slow_call_times_out_and_the_connection_stays_usable(scene: Scene) -> None:
    before = await count_cancellations(scene)
    invoker = scene.ensemble.access_invoker("slow")
    with anyio.fail_after(LIMIT), pytest.raises(converser.ToolExecutionFailure) as caught:
        await invoker(context=converser.Context(timeout=0.2))
    cause = caught.value.__cause__
    assert isinstance(cause, converser.MCPTimeoutFailure)
    assert caught.value.outcome is converser.Outcome.TIMED_OUT
    assert "0.2 s" in str(caught.value)
    assert cause.remedy
    assert (cause.server, cause.tool) == ("awkward", "slow")
    assert scene.client.state is State.CONNECTED
    assert await count_cancellations(scene, before + 1) == before + 1


async def test_cancelling_a_call_reaches_the_server_and_leaves_the_connection_usable(
    scene: Scene,
) -> None:
    before = await count_cancellations(scene)
    started = asyncio.Event()

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        started.set()

    invoker = scene.ensemble.access_invoker("slow")
    task = asyncio.create_task(invoker(context=converser.Context(on_progress=hear)))
    with anyio.fail_after(LIMIT):
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert await count_cancellations(scene, before + 1) == before + 1
    assert scene.client.state is State.CONNECTED


async def test_a_call_that_falls_silent_ends_early_and_says_so(scene: Scene) -> None:
    context = converser.Context(timeout=LIMIT, idle_timeout=0.3)
    with anyio.fail_after(LIMIT), pytest.raises(converser.ToolExecutionFailure) as caught:
        await scene.ensemble.access_invoker("slow")(context=context)
    assert caught.value.outcome is converser.Outcome.TIMED_OUT
    assert "made no progress within 0.3 s" in str(caught.value)


async def test_progress_is_heard(scene: Scene) -> None:
    heard: list[tuple[float, float | None, str | None]] = []
    at_the_end = asyncio.Event()

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total, message))
        if progress == total:
            at_the_end.set()

    context = converser.Context(on_progress=hear)
    invoker = scene.ensemble.access_invoker("slow")
    with anyio.fail_after(LIMIT):
        result = await invoker({"seconds": 0, "steps": 3}, context=context)
        await at_the_end.wait()  # the last words may come a moment after the result
    assert result.text == "Done after 3 steps."
    steps = [(float(step), 3.0, f"step {step}") for step in (1, 2, 3)]
    assert sorted(heard) == [(0, 3, "started"), *steps]


async def test_a_listener_that_raises_harms_no_call(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    at_the_end = asyncio.Event()

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        if progress == total:
            at_the_end.set()
        raise ValueError("no ears")

    context = converser.Context(on_progress=hear)
    invoker = scene.ensemble.access_invoker("slow")
    with anyio.fail_after(LIMIT):
        result = await invoker({"seconds": 0, "steps": 1}, context=context)
        await at_the_end.wait()
        await anyio.wait_all_tasks_blocked()
    assert result.text == "Done after 1 steps."
    assert "no ears" in caplog.text


async def test_many_calls_at_once_each_get_their_own_answer(scene: Scene) -> None:
    numbers = range(40)
    with anyio.fail_after(LIMIT):
        results = await asyncio.gather(*(scene.call("add", a=n, b=n) for n in numbers))
    assert [result.structured for result in results] == [{"sum": 2 * n} for n in numbers]


async def test_one_call_that_is_cancelled_disturbs_no_other(scene: Scene) -> None:
    slow = asyncio.create_task(scene.call("slow"))
    others = [asyncio.create_task(scene.call("echo", text=str(n))) for n in range(10)]
    with anyio.fail_after(LIMIT):
        slow.cancel()
        assert [(await each).text for each in others] == [str(n) for n in range(10)]
        with pytest.raises(asyncio.CancelledError):
            await slow


async def test_a_question_is_answered_by_the_handler(scene: Scene) -> None:
    assert (await scene.call("ask")).text == "Hello, 1. Ada!"
    assert (await scene.call("ask", rounds=3)).text == "Hello, 1. Ada and 2. Ada and 3. Ada!"


async def test_a_server_may_not_ask_without_end(scene: Scene) -> None:
    with pytest.raises(converser.ToolExecutionFailure, match="more than 10 times") as caught:
        await scene.call("ask", rounds=12)
    assert isinstance(caught.value.__cause__, converser.MCPProtocolFailure)
    assert caught.value.__cause__.__cause__ is not caught.value.__cause__


async def test_a_tool_that_the_server_adds_is_there_after_a_refresh(scene: Scene) -> None:
    before = scene.ensemble.invokers
    grown = (await scene.call("grow")).text
    with anyio.fail_after(LIMIT):
        await scene.ensemble.refresh()
    assert grown not in before
    assert (await scene.call(grown)).text == f"{grown} at your service."


async def test_calls_may_come_from_other_tasks_than_the_one_that_connected(scene: Scene) -> None:
    with anyio.fail_after(LIMIT):
        result = await asyncio.create_task(scene.call("echo", text="task"))
        again = await asyncio.wait_for(scene.call("echo", text="wait_for"), LIMIT)
    assert (result.text, again.text) == ("task", "wait_for")


async def test_without_a_handler_a_question_is_refused(place: Place) -> None:
    client = place.create_client()
    with anyio.fail_after(LIMIT):
        with pytest.raises(converser.MCPExecutionFailure) as caught:
            await client.call_tool("ask", {})
        assert caught.value.outcome is converser.Outcome.TOOL_ERROR
        assert client.state is State.CONNECTED
        await client.disconnect()


async def test_a_person_may_decline(place: Place) -> None:
    async def decline(question: converser.Elicitation) -> converser.ElicitationAnswer:
        return converser.ElicitationAnswer(action="decline")

    client = place.create_client(elicit=decline)
    with anyio.fail_after(LIMIT):
        with pytest.raises(converser.MCPExecutionFailure, match=r"No name, no greeting\."):
            await client.call_tool("ask", {})
        await client.disconnect()


async def test_disconnecting_ends_a_call_in_flight_soon_and_with_a_failure_of_ours(
    place: Place,
) -> None:
    client = place.create_client()
    started = asyncio.Event()

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        started.set()

    with anyio.fail_after(LIMIT):
        ensemble = await converser.discover_mcp_tools(client, "awkward")
        slow = ensemble.access_invoker("slow")
        task = asyncio.create_task(slow(context=converser.Context(on_progress=hear)))
        await started.wait()
    with anyio.fail_after(10):
        await ensemble.disconnect()
        with pytest.raises(converser.ToolExecutionFailure) as caught:
            await task
    assert isinstance(caught.value.__cause__, converser.MCPFailure)
    assert caught.value.outcome is converser.Outcome.UNKNOWN
    assert client.state is State.DISCONNECTED


async def test_disconnecting_ends_a_plain_call_that_runs_in_this_very_process() -> None:
    from tests.servers.awkward import create_awkward_server

    client = converser.InProcessMCPClient(create_awkward_server())
    with anyio.fail_after(LIMIT):
        await client.connect()
        task = asyncio.create_task(client.call_tool("slow", {}))
        await anyio.wait_all_tasks_blocked()
        await client.disconnect()
        with pytest.raises(converser.MCPConnectionFailure) as caught:
            await task
    assert caught.value.outcome is converser.Outcome.UNKNOWN


async def test_a_client_can_be_used_again_after_it_was_disconnected(place: Place) -> None:
    client = place.create_client()
    with anyio.fail_after(LIMIT):
        for text in ("first", "second"):
            await client.connect()
            assert (await client.call_tool("echo", {"text": text})).text == text
            await client.disconnect()
            assert client.state is State.DISCONNECTED
            assert client.protocol_version is None
            assert client.instructions is None


# --- A crash ------------------------------------------------------------------------------------


async def test_after_a_crash_the_outcome_is_unknown_and_the_next_call_works_again(
    awkward_command: list[str],
) -> None:
    client = converser.StdioMCPClient(awkward_command)
    with anyio.fail_after(LIMIT):
        async with await converser.discover_mcp_tools(client, "awkward") as ensemble:
            with pytest.raises(converser.ToolExecutionFailure) as caught:
                await ensemble.access_invoker("crash")()
            result = await ensemble.access_invoker("echo")({"text": "alive"})
    assert isinstance(caught.value.__cause__, converser.MCPConnectionFailure)
    assert caught.value.outcome is converser.Outcome.UNKNOWN
    assert "Check whether it took effect" in caught.value.remedy
    assert result.text == "alive"


@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_after_a_restart_of_a_crashed_server_the_next_call_works_again(
    transport: str, caplog: pytest.LogCaptureFixture
) -> None:
    create = converser.HttpMCPClient if transport == "http" else converser.SseMCPClient
    with serve_on_port(transport, 0) as url:
        client = create(url)
        with anyio.fail_after(LIMIT):
            ensemble = await converser.discover_mcp_tools(client, "awkward")
            with pytest.raises(converser.ToolExecutionFailure) as caught:
                await ensemble.access_invoker("crash")()
    assert isinstance(caught.value.__cause__, converser.MCPConnectionFailure)
    assert caught.value.outcome is converser.Outcome.UNKNOWN
    with serve_on_port(transport, urlsplit(url).port or 0):
        with anyio.fail_after(LIMIT):
            result = await ensemble.access_invoker("echo")({"text": "alive"})
            await ensemble.disconnect()
    assert result.text == "alive"
    assert "Traceback" not in caplog.text  # the failure of the call says it all


async def test_a_crash_is_noticed_before_the_next_call(awkward_command: list[str]) -> None:
    client = converser.StdioMCPClient(awkward_command)
    with anyio.fail_after(LIMIT):
        await client.connect()
        with pytest.raises(converser.MCPConnectionFailure):
            await client.call_tool("crash", {})
        assert client.state is not State.CONNECTED
        await client.disconnect()


# --- Both eras ----------------------------------------------------------------------------------

LEGACY_SERVER = """
    import functools
    import anyio
    from mcp import MCPError, types
    from tests.servers import awkward

    async def refuse(ctx, params):
        raise MCPError(types.METHOD_NOT_FOUND, "Method not found")

    server = awkward.create_awkward_server(may_exit=True)
    server.add_request_handler("server/discover", types.RequestParams, refuse)
    if __name__ == "__main__":
        anyio.run(functools.partial(awkward._serve_stdio, server))
"""


@pytest.fixture(params=["in-process", "stdio"])
def legacy_client(request: pytest.FixtureRequest) -> converser.MCPClient:
    """A client of a server that knows only the handshake of the older era."""
    code = textwrap.dedent(LEGACY_SERVER)
    if request.param == "stdio":
        return converser.StdioMCPClient(
            [sys.executable, "-c", code],
            {"PYTHONPATH": str(Path(__file__).parent.parent)},
            elicit=answer,
        )
    room: dict[str, Any] = {"__name__": "legacy"}
    exec(code, room)
    return converser.InProcessMCPClient(room["server"], elicit=answer)


async def test_the_older_era_is_negotiated_and_does_all_the_same(
    legacy_client: converser.MCPClient,
) -> None:
    with anyio.fail_after(LIMIT):
        async with await converser.discover_mcp_tools(legacy_client, "legacy") as ensemble:
            assert legacy_client.protocol_version == "2025-11-25"
            assert tuple(ensemble.invokers) == tuple(sorted(TOOL_NAMES))
            total = await ensemble.access_invoker("add")({"a": 1, "b": 2})
            hello = await ensemble.access_invoker("ask")({"rounds": 2})
            with pytest.raises(converser.ToolExecutionFailure, match="on purpose"):
                await ensemble.access_invoker("fail")()
            with pytest.raises(converser.ToolExecutionFailure) as caught:
                await ensemble.access_invoker("slow")(context=converser.Context(timeout=0.2))
            noticed = await ensemble.access_invoker("cancellations")({"at_least": 1})
    assert total.structured == {"sum": 3}
    assert hello.text == "Hello, 1. Ada and 2. Ada!"
    assert caught.value.outcome is converser.Outcome.TIMED_OUT
    assert noticed.text == "1"


@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_a_handler_that_raises_fails_the_call_and_nothing_else(
    era: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def stumble(question: converser.Elicitation) -> converser.ElicitationAnswer:
        raise LookupError("no person here")

    room: dict[str, Any] = {"__name__": "legacy"}
    exec(textwrap.dedent(LEGACY_SERVER), room)
    if era == "modern":
        from tests.servers.awkward import create_awkward_server

        room["server"] = create_awkward_server()
    client = converser.InProcessMCPClient(room["server"], elicit=stumble)
    with anyio.fail_after(LIMIT):
        with pytest.raises(converser.MCPExecutionFailure):
            await client.call_tool("ask", {})
        assert (await client.call_tool("echo", {"text": "fine"})).text == "fine"
        await client.disconnect()
    assert "no person here" in caplog.text


def create_inquirer(*rounds: mcp_types.InputRequiredResult) -> tuple[Server[Any], list[Any]]:
    """A server whose tool gives these rounds one by one, and then is done; and the answers it got."""
    answers: list[Any] = []

    async def call_tool(
        context: ServerRequestContext[Any], params: mcp_types.CallToolRequestParams
    ) -> Any:
        answers.append((params.request_state, params.input_responses))
        if len(answers) <= len(rounds):
            return rounds[len(answers) - 1]
        return mcp_types.CallToolResult(content=[mcp_types.TextContent(text="done")])

    return Server("inquirer", on_call_tool=call_tool), answers


async def test_a_person_may_be_sent_to_a_page() -> None:
    page = mcp_types.ElicitRequestURLParams(
        message="Log in\x1b[2J", url="https://example.org/login", elicitation_id="1"
    )
    request = mcp_types.ElicitRequest(params=page)
    server, answers = create_inquirer(
        mcp_types.InputRequiredResult(input_requests={"login": request}, request_state="s")
    )
    seen: list[converser.Elicitation] = []

    async def visit(question: converser.Elicitation) -> converser.ElicitationAnswer:
        seen.append(question)
        return converser.ElicitationAnswer(values={"never": "sent"})

    client = converser.InProcessMCPClient(server, elicit=visit)
    with anyio.fail_after(LIMIT):
        assert (await client.call_tool("any", {})).text == "done"
        await client.disconnect()
    (question,) = seen
    assert (question.url, question.form) == ("https://example.org/login", None)
    assert question.message == "Log in\\x1b[2J"
    state, responses = answers[1]
    assert state == "s"
    assert responses["login"].action == "accept"
    assert not responses["login"].content


async def test_a_server_that_only_wants_time_gets_it() -> None:
    server, answers = create_inquirer(
        mcp_types.InputRequiredResult(request_state="one"),
        mcp_types.InputRequiredResult(request_state="two"),
    )
    client = converser.InProcessMCPClient(server)
    with anyio.fail_after(LIMIT):
        assert (await client.call_tool("any", {})).text == "done"
        await client.disconnect()
    assert [state for state, _ in answers] == [None, "one", "two"]


@pytest.mark.parametrize(
    "nonsense", [None, converser.ElicitationAnswer(values={"name": {"no": object()}})]
)
async def test_an_answer_that_no_server_may_get_fails_the_call_and_nothing_else(
    nonsense: Any, caplog: pytest.LogCaptureFixture
) -> None:
    from tests.servers.awkward import create_awkward_server

    async def mumble(question: converser.Elicitation) -> converser.ElicitationAnswer:
        return nonsense  # type: ignore[no-any-return]

    client = converser.InProcessMCPClient(create_awkward_server(), elicit=mumble)
    with anyio.fail_after(LIMIT):
        with pytest.raises(converser.MCPExecutionFailure, match="handler failed"):
            await client.call_tool("ask", {})
        assert (await client.call_tool("echo", {"text": "fine"})).text == "fine"
        await client.disconnect()
    assert "handler" in caplog.text


# --- Comings and goings -------------------------------------------------------------------------


@pytest.fixture
def marked() -> Iterator[Marked]:
    """A sound server that starts fast; after the test nothing of it may be left."""
    command = Marked(processes.raw_command("sound"))
    yield command
    assert command.find_processes() == []


async def test_a_new_client_is_disconnected_and_says_so() -> None:
    client = converser.StdioMCPClient(["nothing"], name="n")
    assert client.state is State.DISCONNECTED
    assert repr(client) == "StdioMCPClient(name='n', state='disconnected')"
    with anyio.fail_after(LIMIT):
        await client.disconnect()
    assert client.state is State.DISCONNECTED


async def test_no_process_is_left_after_a_disconnect(marked: Marked) -> None:
    client = converser.StdioMCPClient(marked.command)
    with anyio.fail_after(LIMIT):
        await client.connect()
        assert marked.find_processes()
        await client.disconnect()
    assert marked.find_processes() == []


async def test_connecting_is_idempotent_in_a_row_and_at_once(marked: Marked) -> None:
    client = converser.StdioMCPClient(marked.command)
    with anyio.fail_after(LIMIT):
        await client.connect()
        alone = len(marked.find_processes())
        await client.connect()
        await asyncio.gather(*(client.connect() for _ in range(10)))
        assert len(marked.find_processes()) == alone
        await asyncio.gather(*(client.disconnect() for _ in range(10)))
        await client.disconnect()
        assert marked.find_processes() == []
        await asyncio.gather(*(client.connect() for _ in range(10)))
        assert len(marked.find_processes()) == alone
        await client.disconnect()


async def test_first_calls_at_once_connect_once(marked: Marked) -> None:
    client = converser.StdioMCPClient(marked.command)
    with anyio.fail_after(LIMIT):
        results = await asyncio.gather(*(client.call_tool("good", {}) for _ in range(10)))
        assert {result.text for result in results} == {"good was called"}
        calm = len(marked.find_processes())
        await client.connect()
        assert len(marked.find_processes()) == calm
        await client.disconnect()


async def test_connect_and_disconnect_may_come_from_different_tasks(marked: Marked) -> None:
    client = converser.StdioMCPClient(marked.command)
    with anyio.fail_after(LIMIT):
        await asyncio.create_task(client.connect())
        assert (await client.call_tool("good", {})).text == "good was called"
        await asyncio.create_task(client.disconnect())
    assert client.state is State.DISCONNECTED


async def test_clients_may_be_closed_in_any_order() -> None:
    commands = [Marked(processes.raw_command("sound")) for _ in range(3)]
    clients = [converser.StdioMCPClient(each.command) for each in commands]
    with anyio.fail_after(LIMIT):
        await asyncio.gather(*(client.connect() for client in clients))
        for index in (1, 0, 2):
            await clients[index].disconnect()
            assert commands[index].find_processes() == []
            for other in clients:
                if other.state is State.CONNECTED:
                    assert (await other.call_tool("good", {})).text == "good was called"


async def test_connect_works_under_wait_for(marked: Marked) -> None:
    client = converser.StdioMCPClient(marked.command)
    with anyio.fail_after(LIMIT):
        await asyncio.wait_for(client.connect(), LIMIT)
        assert (await client.call_tool("good", {})).text == "good was called"
        await asyncio.wait_for(client.disconnect(), LIMIT)


async def test_a_connect_that_is_cancelled_leaves_the_client_usable(marked: Marked) -> None:
    client = converser.StdioMCPClient(marked.command)
    with anyio.fail_after(LIMIT):
        for _ in range(3):
            task = asyncio.create_task(client.connect())
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert (await client.call_tool("good", {})).text == "good was called"
        await client.disconnect()


async def test_disconnecting_does_not_wait_for_a_server_that_is_being_connected() -> None:
    deaf = Marked(processes.raw_command("deaf"))
    client = converser.StdioMCPClient(deaf.command, connect_timeout=LIMIT)
    with anyio.fail_after(5):
        task = asyncio.create_task(client.connect())
        await asyncio.sleep(0)
        assert client.state is State.PENDING
        await client.disconnect()
        with pytest.raises(converser.MCPConnectionFailure, match="closed while"):
            await task
    assert client.state is State.DISCONNECTED
    assert deaf.find_processes() == []


async def test_discovery_that_is_cancelled_ends_soon_and_leaves_no_process() -> None:
    deaf = Marked(processes.raw_command("deaf"))
    client = converser.StdioMCPClient(deaf.command, connect_timeout=LIMIT)
    with anyio.fail_after(8):
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(converser.discover_mcp_tools(client, "deaf"), 0.3)
    assert client.state is State.DISCONNECTED
    assert deaf.find_processes() == []


async def test_an_entry_that_is_cancelled_leaves_no_process() -> None:
    deaf = Marked(processes.raw_command("deaf"))
    client = converser.StdioMCPClient(deaf.command, connect_timeout=LIMIT)
    ensemble = converser.Ensemble("deaf", connection=client)
    with anyio.fail_after(8):
        with anyio.move_on_after(0.3) as scope:
            await ensemble.__aenter__()
        assert scope.cancelled_caught
        await client.disconnect()
    assert deaf.find_processes() == []


async def test_a_server_that_is_killed_is_started_again_by_the_next_call(marked: Marked) -> None:
    client = converser.StdioMCPClient(marked.command)
    with anyio.fail_after(LIMIT):
        await client.connect()
        for line in marked.find_processes():
            os.kill(int(line.split()[0]), signal.SIGKILL)
        while client.state is State.CONNECTED:  # noqa: ASYNC110
            await asyncio.sleep(0)
        assert (await client.call_tool("good", {})).text == "good was called"
        await client.disconnect()


@settings(max_examples=15)
@given(
    tasks=st.lists(
        st.lists(st.sampled_from(["connect", "disconnect", "call", "list"]), max_size=4),
        min_size=1,
        max_size=4,
    )
)
async def test_any_order_of_comings_and_goings_ends_well(tasks: list[list[str]]) -> None:
    command = Marked(processes.raw_command("sound"))
    client = converser.StdioMCPClient(command.command)

    async def visit(steps: list[str]) -> None:
        for step in steps:
            try:
                if step == "call":
                    assert (await client.call_tool("good", {})).text == "good was called"
                elif step == "list":
                    assert len(await client.list_tools()) == 2
                else:
                    await getattr(client, step)()
            except converser.MCPConnectionFailure:
                assert any("disconnect" in others for others in tasks)

    with anyio.fail_after(LIMIT):
        await asyncio.gather(*(visit(steps) for steps in tasks))
        await client.disconnect()
    assert client.state is State.DISCONNECTED
    assert command.find_processes() == []


def test_a_client_serves_one_loop_after_another(marked: Marked) -> None:
    client = converser.StdioMCPClient(marked.command)

    async def visit() -> str:
        async with await converser.discover_mcp_tools(client, "sound") as ensemble:
            return (await ensemble.access_invoker("good")()).text

    assert asyncio.run(asyncio.wait_for(visit(), LIMIT)) == "good was called"
    assert asyncio.run(asyncio.wait_for(visit(), LIMIT)) == "good was called"


def test_a_client_that_was_not_disconnected_hangs_no_loop_and_leaves_no_process(
    marked: Marked,
) -> None:
    client = converser.StdioMCPClient(marked.command)

    async def visit() -> str:
        return (await client.call_tool("good", {})).text

    assert asyncio.run(asyncio.wait_for(visit(), LIMIT)) == "good was called"
    assert marked.find_processes() == []
    assert asyncio.run(asyncio.wait_for(visit(), LIMIT)) == "good was called"


BOT = """
import asyncio, converser, json, sys
loop = asyncio.new_event_loop()
async def main():
    client = converser.StdioMCPClient(json.loads(sys.argv[1]))
    print((await client.call_tool("good", {})).text, flush=True)
    loop.stop()
    await asyncio.sleep(600)
task = loop.create_task(main())
loop.run_forever()
"""


def test_a_loop_that_is_just_stopped_hangs_no_program_and_leaves_no_process(marked: Marked) -> None:
    """As programs do that run for ever until somebody stops them; whatever their tasks are at."""
    command = [sys.executable, "-c", BOT, json.dumps(marked.command)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=True)
    assert ended.stdout == "good was called\n"
    end = time.monotonic() + LIMIT
    while marked.find_processes():
        assert time.monotonic() < end
        time.sleep(0.02)


SLOW_TO_END = """
import sys, time
from tests.servers import raw
raw.main()
time.sleep(1.0)
"""


def test_a_loop_that_ends_begins_nothing_new_while_it_waits_for_a_server_to_end() -> None:
    command = Marked([sys.executable, "-c", SLOW_TO_END, "sound"])
    environment = {"PYTHONPATH": str(Path(__file__).parent.parent)}
    client = converser.StdioMCPClient(command.command, environment)

    async def visit() -> str:
        return (await client.call_tool("good", {})).text

    for _ in range(2):
        assert asyncio.run(asyncio.wait_for(visit(), LIMIT)) == "good was called"
        assert client.state is State.DISCONNECTED
        assert command.find_processes() == []


def test_a_loop_that_ends_while_a_server_is_being_recovered_leaves_it_for_the_next_one() -> None:
    client = converser.StdioMCPClient(processes.raw_command("weary"))

    async def lose() -> None:
        with anyio.fail_after(LIMIT), pytest.raises(converser.MCPConnectionFailure):
            await client.call_tool("good", {})
        assert client.state is State.RECONNECTING

    asyncio.run(lose())
    assert client.state is State.DISCONNECTED
    asyncio.run(lose())


@pytest.mark.parametrize("step", ["call", "connect", "disconnect"])
def test_a_connection_of_another_loop_is_not_touched_and_that_is_told(step: str) -> None:
    client = converser.StdioMCPClient(processes.raw_command("sound"), name="s")

    async def use() -> None:
        with anyio.fail_after(LIMIT):
            if step == "call":
                await client.call_tool("good", {})
            else:
                await getattr(client, step)()

    def use_elsewhere() -> None:
        with pytest.raises(converser.MCPConnectionFailure, match=r"'s'.*another event loop"):
            asyncio.run(use())

    async def own() -> None:
        await client.connect()
        await asyncio.to_thread(use_elsewhere)
        assert (await client.call_tool("good", {})).text == "good was called"
        await client.disconnect()

    asyncio.run(asyncio.wait_for(own(), LIMIT))
    asyncio.run(use())  # nobody else has it now


LEAVE = """
import asyncio, sys
import converser

client = converser.StdioMCPClient(sys.argv[1:])
loop = asyncio.new_event_loop()
loop.run_until_complete(client.connect())
loop.close()

async def use():
    print((await client.call_tool("good", {})).text, client.state)
    await client.disconnect()
    print(client.state)

asyncio.run(asyncio.wait_for(use(), 30))
"""


def test_servers_that_closed_loops_left_behind_end_when_the_next_one_starts(
    marked: Marked,
) -> None:
    """As in programs that make a loop for each task, and close it without ending what runs there."""
    kept = converser.StdioMCPClient(marked.command)

    async def visit(client: converser.StdioMCPClient) -> None:
        with anyio.fail_after(LIMIT):
            assert (await client.call_tool("good", {})).text == "good was called"

    for number in range(6):
        loop = asyncio.new_event_loop()
        loop.run_until_complete(
            visit(converser.StdioMCPClient(marked.command) if number % 2 else kept)
        )
        loop.close()
    asyncio.run(visit(kept))
    end = time.monotonic() + LIMIT
    while marked.find_processes():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_what_a_closed_loop_left_behind_hinders_no_other_loop() -> None:
    command = [sys.executable, "-c", LEAVE, *processes.raw_command("sound")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=True)
    assert done.stdout.split() == ["good", "was", "called", "connected", "disconnected"]
