# SPDX-License-Identifier: Apache-2.0
"""An ensemble shows its tools in one order, owns its connection, and never shows half a set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import anyio
import frigid.exceptions
import pytest

import converser
from tests.places import LIMIT
from tests.servers.awkward import TOOL_NAMES, AwkwardServer
from tests.test_naming import create_ensemble, do_nothing

pytestmark = pytest.mark.anyio


NO_CONTEXT = converser.Context()


class Shelf:
    """The smallest thing that can stand behind an ensemble."""

    def __init__(self, *tools: converser.Tool) -> None:
        self.tools = tools
        self.is_connected = False
        self.listings = 0
        self.breakdown: Exception | None = None
        self.contexts: list[converser.Context] = []

    @property
    def remarks(self) -> Sequence[str]:
        return ("The shelf is dusty.",)

    @property
    def interruption(self) -> None:
        return None

    async def connect(self) -> None:
        self.is_connected = True

    async def disconnect(self) -> None:
        self.is_connected = False

    async def list_tools(self) -> Sequence[converser.Tool]:
        self.listings += 1
        if self.breakdown:
            raise self.breakdown
        return self.tools

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        context: converser.Context = NO_CONTEXT,
    ) -> converser.InvocationResult:
        self.contexts.append(context)
        return converser.InvocationResult(structured={"called": name})

    def watch(self, *, on_tools: Any, on_state: Any) -> None:
        self.listeners = (on_tools, on_state)


def tool(name: str, **schema: Any) -> converser.Tool:
    return converser.Tool(name=name, arguments_schema={"type": "object", **schema})


async def test_invokers_come_in_a_deterministic_order_and_cannot_be_changed() -> None:
    ensemble = create_ensemble(["b", "c", "a"])
    assert list(ensemble.invokers) == ["a", "b", "c"]
    with pytest.raises(frigid.exceptions.EntryImmutability):
        ensemble.invokers["d"] = ensemble.invokers["a"]  # type: ignore[index]
    assert list(ensemble.invokers) == ["a", "b", "c"]


async def test_an_invoker_is_found_by_its_name_on_the_wire_and_by_its_own() -> None:
    ensemble = create_ensemble(["get forecast"], converser.Naming(prefix="w"))
    assert ensemble.access_invoker("w_get_forecast") is ensemble.access_invoker("get forecast")


async def test_an_unknown_name_is_an_error_that_names_the_nearest() -> None:
    ensemble = create_ensemble(["get_forecast", "get_history"])
    with pytest.raises(converser.InvokerAbsence, match="no tool 'get_forcast'") as caught:
        ensemble.access_invoker("get_forcast")
    assert "'get_forecast'" in caught.value.remedy


async def test_where_nothing_is_near_the_tools_are_named() -> None:
    with pytest.raises(converser.InvokerAbsence, match="There are: a, b"):
        create_ensemble(["b", "a"]).access_invoker("xyz")


async def test_without_tools_the_error_says_what_to_do() -> None:
    with pytest.raises(converser.InvokerAbsence, match="connect it first"):
        converser.Ensemble("sky", connection=Shelf(tool("a"))).access_invoker("a")


LIST = {"type": "array", "items": [{"type": "integer"}]}
SLIPS = [
    ({"type": "object", "properties": {"n": {"type": "integer"}}, "required": None}, "required"),
    ({"type": "object", "properties": None}, "properties"),
    ({"type": "object", "properties": [], "required": []}, "properties"),
    ({"type": "object", "properties": {"n": {"type": "integer", "title": None}}}, "n.title"),
    ({"type": "object", "properties": {"n": {"type": "integer", "required": True}}}, "n.required"),
    ({"type": "object", "properties": {"n": {"type": "integer"}, "l": LIST}}, "l.items"),
    (
        {
            "type": "object",
            "properties": {"n": {"type": "integer", "minimum": 0, "exclusiveMinimum": True}},
        },
        "exclusiveMinimum",
    ),
]


@pytest.mark.parametrize(("schema", "place"), SLIPS)
async def test_a_schema_with_a_slip_is_read_as_what_it_means_and_told(
    schema: dict[str, Any], place: str
) -> None:
    shelf = Shelf(converser.Tool(name="t", arguments_schema=schema))
    async with converser.Ensemble("shelf", connection=shelf) as ensemble:
        invoker = ensemble.access_invoker("t")
        assert [tool.arguments_schema for tool in shelf.tools] == [schema]
        [remark] = [each for each in ensemble.remarks if each.startswith("Tool")]
        assert remark.startswith("Tool 't': its schema is read as what it surely means")
        assert place in remark
        assert (await invoker({"n": 1})).structured == {"called": "t"}
        if invoker.arguments_schema.get("properties"):
            with pytest.raises(converser.ToolExecutionFailure, match="expected integer"):
                await invoker({"n": "many"})


async def test_a_tool_with_an_invalid_schema_is_disabled_and_no_other() -> None:
    shelf = Shelf(tool("good"), tool("bad", properties={"a": {"type": "strnig"}}), tool("fine"))
    async with converser.Ensemble("shelf", connection=shelf) as ensemble:
        assert list(ensemble.invokers) == ["fine", "good"]
        assert list(ensemble.disabled) == ["bad"]
        assert "strnig" in ensemble.disabled["bad"]
        with pytest.raises(converser.InvokerAbsence, match=r"'bad'.*disabled.*strnig"):
            ensemble.access_invoker("bad")
        assert (await ensemble.invokers["good"]()).structured == {"called": "good"}


async def test_it_connects_lists_and_disconnects_as_a_context() -> None:
    shelf = Shelf(tool("a"))
    ensemble = converser.Ensemble("shelf", connection=shelf)
    async with ensemble as entered:
        assert entered is ensemble
        assert shelf.is_connected
        assert list(ensemble.invokers) == ["a"]
    assert not shelf.is_connected
    assert list(ensemble.invokers) == ["a"]


async def test_what_is_listed_already_is_not_listed_again_on_entry() -> None:
    shelf = Shelf(tool("a"))
    ensemble = converser.Ensemble("shelf", connection=shelf)
    await ensemble.connect()
    async with ensemble:
        assert shelf.listings == 1


async def test_a_refresh_swaps_all_tools_at_once() -> None:
    shelf = Shelf(tool("a"), tool("b"))
    async with converser.Ensemble("shelf", connection=shelf) as ensemble:
        before = ensemble.invokers
        shelf.tools = (tool("b"), tool("c"))
        await ensemble.refresh()
        assert list(before) == ["a", "b"]
        assert list(ensemble.invokers) == ["b", "c"]


async def test_a_refresh_that_fails_leaves_the_tools_as_they_were() -> None:
    shelf = Shelf(tool("a"))
    async with converser.Ensemble("shelf", connection=shelf) as ensemble:
        shelf.breakdown = OSError("gone")
        with pytest.raises(OSError, match="gone"):
            await ensemble.refresh()
        assert list(ensemble.invokers) == ["a"]


async def test_an_entry_that_fails_leaves_no_connection_behind() -> None:
    shelf = Shelf(tool("a"))
    shelf.breakdown = OSError("gone")
    ensemble = converser.Ensemble("shelf", connection=shelf)
    with pytest.raises(OSError, match="gone"):
        await ensemble.__aenter__()
    assert not shelf.is_connected


async def test_discovery_that_fails_leaves_no_connection_behind(
    awkward_server: AwkwardServer,
) -> None:
    client = converser.InProcessMCPClient(awkward_server)
    configuration = converser.EnsembleConfiguration(
        naming=converser.Naming(renames={"echo": "add"})
    )
    with anyio.fail_after(LIMIT), pytest.raises(converser.NameConflict):
        await converser.discover_mcp_tools(client, "a", configuration=configuration)
    assert client.state is converser.ConnectionState.DISCONNECTED


async def test_without_a_connection_its_life_is_nothing_to_do() -> None:
    ensemble = create_ensemble(["a"])
    async with ensemble:
        await ensemble.refresh()
    await ensemble.disconnect()
    assert list(ensemble.invokers) == ["a"]
    assert ensemble.remarks == ()


async def test_remarks_tell_of_the_listing_and_of_the_tools() -> None:
    selection = converser.Selection(deny=("zzz",))
    configuration = converser.EnsembleConfiguration(selection=selection)
    shelf = Shelf(tool("a"))
    async with converser.Ensemble("s", connection=shelf, configuration=configuration) as ensemble:
        assert ensemble.remarks[0] == "The shelf is dusty."
        assert "'zzz'" in ensemble.remarks[1]


@pytest.mark.parametrize(
    ("asked", "expected"), [(None, 60.0), (2.0, 2.0)], ids=["standard", "of the call"]
)
async def test_the_timeout_of_a_call_wins_over_the_standard(
    asked: float | None, expected: float
) -> None:
    shelf = Shelf(tool("a"))
    async with converser.Ensemble("s", connection=shelf) as ensemble:
        await ensemble.invokers["a"](context=converser.Context(timeout=asked, metadata={"x": 1}))
    assert shelf.contexts[0].timeout == expected
    assert shelf.contexts[0].metadata == {"x": 1}


async def test_a_tool_can_have_a_timeout_of_its_own() -> None:
    configuration = converser.EnsembleConfiguration(timeout=None, tool_timeouts={"a": 7})
    shelf = Shelf(tool("a"), tool("b"))
    async with converser.Ensemble("s", connection=shelf, configuration=configuration) as ensemble:
        await ensemble.invokers["a"]()
        await ensemble.invokers["b"]()
    assert [context.timeout for context in shelf.contexts] == [7, None]


async def test_its_representation_names_it_and_its_tools() -> None:
    assert repr(create_ensemble(["a"])) == "Ensemble(name='sky', invokers=['a'])"


async def test_an_mcp_tool_becomes_an_invoker_without_an_ensemble(
    awkward_server: AwkwardServer,
) -> None:
    client = converser.InProcessMCPClient(awkward_server)
    with anyio.fail_after(LIMIT):
        tools = {each.name: each for each in await client.list_tools()}
        invoker = converser.create_invoker_from_mcp_tool(tools["add"], client)
        result = await invoker({"a": "2", "b": 3})
        await client.disconnect()
    assert invoker.ensemble is None
    assert result.structured == {"sum": 5}


async def test_several_ensembles_are_gathered_by_name(awkward_server: AwkwardServer) -> None:
    configuration = converser.EnsembleConfiguration(naming=converser.Naming(style="mcp"))
    local = converser.Ensemble("local", tools=[(tool("echo"), do_nothing)])
    client = converser.InProcessMCPClient(awkward_server)
    with anyio.fail_after(LIMIT):
        async with await converser.discover_mcp_tools(
            client, "awk", configuration=configuration
        ) as remote:
            gathered = converser.gather_invokers([local, remote])
    assert set(gathered) == {"echo", *(f"mcp__awk__{name}" for name in TOOL_NAMES)}


def test_a_tool_with_an_unusable_schema_cannot_become_an_invoker() -> None:
    broken = converser.Tool(name="broken", arguments_schema={"type": "no such type"})
    with pytest.raises(converser.MCPSchemaFailure) as caught:
        converser.create_invoker_from_mcp_tool(broken, Shelf(broken))
    assert caught.value.tool == "broken"
    assert isinstance(caught.value.cause, converser.SchemaInvalidity)
