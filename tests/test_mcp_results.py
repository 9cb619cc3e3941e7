# SPDX-License-Identifier: Apache-2.0
"""What a tool gives arrives without loss and without doubles, whatever the server makes of the protocol."""

from __future__ import annotations

import base64
import contextlib
import json
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given, strategies as st
from mcp.server.mcpserver import MCPServer

import converser
from tests.places import LIMIT, PLACES, open_place
from tests.servers import awkward

pytestmark = pytest.mark.anyio

# A server that gives whatever result it is told to give.
PARROT = """
from tests.servers import raw
raw.Scenario.call_tool = lambda self, name, arguments: arguments["result"]
raw.main()
"""


@pytest.fixture(scope="module", params=PLACES)
async def ensemble(request: pytest.FixtureRequest) -> AsyncGenerator[converser.Ensemble]:
    with open_place(request.param) as place:
        with anyio.fail_after(LIMIT):
            ensemble = await converser.discover_mcp_tools(place.create_client(), "awkward")
        yield ensemble
        with anyio.fail_after(LIMIT):
            await ensemble.disconnect()


@pytest.fixture(scope="module")
async def parrot() -> AsyncGenerator[converser.MCPClient]:
    environment = {"PYTHONPATH": str(Path(__file__).parent.parent)}
    client = converser.StdioMCPClient([sys.executable, "-c", PARROT], environment)
    yield client
    with anyio.fail_after(LIMIT):
        await client.disconnect()


async def give(parrot: converser.MCPClient, **result: Any) -> converser.InvocationResult:
    with anyio.fail_after(LIMIT):
        return await parrot.call_tool("good", {"result": result})


async def call(ensemble: converser.Ensemble, name: str) -> converser.InvocationResult:
    with anyio.fail_after(LIMIT):
        return await ensemble.access_invoker(name)()


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **more}


async def test_every_kind_of_content_arrives_without_loss(ensemble: converser.Ensemble) -> None:
    result = await call(ensemble, "everything")
    assert result.contents == (
        converser.TextualContent(
            text="All of it:", annotations={"audience": ["user"], "priority": 0.5}
        ),
        converser.ImageContent(data=awkward.PNG, mimetype="image/png"),
        converser.AudioContent(data=awkward.WAV, mimetype="audio/wav"),
        converser.BlobContent(
            data=b"# Read me\n",
            mimetype="text/markdown",
            uri="memo://readme",
            name="readme",
            encoding="utf-8",
        ),
        converser.BlobContent(
            data=awkward.PDF, mimetype="application/pdf", uri="memo://report.pdf", name="report.pdf"
        ),
        converser.LinkContent(
            uri="memo://large.csv",
            name="large.csv",
            title="A large table",
            description="Too large to embed.",
            mimetype="text/csv",
            size=1_000_000,
        ),
    )
    assert isinstance(result.contents[3], converser.BlobContent)
    assert result.contents[3].text == "# Read me\n"
    assert result.structured is None
    assert result.remarks == ()


async def test_structured_data_and_its_text_twin_come_once(ensemble: converser.Ensemble) -> None:
    result = await call(ensemble, "dual")
    assert len(result.contents) == 1
    assert json.loads(result.text) == result.structured == awkward.STRUCTURED
    assert result.remarks == ()


async def test_a_result_that_is_only_structured_is_not_empty(ensemble: converser.Ensemble) -> None:
    result = await call(ensemble, "structured_only")
    (content,) = result.contents
    assert isinstance(content, converser.TextualContent)
    assert content.mimetype == "application/json"
    assert json.loads(content.text) == result.structured == awkward.STRUCTURED


async def test_a_result_that_breaks_its_promise_is_kept_and_told(
    ensemble: converser.Ensemble,
) -> None:
    result = await call(ensemble, "bad_output")
    assert result.structured == {"city": "Oslo", "celsius": "mild"}
    assert json.loads(result.text) == result.structured
    (remark,) = result.remarks
    assert "output schema" in remark
    assert "celsius" in remark
    assert "number" in remark


async def test_structured_data_cannot_be_changed(ensemble: converser.Ensemble) -> None:
    structured: Any = (await call(ensemble, "dual")).structured
    with pytest.raises(TypeError):
        structured["city"] = "Bergen"


async def test_a_block_of_an_unknown_kind_is_kept_as_it_came(parrot: converser.MCPClient) -> None:
    hologram = {"type": "hologram", "data": "AAEC", "depth": {"z": [3]}}
    result = await give(parrot, content=[text("a"), hologram, text("b")])
    first, middle, last = result.contents
    assert (first, last) == (
        converser.TextualContent(text="a"),
        converser.TextualContent(text="b"),
    )
    assert isinstance(middle, converser.UnknownContent)
    assert (middle.kind, middle.data) == ("hologram", hologram)
    assert middle.reason


async def test_a_known_block_that_is_broken_is_kept_as_it_came(parrot: converser.MCPClient) -> None:
    broken = {"type": "image", "data": "no base64!", "mimeType": "image/png"}
    halved = {"type": "image", "mimeType": "image/png"}
    result = await give(parrot, content=[broken, halved, None, "text", 5])
    kept: list[Any] = [part.data for part in result.contents if hasattr(part, "kind")]
    assert kept == [broken, halved, {"value": None}, {"value": "text"}, {"value": 5}]
    assert all(part.reason for part in result.contents if hasattr(part, "reason"))


async def test_a_result_without_content_is_empty_and_no_failure(
    parrot: converser.MCPClient,
) -> None:
    assert await give(parrot) == converser.InvocationResult()


async def test_a_result_without_content_but_with_structured_data_is_not_empty(
    parrot: converser.MCPClient,
) -> None:
    result = await give(parrot, structuredContent={"answer": 42})
    assert result.structured == {"answer": 42}
    assert json.loads(result.text) == {"answer": 42}


@pytest.mark.parametrize("structured", [[1, 2], "text", 5, True, 0, ""])
async def test_structured_data_that_is_no_object_is_kept_in_the_older_era(
    parrot: converser.MCPClient, structured: Any
) -> None:
    result = await give(parrot, content=[], structuredContent=structured)
    assert result.structured == structured
    assert json.loads(result.text) == structured


async def test_structured_data_that_is_null_says_nothing_beside_content(
    parrot: converser.MCPClient,
) -> None:
    result = await give(parrot, content=[text("hello")], structuredContent=None)
    assert result.contents == (converser.TextualContent(text="hello"),)
    assert result.structured is None


@pytest.mark.parametrize(
    ("content", "structured"),
    [
        ([text('{"a": 1, "b": [2]}')], {"b": [2], "a": 1}),
        ([text("Here it is:"), text('{ "a" : 1 }')], {"a": 1}),
        ([text("[1, 2]")], {"result": [1, 2]}),
        ([text("a"), text("b")], {"result": ["a", "b"]}),
        ([text("plain words")], {"result": "plain words"}),
    ],
)
async def test_twins_are_known_in_all_their_disguises(
    parrot: converser.MCPClient, content: list[Any], structured: Any
) -> None:
    result = await give(parrot, content=content, structuredContent=structured)
    assert len(result.contents) == len(content)
    assert result.structured == structured


async def test_structured_data_that_the_text_does_not_tell_is_added(
    parrot: converser.MCPClient,
) -> None:
    result = await give(
        parrot, content=[text("It rains.")], structuredContent={"mm": 3, "wind": "W"}
    )
    assert result.contents[0] == converser.TextualContent(text="It rains.")
    assert json.loads(result.text.splitlines()[1]) == {"mm": 3, "wind": "W"}


async def test_marks_and_metadata_of_blocks_are_kept(parrot: converser.MCPClient) -> None:
    resource = {"uri": "memo://x/", "text": "t", "_meta": {"inner": 1}}
    result = await give(
        parrot,
        content=[
            text("a", annotations={"audience": ["assistant"]}, _meta={"k": {"v": 1}}),
            {"type": "resource", "resource": resource, "_meta": {"outer": 2}},
            {
                "type": "resource_link",
                "uri": "memo://l",
                "name": "l",
                "icons": [{"src": "memo://i.png", "mimeType": "image/png"}],
            },
        ],
    )
    first, second, third = result.contents
    assert first.annotations == {"audience": ["assistant"]}
    assert first.extras == {"meta": {"k": {"v": 1}}}
    assert second.extras == {"meta": {"outer": 2}, "resource_meta": {"inner": 1}}
    assert isinstance(second, converser.BlobContent)
    assert (second.mimetype, second.name, second.text) == ("text/plain", "x", "t")
    assert third.extras == {"icons": [{"src": "memo://i.png", "mimeType": "image/png"}]}


async def test_an_error_keeps_its_contents_of_all_kinds(parrot: converser.MCPClient) -> None:
    picture = {"type": "image", "data": "AAEC", "mimeType": "image/png"}
    with anyio.fail_after(LIMIT), pytest.raises(converser.MCPExecutionFailure) as caught:
        await give(parrot, isError=True, content=[text("No."), picture], structuredContent={"e": 1})
    assert caught.value.contents[:2] == (
        converser.TextualContent(text="No."),
        converser.ImageContent(data=b"\0\1\2", mimetype="image/png"),
    )
    assert caught.value.structured == {"e": 1}
    assert "No." in str(caught.value)


async def test_an_error_without_words_still_says_something(parrot: converser.MCPClient) -> None:
    with anyio.fail_after(LIMIT), pytest.raises(converser.MCPExecutionFailure) as caught:
        await give(parrot, isError=True, content=[])
    assert "no reason" in str(caught.value)


async def test_an_error_of_great_length_is_cut_in_the_message_and_whole_in_the_contents(
    parrot: converser.MCPClient,
) -> None:
    with anyio.fail_after(LIMIT), pytest.raises(converser.MCPExecutionFailure) as caught:
        await give(parrot, isError=True, content=[text("x" * 100_000)])
    assert len(str(caught.value)) < 5_000
    assert caught.value.contents == (converser.TextualContent(text="x" * 100_000),)


@pytest.mark.parametrize("result", [{"content": None}, {"content": "text"}, {"content": {}}])
async def test_what_cannot_be_read_at_all_is_told_as_a_broken_protocol_and_an_unknown_outcome(
    parrot: converser.MCPClient, result: dict[str, Any]
) -> None:
    with anyio.fail_after(LIMIT), pytest.raises(converser.MCPProtocolFailure) as caught:
        await parrot.call_tool("good", {"result": result})
    assert caught.value.outcome is converser.Outcome.UNKNOWN
    assert (caught.value.tool, caught.value.cause is not None) == ("good", True)
    assert "took effect" in caught.value.remedy


async def test_a_large_result_arrives_whole(parrot: converser.MCPClient) -> None:
    data = bytes(range(256)) * 8_000
    picture = {"type": "image", "data": base64.b64encode(data).decode(), "mimeType": "image/png"}
    result = await give(parrot, content=[picture])
    assert result.contents == (converser.ImageContent(data=data, mimetype="image/png"),)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)
BLOCKS = st.lists(
    st.builds(text, st.text(max_size=20))
    | st.builds(
        lambda data: {
            "type": "audio",
            "data": base64.b64encode(data).decode(),
            "mimeType": "audio/wav",
        },
        st.binary(max_size=20),
    )
    | st.dictionaries(st.sampled_from(["type", "text", "data", "uri", "name"]), JSON)
    | JSON,
    max_size=5,
)


@given(blocks=BLOCKS)
async def test_no_block_is_ever_lost_and_their_order_stays(
    parrot: converser.MCPClient, blocks: list[Any]
) -> None:
    result = await give(parrot, content=blocks)
    assert len(result.contents) == len(blocks)
    for block, content in zip(blocks, result.contents, strict=True):
        if isinstance(content, converser.UnknownContent):
            assert content.data == (block if isinstance(block, dict) else {"value": block})
        elif isinstance(content, converser.TextualContent):
            assert content.text == block["text"]
        elif isinstance(content, converser.AudioContent):
            assert base64.b64encode(content.data).decode() == block["data"]
        else:
            assert content.uri == block["uri"]  # type: ignore[union-attr]


@given(structured=JSON)
async def test_structured_data_is_always_kept_and_always_shown(
    parrot: converser.MCPClient, structured: Any
) -> None:
    result = await give(parrot, content=[], structuredContent=structured)
    assert result.structured == structured
    if structured is not None:
        assert json.loads(result.text) == structured


@given(
    result=st.dictionaries(
        st.sampled_from(["content", "structuredContent", "isError", "_meta", "resultType", "x"]),
        BLOCKS | JSON,
    )
)
async def test_whatever_a_server_answers_is_a_result_or_a_failure_of_ours(
    parrot: converser.MCPClient, result: dict[str, Any]
) -> None:
    with anyio.fail_after(LIMIT), contextlib.suppress(converser.MCPFailure):
        await parrot.call_tool("good", {"result": result})
    assert parrot.state is converser.ConnectionState.CONNECTED


@pytest.mark.parametrize(
    "meta", [{"converser/odd-blocks": 5}, {"converser/odd-structured": [1]}, {"a": 1}, 5, None, []]
)
async def test_metadata_of_a_server_is_never_taken_for_ours(
    parrot: converser.MCPClient, meta: Any
) -> None:
    result = await give(parrot, content=[{"type": "odd"}, text("a")], _meta=meta)
    assert isinstance(result.contents[0], converser.UnknownContent)
    assert result.contents[1] == converser.TextualContent(text="a")
    assert result.structured is None


async def test_results_of_typed_functions_come_once() -> None:
    server = MCPServer("typed")

    @server.tool()
    def count() -> int:
        return 5

    @server.tool()
    def spell() -> list[str]:
        return ["a", "b"]

    @server.tool(structured_output=False)
    def say() -> str:
        return "hello"

    client = converser.InProcessMCPClient(server)
    with anyio.fail_after(LIMIT):
        async with await converser.discover_mcp_tools(client, "typed") as ensemble:
            results = {name: await call(ensemble, name) for name in ("count", "spell", "say")}
    assert [result.text for result in results.values()] == ["5", "a\nb", "hello"]
    assert results["count"].structured == {"result": 5}
    assert results["say"].structured is None


async def test_an_unusable_output_schema_costs_the_check_and_not_the_result() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "strnig"}}}
    code = PARROT.replace(
        "raw.main()",
        f"raw.GOOD['outputSchema'] = {schema!r}\nraw.main()",
    )
    environment = {"PYTHONPATH": str(Path(__file__).parent.parent)}
    client = converser.StdioMCPClient([sys.executable, "-c", code], environment)
    with anyio.fail_after(LIMIT):
        async with await converser.discover_mcp_tools(client, "odd") as ensemble:
            result = await ensemble.access_invoker("good")(
                {"result": {"content": [], "structuredContent": {"a": 1}}}
            )
    assert result.structured == {"a": 1}
    assert any("output schema" in remark for remark in result.remarks)
