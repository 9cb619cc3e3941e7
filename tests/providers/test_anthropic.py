# SPDX-License-Identifier: Apache-2.0
"""What only Messages have: marks for the cache, documents, hidden thinking, and their own rules."""

from __future__ import annotations

import re

import pytest

from converser.canisters import (
    InvocationCanister,
    ResultCanister,
    document,
    supervisor,
    user,
)
from converser.contents import AudioContent, BlobContent, ImageContent
from converser.ensembles import Ensemble
from converser.exceptions import ModelFailure
from converser.invokers import InvocationResult, Tool
from converser.outcomes import Outcome
from converser.replies import StopReason
from converser.turns import Transcript
from tests.conversations import converse
from tests.providers.scenes import Stage, make_clock, make_tools
from tests.providers.wires import AnthropicWire

pytest.importorskip("anthropic", reason="needs the extra 'anthropic'")
pytestmark = pytest.mark.anyio
WIRE = AnthropicWire()
MARK = {"type": "ephemeral"}


@pytest.fixture
def service():
    with Stage(WIRE) as stage:
        yield stage


async def test_the_cache_is_marked_at_tools_instructions_and_the_last_message_only(service):
    transcript = Transcript([supervisor("One."), supervisor("Two."), user("Hello")])
    async with WIRE.access(service) as model:
        for _ in range(2):
            service.will_answer("Yes.")
            await converse(model, transcript, ensembles=[make_tools(a={}, b={})])
            transcript.append(user("And?"))
    first, second = service.bodies
    assert [tool.get("cache_control") for tool in first["tools"]] == [None, MARK]
    assert [block.get("cache_control") for block in first["system"]] == [None, MARK]
    assert first["messages"][-1]["content"][-1]["cache_control"] == MARK
    marks = [block.get("cache_control") for m in second["messages"] for block in m["content"]]
    assert marks == [None, None, MARK]


async def test_after_a_turn_of_many_calls_the_cache_is_marked_where_it_was_before(service):
    calls = [(f"call_{number}", "time", {"city": "Oslo"}) for number in range(12)]
    service.will_answer(calls=calls)
    service.will_answer("Noon.")
    transcript = Transcript([user("The time?")])
    await service.ask(transcript, ensembles=[make_clock()[0]])
    transcript.append(user("Sure?"))
    service.will_answer("Yes.")
    await service.ask(transcript, ensembles=[make_clock()[0]])
    marks = [
        [[block.get("cache_control") for block in m["content"]] for m in body["messages"]]
        for body in service.bodies
    ]
    called, told = [None] * 12, [*[None] * 11, MARK]
    assert marks[0] == [[MARK]]
    assert marks[1] == [[MARK], called, told]
    assert marks[2] == [[None], called, [None] * 12, [None], [MARK]]


async def test_documents_images_and_the_rest_find_their_blocks(service):
    service.will_answer("Fine.")
    pdf = BlobContent(data=b"%PDF", mimetype="application/pdf", name="a.pdf")
    table = BlobContent(data=b"a,b", mimetype="text/csv", name="t.csv", encoding="utf-8")
    picture = ImageContent(data=b"png", mimetype="image/png")
    drawing = ImageContent(data=b"<svg/>", mimetype="image/svg+xml")
    sound = AudioContent(data=b"mp3", mimetype="audio/mpeg")
    await service.ask(
        [user("Look", picture, drawing, sound, pdf), document("Text.", table, name="notes")],
    )
    (message,) = service.bodies[0]["messages"]
    kinds = [block["type"] for block in message["content"]]
    assert kinds == ["text", "image", "text", "text", "document", "document", "document"]
    assert message["content"][1]["source"] == {
        "type": "base64",
        "media_type": "image/png",
        "data": "cG5n",
    }
    assert message["content"][4] == {
        "type": "document",
        "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERg=="},
        "title": "a.pdf",
    }
    titles = [(b["title"], b["source"]["data"]) for b in message["content"][5:]]
    assert titles == [("notes", "Text."), ("notes", "a,b")]


async def test_results_come_first_and_errors_are_marked(service):
    service.will_answer("Fine.")
    pdf = BlobContent(data=b"%PDF", mimetype="application/pdf")
    odd = "functions.time:0 é"
    await service.ask(
        [
            user("Go"),
            InvocationCanister(identifier=odd, name="weird name!"),
            InvocationCanister(identifier="b", name="read"),
            ResultCanister(invocation_identifier=odd, outcome=Outcome.REFUSED, error="Not now."),
            ResultCanister(invocation_identifier="b", contents=(pdf,)),
            user("And?"),
        ],
    )
    _, calls, results = service.bodies[0]["messages"]
    first = calls["content"][0]
    assert first["name"] == "weird_name_"
    assert first["id"] == results["content"][0]["tool_use_id"]
    assert first["id"].isascii()
    assert " " not in first["id"]
    assert results["content"][0]["is_error"] is True
    assert results["content"][0]["content"] == "Error (refused): Not now."
    assert results["content"][1]["content"][0]["type"] == "document"
    assert results["content"][2]["text"] == "And?"


async def test_an_error_with_more_than_text_is_told_in_words_as_only_text_may_be_marked(service):
    service.will_answer("Fine.")
    picture = ImageContent(data=b"PNG", mimetype="image/png")
    result = ResultCanister(
        invocation_identifier="a", outcome=Outcome.TOOL_ERROR, error="Bad.", contents=(picture,)
    )
    await service.ask([user("Go"), InvocationCanister(identifier="a", name="t"), result])
    (block,) = service.bodies[0]["messages"][-1]["content"]
    assert "is_error" not in block
    assert block["content"][0]["text"] == "Error (tool-error): Bad."
    assert block["content"][1]["type"] == "image"


async def test_arguments_whose_names_the_service_refuses_have_others_on_the_wire(service):
    names = ["$top", "_top", "filter[id]", "x" * 70, "größe", "plain"]
    schema = {
        "type": "object",
        "properties": {name: {"type": "integer"} for name in names},
        "required": ["$top", "plain"],
    }
    given = []

    async def note(_, arguments):
        given.append(arguments)
        return InvocationResult()

    ensemble = Ensemble("odata", tools=[(Tool(name="list", arguments_schema=schema), note)])
    before, after = WIRE.answer("Fine.")
    service.will_stream(*before, *after)
    await service.ask([user("Go")], ensembles=[ensemble])
    native = service.bodies[0]["tools"][0]["input_schema"]
    wired = list(native["properties"])
    assert all(re.fullmatch(r"[a-zA-Z0-9_.-]{1,64}", name) for name in wired)
    assert len(set(wired)) == len(names)
    assert native["required"] == [wired[0], "plain"]
    service.will_answer(calls=[("c1", "list", dict(zip(wired, range(6), strict=True)))])
    service.will_answer("Done.")
    reply = await service.ask([user("Go")], ensembles=[ensemble])
    assert given == [dict(zip(names, range(6), strict=True))]
    assert reply[1].arguments == given[0]


async def test_hidden_thinking_and_the_order_of_blocks_are_kept(service):
    hidden = {"type": "redacted_thinking", "data": "enc"}

    def start(index, block):
        return WIRE._event("content_block_start", index=index, content_block=block)

    def use(identifier):
        return {"type": "tool_use", "id": identifier, "name": "a", "input": {}}

    before, _ = WIRE.answer(thought=True)
    _, after = WIRE.answer(calls=[("x", "a", {})])
    service.will_stream(
        *before, start(1, hidden), start(2, use("x")), start(3, hidden), start(4, use("y")), *after
    )
    service.will_answer("Done.")
    await service.ask([user("Go")], ensembles=[make_tools(a={})])
    step = service.bodies[1]["messages"][1]["content"]
    assert [block["type"] for block in step] == [
        "thinking",
        "redacted_thinking",
        "tool_use",
        "redacted_thinking",
        "tool_use",
    ]
    assert [block["id"] for block in step if block["type"] == "tool_use"] == ["x", "y"]


async def test_a_combination_at_the_top_of_a_schema_is_opened(service):
    service.will_answer("Fine.")
    one = {"properties": {"a": {"type": "string"}}, "required": ["a"]}
    other = {"properties": {"b": {"type": "integer"}}, "required": ["b"]}
    await service.ask(
        [user("Go")], ensembles=[make_tools(t={"type": "object", "anyOf": [one, other]})]
    )
    (schema,) = [tool["input_schema"] for tool in service.bodies[0]["tools"]]
    assert schema["type"] == "object"
    assert schema["properties"] == {"a": {"type": "string"}, "b": {"type": "integer"}}
    assert not schema.keys() & {"anyOf", "required"}
    assert "anyOf" in schema["description"]


async def test_an_error_in_the_stream_is_told(service):
    before, _ = WIRE.answer("So")
    overloaded = {"type": "overloaded_error", "message": "Overloaded"}
    service.will_stream(*before, WIRE._event("error", error=overloaded))
    with pytest.raises(ModelFailure, match=r"Overloaded.*try again"):
        await service.ask([user("Go")])


async def test_a_full_context_is_a_truncated_answer(service):
    before, _ = WIRE.answer("So")
    delta = {"stop_reason": "model_context_window_exceeded"}
    service.will_stream(
        *before, WIRE._event("message_delta", delta=delta, usage={"output_tokens": 1})
    )
    assert (await service.ask([user("Go")])).reason is StopReason.TRUNCATED


async def test_tools_of_the_service_go_back_with_their_input_and_so_does_unsigned_thinking(service):
    """Kimi's, which sends it so, refuses a call without it."""
    use = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}}
    found = {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []}
    unsigned = {"type": "thinking", "thinking": "Hm", "signature": ""}
    delta = {"type": "input_json_delta", "partial_json": '{"query": "x"}'}
    before, after = WIRE.answer("Found.")
    service.will_stream(
        before[0],
        *(
            WIRE._event("content_block_start", index=index, content_block=block)
            for index, block in enumerate(
                (unsigned, use, found, {"type": "text", "text": "Found."})
            )
        ),
        WIRE._event("content_block_delta", index=1, delta=delta),
        *after,
    )
    reply = await service.ask([user("Go")])
    assert reply.text == "Found."
    service.will_answer("Yes.")
    await service.ask([user("Go"), *reply, user("On")])
    step = service.bodies[1]["messages"][1]["content"]
    assert [block["type"] for block in step] == [
        "thinking",
        "server_tool_use",
        "web_search_tool_result",
        "text",
    ]
    assert step[1]["input"] == {"query": "x"}


async def test_citations_go_back_without_what_the_service_does_not_take(service):
    place = {"start_char_index": 0, "end_char_index": 4, "document_index": 0}
    citation = {"type": "char_location", "cited_text": "Noon", "document_title": None, **place}
    delta = {"type": "citations_delta", "citation": {**citation, "file_id": None}}
    before, after = WIRE.answer("Noon.", thought=True)
    cited = WIRE._event("content_block_delta", index=1, delta=delta)
    service.will_stream(*before, cited, *after)
    reply = await service.ask([user("Go")])
    service.will_answer("Yes.")
    await service.ask([user("Go"), *reply, user("On")])
    assert service.bodies[1]["messages"][1]["content"][1]["citations"] == [citation]


async def test_the_title_of_a_document_is_no_longer_than_the_service_takes(service):
    service.will_answer("Fine.")
    uri = f"https://bucket.example/{'x' * 1000}"
    text = BlobContent(data=b"a,b", mimetype="text/csv", uri=uri, encoding="utf-8")
    pdf = BlobContent(data=b"%PDF", mimetype="application/pdf", uri=uri)
    await service.ask([user("Look", text, pdf)])
    titles = [block.get("title") for block in service.bodies[0]["messages"][0]["content"]]
    assert titles == [None, uri[:255], uri[:255]]


async def test_thinking_that_was_cut_off_unsigned_does_not_go_back(service):
    before, after = WIRE.answer(thought=True, stop="length")
    service.will_stream(*[piece for piece in before if b"signature_delta" not in piece], *after)
    reply = await service.ask([user("Go")])
    service.will_answer("Yes.")
    await service.ask([user("Go"), *reply, user("On")])
    assert WIRE.thoughts(service.bodies[1]) == []


SEARCHING = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}


def make_searching(written):
    delta = {"type": "input_json_delta", "partial_json": written}
    return [
        WIRE._event("content_block_start", index=7, content_block=SEARCHING),
        WIRE._event("content_block_delta", index=7, delta=delta),
        WIRE._event("content_block_stop", index=7),
    ]


async def test_an_answer_that_was_cut_off_goes_on_when_the_model_is_asked_again(service):
    transcript = Transcript([user("Tell me all.")])
    service.will_answer("Once upon", stop="length")
    service.will_answer(" a time.")
    async with WIRE.access(service) as model:
        assert (await converse(model, transcript)).reason is StopReason.TRUNCATED
        assert (await converse(model, transcript)).text == " a time."
    roles = [message["role"] for message in service.bodies[1]["messages"]]
    assert roles == ["user", "assistant", "user"]
    assert "Go on" in service.bodies[1]["messages"][-1]["content"][0]["text"]
    assert len(transcript) == 3


async def test_a_turn_that_the_service_paused_goes_on_where_it_was(service):
    before, after = WIRE.answer("Wait.", stop="paused")
    service.will_stream(*before, *make_searching('{"query": "x"}'), *after)
    service.will_answer("Found.")
    reply = await service.ask([user("Go")])
    assert (reply.text, reply.reason) == ("Found.", StopReason.DONE)
    last = service.bodies[1]["messages"][-1]
    assert last["role"] == "assistant"
    assert last["content"][-1] == {**SEARCHING, "input": {"query": "x"}}


async def test_a_search_of_the_service_that_was_cut_off_leaves_the_words(service):
    before, after = WIRE.answer("Wait.", stop="length")
    service.will_stream(*before, *make_searching('{"qu'), *after)
    reply = await service.ask([user("Go")])
    assert (reply.text, reply.reason) == ("Wait.", StopReason.TRUNCATED)
