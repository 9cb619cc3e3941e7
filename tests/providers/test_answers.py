# SPDX-License-Identifier: Apache-2.0
"""Structured answers over every wire: held to their schema by the service, and in words where it refuses."""

from __future__ import annotations

import json

import anyio
import pytest

from converser.canisters import user
from converser.exceptions import ModelFailure
from converser.providers.anthropic_dialect import translate_for_anthropic
from converser.turns import Controls, Transcript
from tests.conversations import assert_valid, converse
from tests.providers.scenes import OSLO, WIRES, Stage, demand, make_clock
from tests.providers.wires import AnthropicWire

pytestmark = pytest.mark.anyio
FORM = {
    "type": "object",
    "properties": {"hour": {"type": "integer"}},
    "required": ["hour"],
    "additionalProperties": False,
}
NOON = '{"hour": 12}'


@pytest.fixture(params=WIRES.values(), ids=WIRES)
def wire(request):
    return demand(request.param)


@pytest.fixture
def service(wire):
    with Stage(wire, "model-1") as service:
        yield service


def is_told(wire, body):
    return any("JSON Schema" in words for words in wire.words(body))


async def test_an_answer_is_held_to_its_schema_by_the_service(wire, service):
    service.will_answer(NOON)
    async with wire.access(service) as model:
        reply = await converse(model, answer=FORM)
    assert reply.answer == {"hour": 12}
    (body,) = service.bodies
    assert wire.form(body) == FORM
    assert wire.words(body) == ["Hello"]


async def test_beside_tools_it_is_held_or_told_and_the_tools_can_be_called(wire, service):
    clock, calls = make_clock()
    service.will_answer(calls=[OSLO])
    service.will_answer(NOON)
    async with wire.access(service) as model:
        reply = await converse(model, ensembles=[clock], answer=FORM)
    assert (reply.answer, calls) == ({"hour": 12}, ["Oslo"])
    for body in service.bodies:
        held = wire.form(body) == FORM
        assert held is wire.holds_answers_beside_tools
        assert is_told(wire, body) is not held
    assert_valid(reply)


async def test_a_service_that_refuses_a_schema_is_asked_in_words_and_not_again(wire, service):
    service.will_fail(400, wire.error(400, "there is no such mode"))
    service.will_answer(NOON)
    service.will_answer(NOON)
    transcript = Transcript([user("Hello")])
    async with wire.access(service) as model:
        reply = await converse(model, transcript, answer=FORM)
        assert reply.answer == {"hour": 12}
        assert (await converse(model, answer=FORM)).answer == {"hour": 12}
    assert [wire.form(body) == FORM for body in service.bodies] == [True, False, False]
    assert [is_told(wire, body) for body in service.bodies] == [False, True, True]
    assert list(transcript)[1:] == list(reply)


async def test_a_request_that_is_refused_anyway_is_told_and_the_schema_not_blamed(wire, service):
    service.will_fail(400, wire.error(400, "too long"), times=2)
    service.will_answer(NOON)
    async with wire.access(service) as model:
        with pytest.raises(ModelFailure, match="too long"):
            await converse(model, answer=FORM)
        assert (await converse(model, answer=FORM)).answer == {"hour": 12}
    assert [wire.form(body) == FORM for body in service.bodies] == [True, False, True]


async def test_a_service_that_does_not_care_for_the_schema_is_told_it_in_the_repair(wire, service):
    service.will_answer("It is noon.")
    service.will_answer(NOON)
    async with wire.access(service) as model:
        reply = await converse(model, answer=FORM)
    assert reply.answer == {"hour": 12}
    assert [is_told(wire, body) for body in service.bodies] == [False, True]


async def test_what_the_user_wants_beside_the_form_is_kept():
    wire = AnthropicWire()
    with Stage(wire, "model-1") as service:
        service.will_answer(NOON)
        extras = {"output_config": {"effort": "low"}}
        async with wire.access(service) as model:
            await converse(model, answer=FORM, controls=Controls(extras=extras))
        assert service.bodies[0]["output_config"]["effort"] == "low"
        assert wire.form(service.bodies[0]) == FORM


def make_object(**properties):
    return {"type": "object", "properties": properties, "additionalProperties": False}


@pytest.mark.parametrize(
    ("schema", "native"),
    [
        (make_object(a={"type": "string", "minLength": 2}),
         make_object(a={"type": "string", "description": '(JSON Schema also says: {"minLength": 2})'})),
        ({"type": "object", "properties": {"a": {"type": "boolean"}}}, make_object(a={"type": "boolean"})),
        (make_object(a={"type": ["string", "null"]}),
         make_object(a={"anyOf": [{"type": "string"}, {"type": "null"}]})),
        (make_object(a={"oneOf": [{"const": 1}, {"enum": ["x"]}]}),
         make_object(a={"anyOf": [{"const": 1}, {"enum": ["x"]}]})),
        ({**make_object(a={"$ref": "#/$defs/n"}), "$defs": {"n": {"type": "integer"}}},
         {**make_object(a={"$ref": "#/$defs/n"}), "$defs": {"n": {"type": "integer"}}}),
        (make_object(a={"type": "array", "items": {"type": "string", "format": "uuid"}, "minItems": 1}),
         make_object(a={"type": "array", "items": {"type": "string", "format": "uuid"}, "minItems": 1})),
    ],
)  # fmt: skip
def test_a_schema_is_put_in_anthropic_s_subset(schema, native):
    assert json.loads(json.dumps(translate_for_anthropic(schema))) == native


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object"},
        {"type": "object", "additionalProperties": {"type": "integer"}},
        {"type": "object", "properties": {"a": {}}},
        {"type": "object", "properties": {"next": {"$ref": "#"}}},
        {"type": "object", "properties": {"a": {"type": "array"}}},
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/t"}},
         "$defs": {"t": make_object(t={"$ref": "#/$defs/t"})}},
    ],
)  # fmt: skip
async def test_what_the_subset_cannot_say_is_told_in_words(schema):
    assert translate_for_anthropic(schema) is None
    wire = AnthropicWire()
    with Stage(wire, "model-1") as service:
        service.will_answer("{}")
        async with wire.access(service) as model:
            await converse(model, answer=schema)
        assert wire.form(service.bodies[0]) is None
        assert is_told(wire, service.bodies[0])


async def test_a_schema_that_is_refused_to_many_at_once_is_given_up_by_each(wire, service):
    service.will_refuse(wire.form, 400, "there is no such mode", NOON)
    replies = []

    async def ask(model):
        replies.append(await converse(model, answer=FORM))

    async with wire.access(service) as model, anyio.create_task_group() as tasks:
        for _ in range(6):
            tasks.start_soon(ask, model)
    assert [reply.answer for reply in replies] == [{"hour": 12}] * 6
