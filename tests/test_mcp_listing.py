# SPDX-License-Identifier: Apache-2.0
"""Every page is read, whatever a server does with its list: one bad tool costs one tool, and is told."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import mcp_types
import pytest
from mcp.server import Server, ServerRequestContext

import converser
from converser.mcp import listings
from tests.places import LIMIT
from tests.servers.awkward import AwkwardServer

pytestmark = pytest.mark.anyio
RawCommand = Callable[[str], "list[str]"]

PAGES = """
import json, sys
from tests.servers import raw
pages = json.loads(sys.argv.pop())
def list_tools(self, cursor):
    number = int(cursor or 0)
    more = {"nextCursor": str(number + 1)} if number + 1 < len(pages) else {}
    return {"tools": pages[number], **more}
raw.Scenario.list_tools = list_tools
raw.main()
"""
OBJECT = {"type": "object"}


async def discover(command: list[str], **configuration: Any) -> converser.Ensemble:
    client = converser.StdioMCPClient(command, {"PYTHONPATH": str(Path(__file__).parent.parent)})
    return await converser.discover_mcp_tools(
        client, "raw", configuration=converser.EnsembleConfiguration(**configuration)
    )


async def list_pages(*pages: list[Any]) -> converser.Ensemble:
    """What an ensemble makes of these pages."""
    with anyio.fail_after(LIMIT):
        ensemble = await discover([sys.executable, "-c", PAGES, json.dumps(pages)])
        await ensemble.disconnect()
    return ensemble


async def test_all_pages_are_asked_for_once(awkward_server: AwkwardServer) -> None:
    client = converser.InProcessMCPClient(awkward_server)
    with anyio.fail_after(LIMIT):
        async with await converser.discover_mcp_tools(client, "a") as ensemble:
            assert len(ensemble.invokers) == 13
    assert awkward_server.pages_served == 3
    assert ensemble.remarks == ()


@pytest.mark.parametrize(
    ("scenario", "told"),
    [
        ("empty-schema", {"'spoiled'": "inputSchema"}),
        (
            "malformed-tools",
            {"number 2": "name", "'schemaless'": "inputSchema", "number 4": "", "number 5": ""},
        ),
    ],
)
async def test_a_bad_tool_costs_one_tool_and_is_told(
    raw_command: RawCommand, scenario: str, told: dict[str, str]
) -> None:
    with anyio.fail_after(LIMIT):
        async with await discover(raw_command(scenario)) as ensemble:
            assert list(ensemble.invokers) == ["also_good", "good"]
            assert (await ensemble.access_invoker("good")()).text == "good was called"
    assert len(ensemble.remarks) == len(told)
    for remark, (who, why) in zip(ensemble.remarks, told.items(), strict=True):
        assert remark.startswith(f"Tool {who} was left out: its")
        assert why in remark


async def test_a_schema_that_cannot_be_compiled_disables_its_tool_with_a_reason(
    raw_command: RawCommand,
) -> None:
    with anyio.fail_after(LIMIT):
        async with await discover(raw_command("broken-schema")) as ensemble:
            assert {"good", "also_good"} <= ensemble.invokers.keys()
            assert "wrong_type" not in ensemble.invokers
            assert (await ensemble.access_invoker("good")()).text == "good was called"
    assert "strnig" in ensemble.disabled["wrong_type"]
    # A pattern that cannot be compiled may cost the tool, or the check: it is told in any case.
    assert "wrong_pattern" in ensemble.disabled or "wrong_pattern" in str(ensemble.remarks)


async def test_a_schema_that_is_nested_too_deeply_costs_one_tool(raw_command: RawCommand) -> None:
    with anyio.fail_after(LIMIT):
        async with await discover(raw_command("deep-schema")) as ensemble:
            assert list(ensemble.invokers) == ["also_good", "good"]
            assert (await ensemble.access_invoker("good")()).text == "good was called"
    assert "levels" in ensemble.disabled["deep"]


async def test_the_same_is_told_after_each_refresh_and_not_more(raw_command: RawCommand) -> None:
    with anyio.fail_after(LIMIT):
        async with await discover(raw_command("malformed-tools")) as ensemble:
            first = ensemble.remarks
            await ensemble.refresh()
            await ensemble.refresh()
            assert ensemble.remarks == first


async def test_a_duplicate_name_is_told_and_the_first_one_is_used(raw_command: RawCommand) -> None:
    with anyio.fail_after(LIMIT):
        async with await discover(raw_command("duplicate-names")) as ensemble:
            assert list(ensemble.invokers) == ["also_good", "good", "twin"]
    assert ensemble.access_invoker("twin").description == "first"
    assert [remark for remark in ensemble.remarks if "'twin' is listed twice" in remark]


async def test_a_cursor_that_stands_still_is_left_and_told(raw_command: RawCommand) -> None:
    with anyio.fail_after(LIMIT):
        async with await discover(raw_command("stuck-cursor")) as ensemble:
            assert list(ensemble.invokers) == ["good"]
    assert [remark for remark in ensemble.remarks if "cursor" in remark]


@pytest.mark.parametrize("scenario", ["endless-pages", "endless-empty-pages"])
async def test_a_list_without_end_is_bounded_and_told(
    raw_command: RawCommand, scenario: str
) -> None:
    with anyio.fail_after(LIMIT):
        async with await discover(raw_command(scenario)) as ensemble:
            assert 1 <= len(ensemble.invokers) <= 1_000
            assert (await ensemble.access_invoker("good")()).text == "good was called"
    assert [remark for remark in ensemble.remarks if "no end" in remark]


async def test_a_list_that_is_too_large_for_memory_is_cut_and_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(listings, "SIZE_MAX", 10_000)
    words = "x" * 6_000
    pages = [[{"name": n, "description": words, "inputSchema": OBJECT}] for n in "abcd"]
    ensemble = await list_pages(*pages)
    assert list(ensemble.invokers) == ["a", "b"]
    [remark] = ensemble.remarks
    assert "cut after 2 tools" in remark
    assert "too large" in remark


async def test_of_thousands_of_bad_tools_some_are_told_and_the_others_counted() -> None:
    good = {"name": "a", "inputSchema": OBJECT}
    ensemble = await list_pages([None] * 3_000, [good], [good] * 500)
    assert list(ensemble.invokers) == ["a"]
    assert len(ensemble.remarks) == 101
    assert "3400 more" in ensemble.remarks[-1]


async def test_noise_between_the_messages_does_no_harm(raw_command: RawCommand) -> None:
    with anyio.fail_after(LIMIT):
        async with await discover(raw_command("noise")) as ensemble:
            assert list(ensemble.invokers) == ["also_good", "good"]


async def test_empty_pages_in_between_do_not_end_the_list() -> None:
    a, b = {"name": "a", "inputSchema": OBJECT}, {"name": "b", "inputSchema": OBJECT}
    ensemble = await list_pages([a], [], [b])
    assert list(ensemble.invokers) == ["a", "b"]
    assert ensemble.remarks == ()


async def test_a_bad_tool_on_a_later_page_costs_only_itself() -> None:
    ensemble = await list_pages(
        [{"name": "a", "inputSchema": OBJECT}],
        [{"name": 5, "inputSchema": OBJECT}, {"name": "b", "inputSchema": OBJECT}],
    )
    assert list(ensemble.invokers) == ["a", "b"]
    assert len(ensemble.remarks) == 1


async def test_a_server_without_tools_is_no_failure() -> None:
    ensemble = await list_pages([])
    assert dict(ensemble.invokers) == {}
    assert ensemble.remarks == ()


async def test_a_server_that_does_not_know_lists_has_no_tools() -> None:
    code = PAGES.replace('"tools": pages[number], **more', "**{}")
    code = code.replace("raw.main()", "raw.Scenario.list_tools = lambda *_: None\nraw.main()")
    with anyio.fail_after(LIMIT):
        async with await discover([sys.executable, "-c", code, "[]"]) as ensemble:
            assert dict(ensemble.invokers) == {}


async def test_what_a_model_cannot_use_is_left_out_and_told() -> None:
    ensemble = await list_pages(
        [
            {"name": "a", "inputSchema": OBJECT},
            {"name": "task", "inputSchema": OBJECT, "execution": {"taskSupport": "required"}},
            {"name": "view", "inputSchema": OBJECT, "_meta": {"ui": {"visibility": ["app"]}}},
            {"name": "b", "inputSchema": OBJECT, "_meta": {"ui": {"visibility": ["app", "model"]}}},
        ]
    )
    assert list(ensemble.invokers) == ["a", "b"]
    assert any("'task'" in remark for remark in ensemble.remarks)
    assert any("'view'" in remark for remark in ensemble.remarks)


async def test_nothing_that_a_definition_says_is_lost() -> None:
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/a"}},
        "$defs": {"a": {"type": "integer", "x-unit": "mm"}},
    }
    definition = {
        "name": "a",
        "title": "Title",
        "description": "Words",
        "inputSchema": schema,
        "outputSchema": {"type": "object", "properties": {}},
        "annotations": {
            "readOnlyHint": False,
            "destructiveHint": True,
            "idempotentHint": False,
            "openWorldHint": True,
        },
        "_meta": {"vendor/key": [1, 2]},
    }
    ensemble = await list_pages([definition])
    invoker = ensemble.access_invoker("a")
    assert invoker.arguments_schema == schema
    assert invoker.output_schema == definition["outputSchema"]
    assert invoker.annotations == converser.Annotations(
        title="Title", read_only=False, destructive=True, idempotent=False, open_world=True
    )
    assert invoker.tool.extras["meta"] == {"vendor/key": [1, 2]}


async def test_schemas_cannot_be_changed_by_those_who_read_them() -> None:
    ensemble = await list_pages([{"name": "a", "inputSchema": {"type": "object", "x": {"y": 1}}}])
    schema: Any = ensemble.access_invoker("a").arguments_schema
    with pytest.raises(TypeError):
        schema["type"] = "array"
    with pytest.raises(TypeError):
        schema["x"]["y"] = 2


async def test_hostile_names_of_tools_are_called_by_their_own_names() -> None:
    names = ["good", "good ", "gооd", "a/b.c", "x" * 200, "emoji 🌦"]
    ensemble = await list_pages([{"name": name, "inputSchema": OBJECT} for name in names])
    assert {invoker.tool.name for invoker in ensemble.invokers.values()} == set(names)
    with anyio.fail_after(LIMIT):
        for invoker in ensemble.invokers.values():
            assert (await invoker()).text == f"{invoker.tool.name} was called"
        await ensemble.disconnect()


async def test_selection_and_names_apply_to_what_is_listed(raw_command: RawCommand) -> None:
    with anyio.fail_after(LIMIT):
        async with await discover(
            raw_command("sound"),
            selection=converser.Selection(deny=("also_*",)),
            naming=converser.Naming(style="mcp"),
        ) as ensemble:
            assert list(ensemble.invokers) == ["mcp__raw__good"]
            assert (await ensemble.invokers["mcp__raw__good"]()).text == "good was called"


async def test_a_server_in_this_process_that_cannot_list_is_a_failure_of_ours() -> None:
    async def list_tools(context: ServerRequestContext[Any], params: Any) -> Any:
        # The SDK's own server refuses to send this, so there is nothing to salvage.
        return mcp_types.ListToolsResult(tools=[mcp_types.Tool(name="bad", input_schema={})])

    client = converser.InProcessMCPClient(Server("s", on_list_tools=list_tools))
    with anyio.fail_after(LIMIT), pytest.raises(converser.MCPProtocolFailure) as caught:
        await converser.discover_mcp_tools(client, "local")
    assert (caught.value.server, caught.value.transport) == ("local", "in-process")
    assert client.state is converser.ConnectionState.DISCONNECTED
