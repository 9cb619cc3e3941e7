# SPDX-License-Identifier: Apache-2.0
"""What servers of Chat Completions demand of a history, and each of them otherwise."""

from __future__ import annotations

import json

import anyio
import pytest

from converser.canisters import (
    AssistantCanister,
    InvocationCanister,
    ResultCanister,
    supervisor,
    user,
)
from converser.contents import ImageContent, TextualContent
from converser.events import ThoughtDelta
from converser.exceptions import ModelFailure
from converser.replies import StopReason
from converser.turns import Transcript
from tests.conversations import converse
from tests.providers.openai_wires import ChatWire
from tests.providers.scenes import OSLO, PICTURE, Stage, make_clock
from tests.providers.wires import THOUGHT

pytest.importorskip("openai", reason="needs the extra 'openai'")
pytestmark = pytest.mark.anyio
WIRE = ChatWire()
ELSEWHERE = (
    user("The time?"),
    AssistantCanister(contents=(TextualContent(text="Look."),), model="another"),
    InvocationCanister(identifier="call_1", name="time", arguments={"city": "Oslo"}),
    ResultCanister(invocation_identifier="call_1", contents=(TextualContent(text="12:00"),)),
    AssistantCanister(contents=(TextualContent(text="Noon."),), model="another"),
    user("Sure?"),
)
"""A conversation that another model had."""
DEMANDS = (
    "The `reasoning_content` in the thinking mode must be passed back to the API.",
    "thinking is enabled but reasoning_content is missing in assistant tool call message at index 1",
)
REFUSALS = (
    "Extra inputs are not permitted, field: 'messages[1].reasoning_content'",
    (
        "'messages.1' : for 'role:assistant' the following must be satisfied"
        "[('messages.1' : property 'reasoning_content' is unsupported)]"
    ),
    (
        "{'type': 'extra_forbidden', 'loc': ['body', 'messages', 1, 'assistant', 'reasoning_content'],"
        " 'msg': 'Extra inputs are not permitted'}"
    ),
)


@pytest.fixture
def service():
    with Stage(WIRE) as stage:
        yield stage


def list_thoughts(body):
    said = [message for message in body["messages"] if message["role"] == "assistant"]
    return [message.get("reasoning_content") for message in said]


def list_roles(body):
    return [message["role"] for message in body["messages"]]


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
async def test_thinking_goes_back_with_every_answer_under_its_own_name(service, name):
    """DeepSeek demands it of answers without calls, too, where there are tools."""

    def rename(frames):
        return [frame.replace(b"reasoning_content", name.encode()) for frame in frames]

    for text, calls in (("Look.", [OSLO]), ("Noon.", ()), ("Yes.", ())):
        before, after = WIRE.answer(text, calls=calls, thought=True)
        service.will_stream(*rename(before), *after)
    transcript = Transcript([user("The time?")])
    clock, _ = make_clock()
    await service.ask(transcript, ensembles=[clock])
    transcript.append(user("Sure?"))
    await service.ask(transcript, ensembles=[clock])
    said = [m for m in service.bodies[2]["messages"] if m["role"] == "assistant"]
    assert [(m["content"], m[name]) for m in said] == [("Look.", THOUGHT), ("Noon.", THOUGHT)]


@pytest.mark.parametrize("words", DEMANDS)
async def test_a_server_that_demands_thoughts_takes_a_history_without_any(service, words):
    def lacks(body):
        return not all(list_thoughts(body))

    service.will_refuse(lacks, 400, words, "Yes.")
    async with WIRE.access(service) as model:
        for _ in range(2):
            assert (await converse(model, ELSEWHERE)).text == "Yes."
    assert [lacks(body) for body in service.bodies] == [True, False, False]


async def test_calls_of_others_are_signed_for_gemini_where_it_demands_that(service):
    def is_unsigned(body):
        calls = [m["tool_calls"][0] for m in body["messages"] if "tool_calls" in m]
        return any("extra_content" not in call for call in calls)

    words = "Function call is missing a thought_signature in functionCall parts."
    service.will_refuse(is_unsigned, 400, words, "Yes.")
    other = InvocationCanister(identifier="call_2", name="time", arguments={"city": "Rome"})
    result = ResultCanister(invocation_identifier="call_2")
    history = [*ELSEWHERE[:3], other, ELSEWHERE[3], result, *ELSEWHERE[4:]]
    async with WIRE.access(service) as model:
        for _ in range(2):
            assert (await converse(model, history)).text == "Yes."
    assert [is_unsigned(body) for body in service.bodies] == [True, False, False]
    first, second = service.bodies[-1]["messages"][1]["tool_calls"]
    passed = {"google": {"thought_signature": "skip_thought_signature_validator"}}
    assert (first["extra_content"], "extra_content" in second) == (passed, False)


@pytest.mark.parametrize("words", REFUSALS)
async def test_a_server_that_takes_no_thoughts_back_is_not_given_them_again(service, words):
    service.will_answer("Noon.", thought=True)
    transcript = Transcript([user("The time?")])
    replies = []

    async def ask(model):
        replies.append(await converse(model, [*transcript, user("Sure?")]))

    async with WIRE.access(service) as model:
        await converse(model, transcript)
        service.will_refuse(lambda body: any(list_thoughts(body)), 400, words, "Yes.")
        async with anyio.create_task_group() as tasks:
            for _ in range(4):
                tasks.start_soon(ask, model)
        assert [reply.text for reply in replies] == ["Yes."] * 4
        await ask(model)
    assert list_thoughts(service.bodies[-1]) == [None]
    assert list_thoughts(service.bodies[-2]) == [None]


async def test_instructions_on_the_way_come_before_all_else(service):
    """The templates of Qwen and others take none further on; llama.cpp and vLLM refuse the request."""
    transcript = Transcript([user("Hm"), supervisor("Be brief."), user("The time?")])
    for text in ("Noon.", "Midi."):
        service.will_answer(text)
    async with WIRE.access(service) as model:
        await converse(model, transcript)
        transcript.extend([supervisor("Speak French."), user("Sure?")])
        await converse(model, transcript)
    first, second = service.bodies
    assert first["messages"][0] == {"role": "system", "content": "Be brief."}
    assert second["messages"][0] == {"role": "system", "content": "Be brief.\n\nSpeak French."}
    assert list_roles(second) == ["system", "user", "assistant", "user"]


@pytest.mark.parametrize("model", ["devstral-medium", "Qwen3"])
async def test_nobody_but_the_model_speaks_after_a_result_where_mistral_wants_it_so(service, model):
    """Its service, and its templates, refuse each request with a user after a result."""
    picture = ImageContent(data=PICTURE, mimetype="image/png")
    history = [
        *ELSEWHERE[:3],
        ResultCanister(invocation_identifier="call_1", contents=(picture,)),
        *ELSEWHERE[4:],
        InvocationCanister(identifier="call_2", name="time", arguments={"city": "Rome"}),
        ResultCanister(invocation_identifier="call_2", contents=(TextualContent(text="13:00"),)),
        user("And?"),
    ]
    service.will_answer("Later.")
    await service.ask(history, model=model)
    (body,) = service.bodies
    follow = ["assistant", "user"] if "stral" in model else ["user"]
    roles = ["user", "assistant", "tool", *follow, "assistant", "user", "assistant", "tool"]
    assert list_roles(body) == [*roles, *follow]
    assert all(m["content"] or "tool_calls" in m for m in body["messages"])


async def test_a_call_that_gemini_could_not_write_is_a_failure_and_a_filter_a_filter(service):
    before, _ = WIRE.answer("So", calls=[OSLO])
    reason = "function_call_filter: MALFORMED_FUNCTION_CALL"
    service.will_stream(*before, WIRE._chunk({}, reason))
    service.will_stream(*before, WIRE._chunk({}, "content_filter: RECITATION"))
    clock, asked = make_clock()
    with pytest.raises(ModelFailure, match="broke off"):
        await service.ask(ensembles=[clock])
    reply = await service.ask(ensembles=[clock])
    assert (reply.reason, asked) == (StopReason.FILTERED, [])


async def test_thoughts_in_a_list_of_parts_are_told_as_such(service):
    """As Mistral's models send them."""
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": THOUGHT}]}
    pieces = [thought, {"type": "text", "text": "Noon."}]
    chunks = [WIRE._chunk({"content": [piece]}) for piece in pieces]
    service.will_stream(*chunks, WIRE._chunk({}, "stop"))
    events = []
    reply = await service.ask(events=events.append)
    assert reply.text == "Noon."
    assert [each.text for each in events if isinstance(each, ThoughtDelta)] == [THOUGHT]
    assert "think" not in json.dumps(reply.canisters[0].text)
