# SPDX-License-Identifier: Apache-2.0
"""What only Responses have: items with identifiers, strict tools, refusals, and nothing kept there."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from converser.canisters import document, user
from converser.contents import BlobContent, ImageContent
from converser.exceptions import ModelFailure
from converser.models import access_model
from converser.replies import StopReason
from tests.conversations import converse
from tests.providers.openai_wires import ResponsesWire
from tests.providers.scenes import CLOSED, OSLO, Stage, make_clock, make_tools

pytest.importorskip("openai", reason="needs the extra 'openai'")
pytestmark = pytest.mark.anyio
WIRE = ResponsesWire()


@pytest.fixture
def service():
    with Stage(WIRE) as stage:
        yield stage


async def test_nothing_is_kept_at_the_service_and_reasoning_comes_encrypted(service):
    service.will_answer("Yes.")
    await service.ask([user("Go")])
    path, _, body = service.requests[0]
    assert path == "/v1/responses"
    assert body["store"] is False
    assert body["include"] == ["reasoning.encrypted_content"]


async def test_the_items_of_a_turn_go_back_in_order_under_their_identifiers(service):
    service.will_answer("Look.", calls=[("c1", "t", {"a": "x"})], thought=True)
    service.will_answer("Done.")
    await service.ask([user("Go")], ensembles=[make_tools(t=CLOSED)])
    items = service.bodies[1]["input"][1:]
    assert [(item["type"], item.get("id")) for item in items] == [
        ("reasoning", "rs_1"),
        ("message", "msg_1"),
        ("function_call", "fc_c1"),
        ("function_call_output", None),
    ]
    assert "status" not in items[0]


async def test_the_phase_of_a_message_goes_back_with_it_though_nothing_was_reasoned(service):
    content = [{"type": "output_text", "text": "Let me look.", "annotations": []}]
    message = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed"}
    message |= {"content": content, "phase": "commentary"}
    done = WIRE._event("response.output_item.done", output_index=0, item=message)
    _, after = WIRE.answer()
    service.will_stream(done, *after)
    reply = await service.ask()
    service.will_answer("Yes.")
    await service.ask([user("Go"), *reply, user("On")])
    assert service.bodies[1]["input"][1] == message


async def test_strict_mode_is_used_only_where_it_changes_nothing(service):
    service.will_answer("Yes.")
    optional = {**CLOSED, "required": []}
    dialect = {"$schema": "https://json-schema.org/draft/2020-12/schema", **CLOSED}
    await service.ask(
        [user("Go")], ensembles=[make_tools(closed=dialect, optional=optional, open={})]
    )
    tools = {tool["name"]: tool for tool in service.bodies[0]["tools"]}
    assert {name: tool["strict"] for name, tool in tools.items()} == {
        "closed": True,
        "optional": False,
        "open": False,
    }
    assert tools["closed"]["parameters"] == CLOSED
    assert tools["optional"]["parameters"] == optional


async def test_a_refusal_is_told_and_typed(service):
    refusal = {"type": "refusal", "refusal": "I cannot."}
    item = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed"}
    done = WIRE._event(
        "response.output_item.done", output_index=0, item={**item, "content": [refusal]}
    )
    _, after = WIRE.answer()
    service.will_stream(done, *after)
    reply = await service.ask([user("Go")])
    assert (reply.text, reply.reason) == ("I cannot.", StopReason.FILTERED)


async def test_an_answer_that_is_incomplete_for_whatever_reason_is_not_run(service):
    ensemble, calls = make_clock()
    before, _ = WIRE.answer(calls=[OSLO])
    response = WIRE._response("incomplete", [])
    response["incomplete_details"] = {"reason": "a new one"}
    service.will_stream(*before, WIRE._event("response.incomplete", response=response))
    service.will_answer("Sorry.")
    reply = await service.ask([user("Go")], ensembles=[ensemble])
    assert not calls
    assert "cut off" in reply[2].error


async def test_an_unknown_model_is_told_as_one_also_where_the_service_calls_it_a_bad_request(
    service,
):
    message = "The requested model 'model-x' does not exist."
    error = {"type": "invalid_request_error", "param": "model", "code": "model_not_found"}
    service.will_fail(400, {"error": {**error, "message": message}})
    with pytest.raises(ModelFailure, match=r"not known there.*Did you mean 'model-1'"):
        await service.ask([user("Go")], model="model-x")


async def test_failures_within_the_stream_are_told(service):
    response = WIRE._response("failed", [])
    response["error"] = {"code": "server_error", "message": "It broke"}
    service.will_stream(WIRE._event("response.failed", response=response))
    with pytest.raises(ModelFailure, match=r"It broke.*try again"):
        await service.ask([user("Go")])
    service.will_stream(WIRE._event("error", code="x", message="No room", param=None))
    with pytest.raises(ModelFailure, match=r"No room.*try again"):
        await service.ask([user("Go")])
    message = "Your input exceeds the context window of this model."
    response["error"] = {"code": "context_length_exceeded", "message": message}
    service.will_stream(WIRE._event("response.failed", response=response))
    with pytest.raises(ModelFailure, match="more than the model takes"):
        await service.ask([user("Go")])


async def test_an_image_that_is_refused_within_the_stream_is_told_of_instead(service):
    response = WIRE._response("failed", [])
    message = "The image data you provided does not represent a valid image."
    response["error"] = {"code": "image_parse_error", "message": message}
    created = WIRE._event("response.created", response=WIRE._response("in_progress", []))
    service.will_stream(created, WIRE._event("response.failed", response=response))
    service.will_answer("Well.")
    picture = ImageContent(data=b"png", mimetype="image/png")
    assert (await service.ask([user("Look", picture)])).text == "Well."
    parts = service.bodies[1]["input"][0]["content"]
    assert [part["type"] for part in parts] == ["input_text", "input_text"]


async def test_images_and_documents_find_their_parts(service):
    service.will_answer("Fine.")
    pdf = BlobContent(data=b"%PDF", mimetype="application/pdf", name="a.pdf")
    picture = ImageContent(data=b"png", mimetype="image/png")
    await service.ask([user("Look", picture), document(pdf, name="paper")])
    first, second = service.bodies[0]["input"]
    assert first["content"][1]["image_url"] == "data:image/png;base64,cG5n"
    assert second["content"] == [
        {"type": "input_text", "text": "Document paper:"},
        {
            "type": "input_file",
            "filename": "a.pdf",
            "file_data": "data:application/pdf;base64,JVBERg==",
        },
    ]


async def test_the_official_endpoint_means_responses_and_another_one_chat(service, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    assert "Responses" in type(access_model("openai:m")._provider).__name__
    monkeypatch.setenv("OPENAI_BASE_URL", service.url)
    assert "Responses" not in type(access_model("openai:m")._provider).__name__
    monkeypatch.setenv("OPENAI_BASE_URL", "https://eu.api.openai.com/v1/")
    assert "Responses" in type(access_model("openai:m")._provider).__name__
    chat = access_model("openai:m", api="chat")._provider
    assert chat.capabilities.tools_max == 128
    with pytest.raises(ModelFailure, match=r"'assistants'.*'responses' or 'chat'"):
        access_model("openai:m", api="assistants")


@pytest.mark.parametrize(
    ("schema", "strict"), [(CLOSED, True), ({**CLOSED, "required": []}, False)]
)
async def test_an_answer_is_held_to_its_schema_by_the_service(service, schema, strict):
    service.will_answer('{"a": "x"}')
    reply = await service.ask([user("Go")], answer=schema)
    assert reply.answer == {"a": "x"}
    (body,) = service.bodies
    form = body["text"]["format"]
    assert (form["type"], form["schema"], form["strict"]) == ("json_schema", schema, strict)
    assert WIRE.words(body) == ["Go"]


async def test_a_dataclass_without_defaults_is_held_to_the_letter(service):
    @dataclass
    class Place:
        name: str
        height: float

    service.will_answer('{"answer": [{"name": "Oslo", "height": 23}]}')
    assert (await service.ask(answer=list[Place])).answer == [Place("Oslo", 23.0)]
    form = service.bodies[0]["text"]["format"]
    assert form["strict"]
    assert form["schema"]["$defs"]["Place"]["additionalProperties"] is False


async def test_a_part_of_an_unknown_kind_and_missing_counts_are_no_obstacle(service):
    before, after = WIRE.answer("Yes.")
    part = b'{"type": "hologram", "beam": 1}, {"type": "output_text"'
    odd = [
        piece.replace(b'{"type": "output_text"', part).replace(
            b'"input_tokens": 20', b'"input_tokens": null'
        )
        for piece in (*before, *after)
    ]
    service.will_stream(*odd)
    assert (await service.ask([user("Go")])).text == "Yes."


async def test_an_item_of_no_kind_is_a_failure_and_is_not_kept(service):
    before, after = WIRE.answer("So.", thought=True)
    service.will_stream(*(part.replace(b'"reasoning"', b"null") for part in before), *after)
    with pytest.raises(ModelFailure, match="try again"):
        await service.ask()


async def test_a_service_that_refuses_to_reason_without_end_fails_as_a_model_does(service):
    words = "Encrypted content is not supported with this model."
    service.will_refuse(lambda body: True, 400, words, "Yes.")
    with pytest.raises(ModelFailure, match="not supported"):
        await service.ask([user("Go")])


async def test_a_model_that_does_not_reason_is_not_asked_for_it_again(service):
    """As gpt-4o and gpt-5-chat: the whole request is refused for it."""
    words = "Encrypted content is not supported with this model."
    service.will_refuse(lambda body: "include" in body, 400, words, '{"a": "x"}')
    async with WIRE.access(service) as model:
        for _ in range(2):
            assert (await converse(model, answer=CLOSED)).answer == {"a": "x"}
    assert ["include" in body for body in service.bodies] == [True, False, False]
    assert all(WIRE.form(body) == CLOSED for body in service.bodies)
