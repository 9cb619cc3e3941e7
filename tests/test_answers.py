# SPDX-License-Identifier: Apache-2.0
"""Structured answers: a validated object, mended in further rounds, or a failure that loses nothing."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from datetime import date
from enum import Enum
from typing import Union

import pydantic
import pytest
from hypothesis import given, strategies as st

from converser.answers import AnswerForm
from converser.canisters import UserCanister, user
from converser.events import ReplyCompleted
from converser.exceptions import AnswerInvalidity, ConfigurationFailure, SchemaInvalidity
from converser.models import Model
from converser.replies import Limits, StopReason
from converser.testing import ScriptedModel
from converser.turns import Capabilities, Transcript
from tests.conversations import SpokenProvider, assert_valid, converse, echo, make_ensemble, saying

pytestmark = pytest.mark.anyio


class Sky(Enum):
    CLEAR = "clear"
    CLOUDY = "cloudy"


@dataclass
class Weather:
    city: str
    degrees: float
    sky: Sky = Sky.CLEAR
    days: list[date] = field(default_factory=list)


OSLO = '{"city": "Oslo", "degrees": -3.5, "sky": "cloudy", "days": ["2026-11-18"]}'
WEATHER = Weather("Oslo", -3.5, Sky.CLOUDY, [date(2026, 11, 18)])
SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
    "additionalProperties": False,
}


async def test_a_dataclass_comes_back_as_an_object_after_the_tools_were_used():
    model = ScriptedModel([[("echo", {"text": "hi"})], OSLO])
    reply = await converse(model, ensembles=[make_ensemble(echo=echo)], answer=Weather)
    assert reply.answer == WEATHER
    assert (reply.reason, reply.text, reply.flaw) == (StopReason.DONE, OSLO, "")
    assert_valid(reply)


async def test_a_model_without_a_native_mode_is_told_the_schema_in_the_conversation():
    model, transcript = ScriptedModel(['{"n": 1}']), Transcript([user("Go.")])
    reply = await converse(model, transcript, answer=SCHEMA)
    told = transcript[-2]
    assert isinstance(told, UserCanister)
    assert json.dumps(SCHEMA) in told.text
    assert list(reply) == [told, transcript[-1]]
    assert reply.answer == {"n": 1}


async def test_a_provider_with_a_native_mode_gets_the_schema_and_nothing_is_added():
    native = Capabilities(answer_schema=True)
    model = ScriptedModel(['{"n": 1}'], capabilities=native)
    reply = await converse(model, answer=SCHEMA)
    assert model.requests[0].answer_schema == SCHEMA
    assert len(reply) == 1
    assert (await converse(ScriptedModel(["Hi."], capabilities=native))).text == "Hi."


async def test_a_model_that_misses_the_form_is_told_how_and_mends_it():
    model = ScriptedModel(["It is cold.", '{"city": "Oslo"}', OSLO])
    reply = await converse(model, answer=Weather)
    assert (reply.answer, reply.flaw) == (WEATHER, "")
    first, second = (request.canisters[-1].text for request in model.requests[1:])
    assert "no JSON object" in first
    assert "degrees" in second
    assert "A valid example" in second


async def test_a_model_that_was_not_told_the_schema_hears_it_once_when_it_misses_it():
    native = Capabilities(answer_schema=True)
    model = ScriptedModel(["It is cold.", "Very.", OSLO], capabilities=native)
    reply = await converse(model, answer=Weather)
    assert reply.answer == WEATHER
    first, second = (request.canisters[-1].text for request in model.requests[1:])
    assert "JSON Schema" in first
    assert "JSON Schema" not in second


async def test_an_answer_that_was_cut_off_is_not_asked_for_again():
    provider = SpokenProvider(saying('{"n": ', stop_reason="length"), saying("Never said."))
    reply = await converse(Model(provider), answer=SCHEMA)
    assert reply.reason is StopReason.TRUNCATED
    assert len(provider.requests) == 1
    with pytest.raises(AnswerInvalidity, match="'truncated'"):
        _ = reply.answer


async def test_after_the_last_round_the_failure_is_typed_and_nothing_is_lost():
    model, transcript = (
        ScriptedModel(["No.", "Never.", '{"n": "x"}', "Spare."]),
        Transcript([user("Go.")]),
    )
    reply = await converse(model, transcript, answer=SCHEMA)
    assert reply.reason is StopReason.ANSWER_INVALID
    assert reply.text == '{"n": "x"}'
    assert len(model.requests) == 3
    with pytest.raises(AnswerInvalidity, match=r"n: expected.*integer") as caught:
        _ = reply.answer
    assert "`text`" in caught.value.remedy
    assert list(transcript)[-len(reply) :] == list(reply)
    assert (await converse(model, transcript)).text == "Spare."


async def test_repairs_can_be_forbidden_and_use_up_turns():
    reply = await converse(ScriptedModel(["No."]), answer=SCHEMA, limits=Limits(answer_repairs=0))
    assert reply.reason is StopReason.ANSWER_INVALID
    reply = await converse(ScriptedModel(["No."]), answer=SCHEMA, limits=Limits(turns=1))
    assert reply.reason is StopReason.TURNS_LIMIT
    with pytest.raises(ConfigurationFailure, match="answer_repairs"):
        Limits(answer_repairs=-1)


async def test_without_a_wanted_form_there_is_no_answer_but_words():
    reply = await converse(ScriptedModel(["Hi."]))
    with pytest.raises(AnswerInvalidity, match="reason 'done'"):
        _ = reply.answer


async def test_a_stream_ends_with_the_answer_too():
    events = [event async for event in ScriptedModel(['{"n": 2}']).stream([], answer=SCHEMA)]
    assert isinstance(events[-1], ReplyCompleted)
    assert events[-1].reply.answer == {"n": 2}


async def test_an_impossible_form_is_refused_before_the_model_is_asked():
    model = ScriptedModel(["Never said."])
    with pytest.raises(SchemaInvalidity, match="cannot be the form of an answer"):
        await converse(model, answer=ScriptedModel)
    with pytest.raises(SchemaInvalidity, match="cannot be the form of an answer"):
        await converse(model, answer=WEATHER)
    with pytest.raises(SchemaInvalidity, match="cannot be the form of an answer"):
        await converse(model, answer="as JSON")
    with pytest.raises(SchemaInvalidity):
        await converse(model, answer={"type": "object", "properties": {"x": {"type": 7}}})
    with pytest.raises(SchemaInvalidity):
        await converse(model, answer={"city": str})
    assert not model.requests


@pytest.mark.parametrize(
    ("wanted", "text", "answer"),
    [
        (int, "5", 5),
        (int, '{"answer": 5}', 5),
        (list[int], "[1, 2]", [1, 2]),
        (Union[Weather, None], '{"answer": null}', None),
        (Union[Weather, None], f'{{"answer": {OSLO}}}', WEATHER),
        (dict[str, int], '{"a": 1}', {"a": 1}),
        ({"type": "array", "items": {"$ref": "#/$defs/n"}, "$defs": {"n": {"type": "integer"}}},
         "[3]", [3]),
        ({"$ref": "#/$defs/n", "$defs": {"n": SCHEMA}}, '{"n": 3}', {"n": 3}),
        ({"$id": "https://forms.example/n", "type": "array", "items": {"$ref": "#/$defs/n"},
          "$defs": {"n": {"type": "integer"}}}, "[3]", [3]),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "type": "array",
          "items": [{"type": "integer"}]}, "[3]", [3]),
    ],
)  # fmt: skip
def test_whatever_the_type_the_model_gives_an_object_and_the_program_gets_the_value(
    wanted, text, answer
):
    form = AnswerForm(wanted)
    assert form.schema["type"] == "object"
    assert form.read(text) == answer


@pytest.mark.parametrize(
    "text",
    [
        ' {"n": 1}\n',
        '```json\n{"n": 1}\n```',
        'Sure:\n```\n{"n": 1}\n```\nAnything else?',
        'The form {"n": 0} is filled in thus: {"n": 1}',
        'I think {of} braces. {"n": 1}',
        '{"n": "1"}',
        'The answer is {"n": 1}, and not {"m": 2}.',
    ],
)
def test_the_answer_is_found_in_what_models_write_around_it(text):
    assert AnswerForm(SCHEMA).read(text) == {"n": 1}


@pytest.mark.parametrize("text", ["", "n = 1", '{"n": NaN}', '{"n": 1', "[" * 100_000, "{" * 10**6])
def test_nonsense_is_refused_quickly(text):
    with pytest.raises(AnswerInvalidity):
        AnswerForm(SCHEMA).read(text)


def test_a_value_that_json_cannot_hold_is_named():
    with pytest.raises(AnswerInvalidity, match="JSON cannot hold"):
        AnswerForm(float).read('{"answer": 1e999}')


def test_what_a_schema_cannot_say_is_checked_by_the_type_itself():
    class Even(pydantic.BaseModel):
        n: int

        @pydantic.field_validator("n")
        @classmethod
        def check(cls, value):
            if value % 2:
                raise ValueError("odd")
            return value

    form = AnswerForm(Even)
    assert form.read('{"n": 2}') == Even(n=2)
    with pytest.raises(AnswerInvalidity, match="n: Value error, odd"):
        form.read('{"n": 3}')


def test_a_schema_that_refers_to_its_own_whole_must_be_an_object():
    with pytest.raises(SchemaInvalidity, match="refers to itself"):
        AnswerForm({"type": "array", "items": {"$ref": "#"}})
    tree = {"type": "object", "properties": {"next": {"$ref": "#"}}, "additionalProperties": False}
    assert AnswerForm(tree).read('{"next": {"next": {}}}') == {"next": {"next": {}}}


PROSE = st.text(alphabet='ab {}[]":,`\n', max_size=40)


@given(st.builds(Weather, city=st.text(), degrees=st.floats(-90, 60), sky=st.sampled_from(Sky)))
def test_any_valid_answer_is_read_back(weather):
    text = json.dumps({**asdict(weather), "sky": weather.sky.value, "days": []})
    assert AnswerForm(Weather).read(text) == weather


@given(PROSE, PROSE)
def test_prose_around_an_answer_never_breaks_the_reader(before, after):
    try:
        answer = AnswerForm(SCHEMA).read(f'{before}{{"n": 1}}{after}')
    except AnswerInvalidity:
        return
    assert answer == {"n": 1}
