# SPDX-License-Identifier: Apache-2.0
"""Conversations as they come from crashes, from elsewhere and from models at their limits: none is an obstacle."""

from __future__ import annotations

import base64
import json

import pytest

from converser.canisters import (
    AssistantCanister,
    InvocationCanister,
    ResultCanister,
    assistant,
    supervisor,
    user,
)
from converser.contents import ImageContent, TextualContent
from converser.exceptions import ModelFailure
from converser.replies import StopReason
from converser.turns import Transcript
from tests.conversations import converse
from tests.providers.scenes import OSLO, WIRES, Stage, make_clock

pytestmark = pytest.mark.anyio


@pytest.fixture(params=WIRES.values(), ids=WIRES)
def wire(request):
    return request.param


@pytest.fixture
def service(wire):
    with Stage(wire) as stage:
        yield stage


@pytest.fixture
def clock():
    return make_clock()


def make_call(identifier):
    return InvocationCanister(identifier=identifier, name="time", arguments={"city": "Oslo"})


def make_result(identifier, text):
    contents = (TextualContent(text=text),)
    return ResultCanister(invocation_identifier=identifier, contents=contents)


async def test_a_conversation_that_was_broken_off_is_healed_on_the_wire(wire, service):
    """As after the end of a program: a call without a result; and a result twice, or without a call."""
    done, lost = make_call("done"), make_call("lost")
    service.will_answer("Well.")
    await service.ask(
        [
            user("The time?"),
            done,
            lost,
            make_result("done", "12:00"),
            make_result("done", "13:00"),
            make_result("stray", "14:00"),
            user("And?"),
        ],
    )
    (body,) = service.bodies
    assert [identifier for identifier, _, _ in wire.calls(body)] == ["done", "lost"]
    (first, words), (second, gap) = wire.results(body)
    assert (first, second) == ("done", "lost")
    assert "12:00" in words
    assert "not known" in gap


async def test_the_same_identifier_in_a_later_question_gets_another(wire, service, clock):
    transcript = Transcript([user("The time?")])
    async with wire.access(service) as model:
        for _ in range(2):
            service.will_answer(calls=[OSLO])
            service.will_answer("Noon.")
            await converse(model, transcript, ensembles=[clock[0]])
            transcript.append(user("And now?"))
    calls = [identifier for identifier, _, _ in wire.calls(service.bodies[-1])]
    assert calls == [identifier for identifier, _ in wire.results(service.bodies[-1])]
    assert len(set(calls)) == 2


async def test_halves_of_characters_never_reach_the_wire(wire, service):
    half = "\ud83d"
    invocation = InvocationCanister(identifier="c", name="time", arguments={f"a{half}": [half]})
    service.will_answer("Well.")
    await service.ask(
        [
            supervisor(f"Be {half}."),
            user(f"Say {half}"),
            AssistantCanister(contents=user(half).contents),
            invocation,
            make_result("c", f"It said {half}."),
        ],
    )
    (body,) = service.bodies
    assert "\ufffd" in wire.results(body)[0][1] or "ufffd" in wire.results(body)[0][1]
    assert wire.instructions(body) == ["Be \ufffd."]
    json.dumps(body, ensure_ascii=False).encode()


async def test_a_conversation_that_the_model_began_is_no_obstacle(wire, service):
    service.will_answer("Well.")
    await service.ask([assistant("Good day!"), user("Hello")])
    words = wire.words(service.bodies[0])
    assert words[-2:] == ["Good day!", "Hello"]


async def test_where_there_is_nothing_to_answer_it_says_so_or_lets_the_model_speak(wire, service):
    if wire.name in ("responses", "chat"):
        service.will_answer("Well.")
        assert (await service.ask([supervisor("Be brief.")])).text == "Well."
        return
    with pytest.raises(ModelFailure, match="nothing to answer"):
        await service.ask([supervisor("Be brief.")])
    assert service.bodies == []


async def test_an_empty_answer_is_no_obstacle(wire, service):
    service.will_answer("")
    service.will_answer("Yes.")
    transcript = Transcript([user("Hm")])
    async with wire.access(service) as model:
        assert isinstance((await converse(model, transcript))[0], AssistantCanister)
        transcript.append(user("Well?"))
        assert (await converse(model, transcript)).text == "Yes."


async def test_thinking_that_nothing_came_of_is_no_obstacle(wire, service):
    service.will_answer(thought=True, stop="length")
    service.will_answer("Yes.")
    transcript = Transcript([user("Hm")])
    async with wire.access(service) as model:
        assert (await converse(model, transcript)).reason is StopReason.TRUNCATED
        transcript.append(user("Well?"))
        assert (await converse(model, transcript)).text == "Yes."
    assert "\n\n".join(wire.words(service.bodies[1])) == "Hm\n\nWell?"
    if wire.name in ("anthropic", "responses"):
        assert wire.thoughts(service.bodies[1]) == []


async def test_calls_of_an_answer_that_was_cut_off_or_withheld_are_not_made(wire, service, clock):
    ensemble, calls = clock
    service.will_answer("Let", calls=[OSLO], stop="length")
    service.will_answer("Sorry", calls=[OSLO], stop="filtered")
    reply = await service.ask(ensembles=[ensemble])
    assert (calls, reply.reason) == ([], StopReason.FILTERED)
    errors = [each.error for each in reply if isinstance(each, ResultCanister)]
    assert ["cut off" in errors[0], "withheld" in errors[1]] == [True, True]


JPEG, TIFF = b"\xff\xd8\xff\xe0 jpeg", b"II*\x00 tiff"


async def test_images_are_called_what_they_are_and_others_told_of(wire, service):
    """A server that calls a JPEG a PNG, or image/jpg, would have the service refuse the conversation for good."""
    call = InvocationCanister(identifier="c", name="photo")
    images = [ImageContent(data=JPEG, mimetype="image/png")]
    images += [
        ImageContent(data=b"unknown", mimetype=kind) for kind in ("image/jpg", "image/JPEG; q=1")
    ]
    odd = [ImageContent(data=data, mimetype="image/png") for data in (TIFF, b"")]
    result = ResultCanister(invocation_identifier="c", contents=(*images[:1], *odd))
    service.will_answer("Well.")
    await service.ask([user("Look", *images, *odd), call, result])
    text = json.dumps(service.bodies[0])
    assert text.count("image/jpeg") == 4
    assert base64.b64encode(TIFF).decode() not in text
    assert f"{len(TIFF)} bytes, which cannot be shown" in text


async def test_white_space_alone_is_told_as_no_output(wire, service):
    service.will_answer("Well.")
    await service.ask([user("Look"), make_call("c"), make_result("c", " \n")])
    ((_, words),) = wire.results(service.bodies[0])
    assert "(no output)" in words
