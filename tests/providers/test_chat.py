# SPDX-License-Identifier: Apache-2.0
"""What only Chat Completions have: servers of all kinds behind one format, and OpenAI's own demands."""

from __future__ import annotations

import json

import anyio
import pytest

from converser.canisters import InvocationCanister, ResultCanister, document, supervisor, user
from converser.codec import dump_canister, load_canister
from converser.contents import AudioContent, BlobContent, ImageContent
from converser.ensembles import Ensemble
from converser.exceptions import ModelFailure
from converser.invokers import Tool
from converser.models import access_model
from converser.replies import Limits
from converser.turns import Controls, Transcript
from tests.conversations import converse
from tests.providers.openai_wires import ChatWire, ResponsesWire
from tests.providers.scenes import CLOSED, OSLO, ROME, Stage, make_clock, make_tools
from tests.providers.wires import SIGNATURE, THOUGHT

pytest.importorskip("openai", reason="needs the extra 'openai'")
pytestmark = pytest.mark.anyio
WIRE = ChatWire()
PICTURE = ImageContent(data=b"png", mimetype="image/png")


@pytest.fixture
def service():
    with Stage(WIRE) as stage:
        yield stage


@pytest.fixture
def official(service, monkeypatch):
    """Lets the service pass for OpenAI's own."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.setattr("converser.providers.chat.URL_VARIABLE", "NO_SUCH_VARIABLE")

    def access(wire=WIRE):
        monkeypatch.setenv("OPENAI_BASE_URL", f"{service.url}/v1")  # Read by the SDK alone.
        return wire.access_without_key()

    return access


async def test_signatures_that_came_with_thoughts_and_calls_go_back_with_them(service):
    def think(**piece):
        return WIRE._chunk({"reasoning": "Hm", "reasoning_details": [{"index": 0, **piece}]})

    signed = {"google": {"thought_signature": SIGNATURE}}
    before, after = WIRE.answer(calls=[OSLO, ROME])
    call = {"index": 0, "extra_content": signed}
    details = [
        think(type="reasoning.text", text="Let me "),
        think(type="reasoning.text", text="think."),
        think(type="reasoning.text", signature=SIGNATURE),
        think(type="reasoning.encrypted", data="abc"),
        think(type="reasoning.encrypted", data="def"),
    ]
    service.will_stream(*details, *before, WIRE._chunk({"tool_calls": [call]}), *after)
    service.will_answer("Noon.")
    reply = await service.ask(ensembles=[make_clock()[0]])
    revived = [load_canister(dump_canister(canister)) for canister in reply]
    service.will_answer("Yes.")
    await service.ask([user("The time?"), *revived, user("Sure?")])
    for body in service.bodies[1:]:
        said = next(m for m in body["messages"] if m["role"] == "assistant")
        assert said["reasoning_details"] == [
            {"index": 0, "type": "reasoning.text", "text": THOUGHT, "signature": SIGNATURE},
            {"index": 0, "type": "reasoning.encrypted", "data": "abc"},
            {"index": 0, "type": "reasoning.encrypted", "data": "def"},
        ]
        assert [call.get("extra_content") for call in said["tool_calls"]] == [signed, None]
    service.will_answer("No.")
    await service.ask([user("The time?"), *revived, user("Sure?")], model="model-2")
    assert SIGNATURE not in json.dumps(service.bodies[3])


@pytest.mark.parametrize("status", [400, 404, 500])
async def test_a_server_whose_model_is_blind_gets_notes_in_the_place_of_images(service, status):
    service.will_fail(status, WIRE.error(status, "image input is not supported"))
    service.will_answer("A note.")
    service.will_answer("Again.")
    async with WIRE.access(service, retries=0) as model:
        assert (await converse(model, [user("Look", PICTURE)])).text == "A note."
        await converse(model, [user("Look", PICTURE)])
    kinds = [type(body["messages"][0]["content"]) for body in service.bodies]
    assert kinds == [list, str, str]
    assert "which you cannot see" in service.bodies[1]["messages"][0]["content"]


async def test_blindness_that_many_meet_at_once_is_taken_in_by_each(service):
    service.will_refuse(
        lambda body: "image_url" in json.dumps(body), 400, "no images, please", "Noon."
    )
    replies = []

    async def ask(model):
        picture = ImageContent(data=b"png", mimetype="image/png")
        replies.append(await converse(model, [user("Look", picture)]))

    async with WIRE.access(service) as model, anyio.create_task_group() as tasks:
        for _ in range(4):
            tasks.start_soon(ask, model)
    assert [reply.text for reply in replies] == ["Noon."] * 4


async def test_what_is_not_there_is_no_sign_of_blindness(service):
    picture = ImageContent(data=b"png", mimetype="image/png")
    service.will_fail(404, WIRE.error(404, "no such model"), times=2)
    service.will_answer("Noon.")
    async with WIRE.access(service) as model:
        with pytest.raises(ModelFailure, match="no such model"):
            await converse(model, [user("Look", picture)])
        await converse(model, [user("Look", picture)])
    assert "image_url" in json.dumps(service.bodies[2])


async def test_a_drawing_is_named_and_not_sent_as_a_picture(service):
    service.will_answer("Nice.")
    drawing = ImageContent(data=b"<svg/>", mimetype="image/svg+xml")
    call = InvocationCanister(identifier="a", name="draw")
    result = ResultCanister(invocation_identifier="a", contents=(drawing,))
    await service.ask([user("Look", drawing, PICTURE), call, result])
    question, _, answer = service.bodies[0]["messages"]
    kinds = [part["type"] for part in question["content"]]
    assert kinds == ["text", "text", "image_url"]
    assert "image/svg+xml, 6 bytes" in answer["content"]


async def test_an_error_of_a_server_that_sees_is_not_taken_for_blindness(service):
    service.will_fail(400, WIRE.error(400, "out of order"), times=2)
    service.will_answer("A tower.")
    async with WIRE.access(service, retries=0) as model:
        with pytest.raises(ModelFailure, match="out of order"):
            await converse(model, [user("Look", PICTURE)])
        await converse(model, [user("Look", PICTURE)])
    assert isinstance(service.bodies[2]["messages"][0]["content"], list)


async def test_images_of_results_come_after_all_results_of_a_turn_and_blindness_is_met(service):
    clock, _ = make_clock()
    service.will_answer(calls=[("c1", "photo", {}), OSLO])
    service.will_fail(400, WIRE.error(400, "no images, please"))
    service.will_answer("Noon.")
    service.will_answer("Yes.")
    transcript = Transcript([user("Look.")])
    async with WIRE.access(service) as model:
        await converse(model, transcript, ensembles=[clock])
        transcript.append(user("Sure?"))
        await converse(model, transcript, ensembles=[clock])
    roles = [[message["role"] for message in body["messages"]] for body in service.bodies]
    start = ["user", "assistant", "tool", "tool"]
    assert roles[1:] == [[*start, "user"], start, [*start, "assistant", "user"]]
    assert "which you cannot see" in service.bodies[2]["messages"][2]["content"]


async def test_openai_itself_gets_strict_tools_and_an_answer_beside_tools(service, official):
    service.will_answer('{"a": "x"}')
    tools = make_tools(closed=CLOSED, open={}, either={"type": "object", "anyOf": [CLOSED, {}]})
    async with official() as model:
        reply = await converse(model, ensembles=[tools], answer=CLOSED)
    assert reply.answer == {"a": "x"}
    (body,) = service.bodies
    functions = {tool["function"]["name"]: tool["function"] for tool in body["tools"]}
    assert {name: each["strict"] for name, each in functions.items()} == {
        "closed": True,
        "either": False,
        "open": False,
    }
    assert "anyOf" not in functions["either"]["parameters"]
    assert WIRE.form(body) == CLOSED
    assert body["response_format"]["json_schema"]["strict"] is True


async def test_a_long_description_goes_on_where_openai_has_room_for_it(service, official):
    """It takes 1,024 characters of a description here, and refuses all tools for one that is longer."""
    words = " ".join(f"word{number}" for number in range(400))

    async def run(*_): ...

    tools = [
        (Tool(name=name, description=text), run)
        for name, text in (("long", words), ("short", "Tells."))
    ]
    service.will_answer("Well.")
    async with official() as model:
        await converse(model, ensembles=[Ensemble("tools", tools=tools)])
    long, short = (tool["function"] for tool in service.bodies[0]["tools"])
    assert len(long["description"]) <= 1024
    told = f"{long['description']} {long['parameters']['description']}"
    assert told.replace("(This goes on at the parameters.) ", "") == words
    assert (short["description"], "description" in short["parameters"]) == ("Tells.", False)


async def test_a_service_that_knows_only_the_newer_name_of_a_limit_is_given_that(service):
    words = "Unsupported parameter: 'max_tokens' is not supported with this model."
    words += " Use 'max_completion_tokens' instead."
    service.will_refuse(lambda body: "max_tokens" in body, 400, words, "Yes.")
    async with WIRE.access(service) as model:
        for _ in range(2):
            reply = await converse(model, controls=Controls(tokens_max=7))
            assert reply.text == "Yes."
    limits = [
        (body.get("max_tokens"), body.get("max_completion_tokens")) for body in service.bodies
    ]
    assert limits == [(7, None), (None, 7), (None, 7)]


async def test_a_service_that_takes_no_options_for_streams_is_not_given_them_again(service):
    """As Mistral's, which refuses what it does not know."""
    words = "Extra inputs are not permitted: body.stream_options.include_usage"
    service.will_refuse(lambda body: "stream_options" in body, 422, words, "Well.")
    async with WIRE.access(service) as model:
        for _ in range(2):
            assert (await converse(model)).text == "Well."
    assert ["stream_options" in body for body in service.bodies] == [True, False, False]


async def test_options_for_streams_that_are_refused_to_many_at_once_are_given_up_by_each(service):
    words = "Extra inputs are not permitted: body.stream_options.include_usage"
    service.will_refuse(lambda body: "stream_options" in body, 422, words, "Well.")
    replies = []

    async def ask(model):
        replies.append(await converse(model))

    async with WIRE.access(service) as model, anyio.create_task_group() as tasks:
        for _ in range(6):
            tasks.start_soon(ask, model)
    assert [reply.text for reply in replies] == ["Well."] * 6


@pytest.mark.parametrize("identifier", ["functions.time:0", f"tool_0_{'x' * 60}"])
async def test_a_server_gets_its_own_identifiers_back_and_others_such_as_all_take(
    service, identifier
):
    service.will_answer(calls=[(identifier, *OSLO[1:])])
    for _ in range(2):
        service.will_answer("Noon.")
    reply = await service.ask(ensembles=[make_clock()[0]])
    history = [user("Go"), *reply, user("Sure?")]
    await service.ask(history, model="model-2")
    own, others = ([c[0] for c in WIRE.calls(body)] for body in service.bodies[1:])
    assert own == [identifier] == [result[0] for result in WIRE.results(service.bodies[1])]
    assert others == [result[0] for result in WIRE.results(service.bodies[2])]
    assert len(others[0]) <= 40
    assert others[0].replace("_", "").isalnum()


async def test_models_of_mistral_s_get_identifiers_of_nine_characters(service):
    calls = [("call_1", *OSLO[1:]), ("abcDEF123", *ROME[1:])]
    history = [user("Go")]
    for identifier, name, arguments in calls:
        history.append(InvocationCanister(identifier=identifier, name=name, arguments=arguments))
    history += [ResultCanister(invocation_identifier=identifier) for identifier, *_ in calls]
    service.will_answer("Noon.")
    await service.ask(history, model="open-mixtral-8x22b")
    (body,) = service.bodies
    made = [identifier for identifier, *_ in WIRE.calls(body)]
    assert made == [identifier for identifier, _ in WIRE.results(body)]
    assert made[1] == "abcDEF123"
    assert (len(made[0]), made[0].isalnum()) == (9, True)


async def test_silence_of_the_model_is_left_out_and_the_user_speaks_last(service):
    """As Mistral's service and others demand."""
    transcript = Transcript([user("Hm")])
    for text, stop in (("", None), ("", None), ("So I", "length"), ("think.", None)):
        service.will_answer(text, stop=stop)
        await service.ask(transcript)
    said = [[(m["role"], m["content"]) for m in body["messages"]] for body in service.bodies]
    question = ("user", "Hm")
    assert said == [
        [question],
        [question],
        [question],
        [question, ("assistant", "So I"), ("user", "Go on.")],
    ]
    transcript.append(user("And?"))
    service.will_answer("Yes.")
    await service.ask(transcript)
    last = [(m["role"], m["content"]) for m in service.bodies[-1]["messages"]]
    assert last == [question, ("assistant", "So I\n\nthink."), ("user", "And?")]


async def test_each_side_says_one_message_at_a_time(service):
    """The templates of Gemma and Mistral refuse two, and llama.cpp and vLLM the request."""
    service.will_answer("Well.")
    canisters = [supervisor("Be brief."), supervisor("Be kind."), document("Rain.", name="a")]
    picture = ImageContent(data=b"png", mimetype="image/png")
    await service.ask([*canisters, user("What is it?"), user("And this?", picture)])
    system, said = service.bodies[0]["messages"]
    assert (system["role"], system["content"]) == ("system", "Be brief.\n\nBe kind.")
    assert [part["type"] for part in said["content"]] == ["text", "text", "image_url"]
    assert said["content"][0]["text"] == "Document a:\nRain.\n\nWhat is it?"


async def test_openai_itself_reads_documents_also_in_results_and_others_hear_of_them(
    service, official
):
    pdf = BlobContent(data=b"%PDF", mimetype="application/pdf", name="a.pdf")
    call = InvocationCanister(identifier="c", name="fetch")
    canisters = [
        document(pdf, name="rates"),
        call,
        ResultCanister(invocation_identifier="c", contents=(pdf,)),
        user("What is it?"),
    ]
    for _ in range(2):
        service.will_answer("Well.")
    async with official() as model:
        await converse(model, canisters)
    await service.ask(canisters)
    given, _, result, shown = service.bodies[0]["messages"]
    parts = (given["content"][1], shown["content"][1])
    file = {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERg=="}
    assert list(parts) == [{"type": "file", "file": file}] * 2
    assert "a.pdf" in result["content"]
    assert '"file"' not in json.dumps(service.bodies[1])
    assert "a.pdf: application/pdf" in service.bodies[1]["messages"][0]["content"]


@pytest.mark.parametrize(("provider", "items"), [("openai", {}), ("llamacpp", None)])
async def test_arrays_of_anything_are_told_as_openai_demands_wherever_it_may_be(
    service, provider, items
):
    """Behind an address may be OpenAI; llama.cpp reads an empty schema as that of an object."""
    service.will_answer("Well.")
    tools = make_tools(open={"type": "object", "properties": {"a": {"type": "array"}}})
    async with access_model(f"{provider}:m", base_url=service.url) as model:
        await converse(model, ensembles=[tools])
    ((_, parameters),) = WIRE.tools(service.bodies[0])
    assert parameters["properties"]["a"].get("items") == items


@pytest.mark.parametrize("wire", [WIRE, ResponsesWire()], ids=["chat", "responses"])
async def test_openai_takes_so_many_tools_and_more_are_searched_for(service, official, wire):
    service.wire = wire
    many = make_tools(**{f"tool_{number}": {} for number in range(127)})
    found = [("c1", "search_tools", {"query": "tool 7", "limit": 20})]
    service.will_answer(calls=found)
    service.will_answer("Done.")
    async with official(wire) as model:
        limits = Limits(tools_budget=None)
        await converse(model, ensembles=[many], limits=limits)
    assert [len(wire.tools(body)) for body in service.bodies] == [1, 21]
    fewer = make_tools(**{f"tool_{number}": {} for number in range(126)})
    service.will_answer("Done.")
    async with official(wire) as model:
        await converse(model, ensembles=[fewer], limits=limits)
    assert len(wire.tools(service.bodies[2])) == 126


async def test_only_sounds_that_the_format_knows_are_sent_as_such(service):
    service.will_answer("Hm.")
    sounds = [
        AudioContent(data=b"s", mimetype=f"audio/{kind}") for kind in ("x-wav", "mpeg", "ogg")
    ]
    await service.ask([user("Listen", *sounds)])
    _, first, second, third = service.bodies[0]["messages"][0]["content"]
    assert [part["input_audio"]["format"] for part in (first, second)] == ["wav", "mp3"]
    assert "audio/ogg" in third["text"]
