# SPDX-License-Identifier: Apache-2.0
"""Tools that change in the middle of a model's turn: it sees one consistent set for each turn."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from types import SimpleNamespace
from typing import Any, cast

import anyio
import pytest
from mcp.client.session import ClientSession

import converser
from converser.mcp import changes
from converser.turns import Call, TurnCompleted, TurnItem, TurnRequest
from tests.rosters import Ears, call
from tests.servers import processes

pytestmark = pytest.mark.anyio

Turn = Callable[[TurnRequest], Awaitable[tuple[Call, ...]]]


class Thoughtful:
    """A provider whose turns take as long as they want; it notes what it was given, and what that became."""

    name = "thoughtful"

    def __init__(self, *turns: Turn) -> None:
        self._turns = iter(turns)
        self.seen: list[tuple[list[str], list[str]]] = []

    async def stream_turn(self, request: TurnRequest) -> AsyncGenerator[TurnItem, None]:
        before = list(request.invokers)
        calls = await next(self._turns)(request)
        self.seen.append((before, list(request.invokers)))
        yield TurnCompleted(canister=converser.assistant("…"), calls=calls)

    async def close(self) -> None:
        pass


class Watch:
    """Waits for the tools of an ensemble to change."""

    def __init__(self, ensemble: converser.Ensemble) -> None:
        self._send, self._receive = anyio.create_memory_object_stream[converser.ToolsChanged](10)
        ensemble.observe(self._hear)

    def _hear(self, event: Any) -> None:
        if isinstance(event, converser.ToolsChanged):
            self._send.send_nowait(event)

    async def wait(self) -> converser.ToolsChanged:
        return await self._receive.receive()

    def close(self) -> None:
        self._send.close()
        self._receive.close()


def _get_results(reply: converser.Reply) -> list[converser.ResultCanister]:
    return [each for each in reply if isinstance(each, converser.ResultCanister)]


async def _be_done(_: TurnRequest) -> tuple[Call, ...]:
    return ()


async def test_a_turn_of_the_older_era_keeps_its_tools() -> None:
    """What the model was shown is what its calls are checked by, though the server has other tools by now."""
    client = converser.StdioMCPClient(processes.raw_command("changing"))
    with anyio.fail_after(60):
        async with await converser.discover_mcp_tools(client, "changing") as ensemble:
            watch = Watch(ensemble)

            async def change_in_mid_turn(_: TurnRequest) -> tuple[Call, ...]:
                await ensemble.access_invoker("flip")()
                await watch.wait()
                assert list(ensemble.invokers) == ["flip", "new", "work"]
                return tuple(
                    Call(name=name, arguments=arguments, identifier=f"{name}{number}")
                    for number, (name, arguments) in enumerate(
                        [("work", {"a": 1}), ("work", {"b": 2}), ("old", {}), ("new", {})]
                    )
                )

            async def call_what_is_new(_: TurnRequest) -> tuple[Call, ...]:
                return (
                    Call(name="work", arguments={"b": 2}),
                    Call(name="new"),
                    Call(name="old"),
                )

            provider = Thoughtful(change_in_mid_turn, call_what_is_new, _be_done)
            model = converser.Model(provider)
            reply = await model.converse([converser.user("go")], ensembles=[ensemble])
            assert client.protocol_version == "2025-06-18"
            watch.close()
    old, new = ["flip", "old", "work"], ["flip", "new", "work"]
    assert provider.seen == [(old, old), (new, new), (new, new)]
    outcomes = [result.outcome.value for result in _get_results(reply)]
    assert outcomes == ["success", "invalid", "success", "invalid", "success", "success", "invalid"]


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_a_turn_of_the_new_era_keeps_its_tools(transport: str, awkward_http: Any) -> None:
    client: converser.MCPClient
    if transport == "http":
        client = converser.HttpMCPClient(awkward_http.url)
    else:
        client = converser.StdioMCPClient(processes.awkward_command())
    with anyio.fail_after(60):
        async with await converser.discover_mcp_tools(client, "awkward") as ensemble:
            watch = Watch(ensemble)
            first = list(ensemble.invokers)

            async def change_in_mid_turn(_: TurnRequest) -> tuple[Call, ...]:
                for _number in range(3):
                    await ensemble.access_invoker("grow")()
                while "grown_3" not in ensemble.invokers:
                    await watch.wait()
                return (Call(name="grown_1"), Call(name="echo", arguments={"text": "hi"}))

            async def call_what_is_new(_: TurnRequest) -> tuple[Call, ...]:
                return (Call(name="grown_1"),)

            provider = Thoughtful(change_in_mid_turn, call_what_is_new, _be_done)
            model = converser.Model(provider)
            reply = await model.converse([converser.user("go")], ensembles=[ensemble])
            assert client.protocol_version == "2026-07-28"
            watch.close()
    later = sorted([*first, "grown_1", "grown_2", "grown_3"])
    assert provider.seen == [(first, first), (later, later), (later, later)]
    results = [(result.outcome.value, result.text) for result in _get_results(reply)]
    assert results[1:] == [("success", "hi"), ("success", "grown_1 at your service.")]
    assert results[0][0] == "invalid"


async def test_calls_of_one_turn_run_while_its_tools_change() -> None:
    """A tool that changes the tools, beside calls of tools that it takes away."""
    client = converser.StdioMCPClient(processes.raw_command("changing"))
    steps: list[tuple[str, dict[str, Any]]] = [("flip", {}), ("old", {}), ("work", {"a": 1})]
    turn = tuple(
        Call(name=name, arguments=arguments, identifier=str(number))
        for number, (name, arguments) in enumerate(steps * 20)
    )

    async def call_everything(_: TurnRequest) -> tuple[Call, ...]:
        return turn

    provider = Thoughtful(*[call_everything] * 5, _be_done)
    with anyio.fail_after(60):
        async with await converser.discover_mcp_tools(client, "changing") as ensemble:
            reply = await converser.Model(provider).converse(
                [converser.user("go")], ensembles=[ensemble]
            )
    assert all(before == after for before, after in provider.seen)
    allowed = (["flip", "old", "work"], ["flip", "new", "work"])
    assert all(before in allowed for before, _ in provider.seen)
    results = _get_results(reply)
    assert len(results) == len(turn) * 5
    for number, (before, _) in enumerate(provider.seen[:5]):
        part = results[number * len(turn) : (number + 1) * len(turn)]
        outcomes = {result.outcome.value for result in part}
        assert outcomes == ({"success"} if "old" in before else {"success", "invalid"})


@pytest.mark.parametrize("scenario", ["loud", "sluggish"])
async def test_a_change_is_not_missed_in_a_flood_nor_where_the_first_listing_fails(
    scenario: str,
) -> None:
    server = converser.MCPServer.stdio("s", processes.raw_command(scenario), tool_prefix="")
    ears = Ears()
    with anyio.fail_after(30):
        async with converser.Roster([server], observer=ears) as roster:
            await call(roster, "s", "flip")
            await ears.wait_until(lambda: ears.changes("s"))
            assert list(roster.access_ensemble("s").invokers) == ["flip", "new", "work"]


async def test_a_subscription_that_ends_is_renewed_and_nothing_is_missed() -> None:
    client = converser.StdioMCPClient(processes.raw_command("fickle"))
    with anyio.fail_after(30):
        async with await converser.discover_mcp_tools(client, "fickle") as ensemble:
            watch = Watch(ensemble)
            change = await watch.wait()
            assert client.protocol_version == "2026-07-28"
            assert list(ensemble.invokers) == ["flip", "new", "work"]
            watch.close()
    assert (change.added, change.removed, change.changed) == (("new",), ("old",), ("work",))


async def test_a_server_that_tells_of_a_change_whenever_it_lists_is_not_listed_without_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(changes, "_QUIET", 0.0)
    signal, listed = changes.ChangeSignal(), 0

    async def list_again() -> None:
        nonlocal listed
        listed += 1
        signal.hint()

    signal.hint()
    old = cast("ClientSession", SimpleNamespace(protocol_version="2025-11-25"))
    with anyio.move_on_after(0.5):
        await signal.follow(old, list_again)
    assert listed == 10


@pytest.mark.parametrize("is_first", [True, False])
async def test_a_new_tool_takes_no_name_from_another_and_ends_no_conversation(
    is_first: bool,
) -> None:
    """`new` is a tool of this program, until the server has one of that name, too."""

    def new() -> str:
        return "mine"

    mine = converser.create_local_ensemble("mine", [new])
    client = converser.StdioMCPClient(processes.raw_command("changing"))
    with anyio.fail_after(60):
        async with await converser.discover_mcp_tools(client, "changing") as ensemble:
            watch = Watch(ensemble)

            async def change(_: TurnRequest) -> tuple[Call, ...]:
                await ensemble.access_invoker("flip")()
                await watch.wait()
                return (Call(name="flip"),)

            async def call_both(_: TurnRequest) -> tuple[Call, ...]:
                await watch.wait()
                return (Call(name="new"), Call(name="work", arguments={"b": 2}))

            provider = Thoughtful(change, call_both, _be_done)
            ensembles = [mine, ensemble] if is_first else [ensemble, mine]
            reply = await converser.Model(provider).converse(
                [converser.user("go")], ensembles=ensembles
            )
            watch.close()
    assert [result.text for result in _get_results(reply)][1:] == ["mine", 'work {"b": 2}']
