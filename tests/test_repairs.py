# SPDX-License-Identifier: Apache-2.0
"""Repairs: what is mended, what is left alone, and that nothing is ever lost."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from converser.exceptions import ArgumentsInvalidity, SchemaInvalidity
from converser.immutables import freeze
from converser.repairs import repair
from converser.schemas import compile_schema

DRAFT_4 = "http://json-schema.org/draft-04/schema#"


def mend(part: Any, value: Any, **more: Any) -> Any:
    """Mends one property, and says what became of it."""
    repaired, _ = repair({"a": value}, {"type": "object", "properties": {"a": part}, **more})
    return repaired.get("a", "absent")


@pytest.mark.parametrize(
    ("part", "value", "mended"),
    [
        ({"type": "integer"}, "5", 5),
        ({"type": "integer"}, "-12", -12),
        ({"type": "integer"}, "0", 0),
        ({"type": "integer"}, "5.0", 5),
        ({"type": "integer"}, "123456789012345678901234567890", 123456789012345678901234567890),
        ({"type": "number"}, "5", 5),
        ({"type": "number"}, "0.25", 0.25),
        ({"type": "number"}, "-0.1", -0.1),
        ({"type": ["integer", "null"]}, "5", 5),
        ({"type": ["integer", "number"]}, "5", 5),
        ({"type": ["integer", "boolean"]}, "true", True),
        ({"type": "boolean"}, "true", True),
        ({"type": "boolean"}, "false", False),
        ({"type": "object"}, '{"b": [1, null]}', {"b": [1, None]}),
        ({"type": "array"}, "[1, 2.5]", [1, 2.5]),
        ({"type": ["array", "object"]}, "[]", []),
        ({"type": "array", "items": {"type": "integer"}}, '["1", 2]', [1, 2]),
        ({"type": "array", "items": {"type": "integer"}}, ["1", 2], [1, 2]),
        ({"prefixItems": [{"type": "integer"}, {}]}, ["1", "1"], [1, "1"]),
        ({"properties": {"b": {"type": "integer"}}}, {"b": "1", "c": "1"}, {"b": 1, "c": "1"}),
        ({"additionalProperties": {"type": "integer"}}, {"b": "1"}, {"b": 1}),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "5", 5),
        ({"anyOf": [{"type": "integer"}, {"type": "number"}]}, "5", 5),
        ({"oneOf": [{"type": "array"}, {"type": "boolean"}]}, "[]", []),
        ({"allOf": [{"type": "integer"}, {"minimum": 3}]}, "5", 5),
    ],
)
def test_what_is_free_of_loss_is_mended(part: Any, value: Any, mended: Any) -> None:
    result = mend(part, value)
    assert result == mended
    assert json.dumps(result) == json.dumps(mended)


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ({"type": "integer"}, "5.5"),
        ({"type": "integer"}, "05"),
        ({"type": "integer"}, "+5"),
        ({"type": "integer"}, " 5"),
        ({"type": "integer"}, "5 "),
        ({"type": "integer"}, "5\n"),
        ({"type": "integer"}, "-0"),
        ({"type": "integer"}, "-0.0"),
        ({"type": "integer"}, "1e3"),
        ({"type": "integer"}, "1_000"),
        ({"type": "integer"}, "٣"),
        ({"type": "integer"}, ""),
        ({"type": "integer"}, "9" * 5000),
        ({"type": "integer"}, True),
        ({"type": "integer"}, 5.5),
        ({"type": "number"}, "1e3"),
        ({"type": "number"}, "nan"),
        ({"type": "number"}, "Infinity"),
        ({"type": "number"}, "0.1000000000000000055511151231257827"),
        ({"type": "number"}, "9" * 400 + ".5"),
        ({"type": "boolean"}, "True"),
        ({"type": "boolean"}, "yes"),
        ({"type": "boolean"}, 1),
        ({"type": "string"}, 5),
        ({"type": "null"}, "null"),
        ({"type": "object"}, "[]"),
        ({"type": "object"}, '{"b": 1, "b": 2}'),
        ({"type": "object"}, '{"b": NaN}'),
        ({"type": "object"}, '{"b": 0.1000000000000000055511151231257827}'),
        ({"type": "object"}, "{"),
        ({"type": "array"}, "[" * 100_000),
        ({"type": "array"}, "[" * 200 + "]" * 200),
        ({"type": "array"}, "a"),
        ({"type": "array"}, 5),
        ({"type": ["string", "object"], "maxLength": 1}, "{}"),
        ({"enum": ["Celsius"]}, "celsius"),
        ({"enum": [1, 2]}, "1"),
        ({"type": "string", "maxLength": 2}, "long"),
        ({"additionalProperties": False}, {"odd": 1}),
        ({"maxItems": 1}, [1, 2]),
        ({"anyOf": [{"type": "array"}, {"type": "string", "maxLength": 1}]}, "abc"),
        ({"anyOf": [{"type": "object"}, {"const": 5}]}, "5"),
    ],
)
def test_what_would_lose_or_guess_is_left_alone(part: Any, value: Any) -> None:
    result = mend(part, value)
    assert result == value
    assert type(result) is type(value)


def test_alternatives_that_disagree_are_left_alone() -> None:
    one = {"properties": {"x": {"type": "integer"}}, "required": ["x"]}
    other = {"properties": {"y": {"type": "integer"}}, "required": ["y"], "type": "object"}
    value = {"x": "1", "y": "2"}
    assert mend({"anyOf": [one, other]}, value) == value
    assert mend({"anyOf": [one, {**other, "required": ["z"]}]}, value) == {"x": 1, "y": "2"}


def test_an_integral_float_becomes_an_integer_only_where_the_schema_demands_one() -> None:
    assert repr(mend({"type": "integer"}, 5.0, **{"$schema": DRAFT_4})) == "5"
    assert repr(mend({"type": "integer"}, 5.0)) == "5.0"
    assert repr(mend({"type": "integer"}, 1e300, **{"$schema": DRAFT_4})) == "1e+300"


def test_a_missing_required_property_gets_its_default() -> None:
    schema = {
        "type": "object",
        "properties": {
            "unit": {"type": "string", "default": "C"},
            "days": {"type": "integer", "default": 3},
            "odd": {"type": "integer", "default": "none"},
        },
        "required": ["unit"],
    }
    repaired, notes = repair({}, schema)
    assert repaired == {"unit": "C"}
    assert notes == ('unit: the default "C" was filled in',)
    assert repair({}, {**schema, "required": ["odd"]}) == ({}, ())


def test_a_default_is_not_shared_with_the_schema() -> None:
    schema = {"properties": {"tags": {"type": "array", "default": []}}, "required": ["tags"]}
    validator = compile_schema(schema)
    repair({}, validator)[0]["tags"].append("x")
    assert repair({}, validator)[0] == {"tags": []}


def test_an_explicit_null_is_left_out_only_where_it_is_neither_taken_nor_required() -> None:
    assert mend({"type": "string"}, None) == "absent"
    assert mend({"type": "string"}, None, required=["a"]) is None
    assert mend({"type": ["string", "null"]}, None) is None
    repaired, _ = repair({"b": None}, {"additionalProperties": {"type": "string"}})
    assert repaired == {"b": None}


def test_repairs_go_through_references_however_deep() -> None:
    schema = {
        "$ref": "#/$defs/node",
        "$defs": {
            "node": {
                "type": "object",
                "properties": {
                    "size": {"type": "integer"},
                    "below": {"type": "array", "items": {"$ref": "#/$defs/node"}},
                },
            }
        },
    }
    value = {"size": 1, "below": [{"below": [{"size": "2"}]}]}
    repaired, notes = repair(value, schema)
    assert repaired == {"size": 1, "below": [{"below": [{"size": 2}]}]}
    assert notes == ('below[0].below[0].size: the text "2" was read as the integer 2',)
    assert value["below"][0]["below"][0]["size"] == "2"  # type: ignore[index]


def test_notes_are_short_and_tell_each_repair_once() -> None:
    schema = {"properties": {"a": {"type": "array"}, "b": {"anyOf": [{"type": "integer"}]}}}
    _, notes = repair({"a": json.dumps(["secret"] * 100), "b": "5"}, schema)
    assert len(notes) == 2
    assert all(len(note) < 200 for note in notes)
    assert notes[1] == 'b: the text "5" was read as the integer 5'


def test_frozen_arguments_are_mended_in_a_copy() -> None:
    repaired, _ = repair(
        freeze({"a": ["1"]}), {"properties": {"a": {"items": {"type": "integer"}}}}
    )
    assert repaired == {"a": [1]}
    assert type(repaired) is dict
    assert type(repaired["a"]) is list


def test_what_cannot_be_looked_at_is_refused() -> None:
    with pytest.raises(ArgumentsInvalidity):
        repair({"a": {1, 2}}, {})
    with pytest.raises(SchemaInvalidity):
        repair({}, {"type": "nonsense"})


def test_circles_and_many_alternatives_come_to_an_end() -> None:
    circle = {
        "$ref": "#/$defs/a",
        "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}, {"type": "null"}]}},
    }
    repair({"x": 1}, {**circle, "required": ["y"]})
    kinds = [
        {"properties": {"op": {"const": i}, "args": {"items": {"$ref": "#"}}}, "required": ["op"]}
        for i in range(10)
    ]
    value: Any = {"op": "bad"}
    for _ in range(20):
        value = {"op": 1, "args": [value]}
    assert repair(value, {"type": "object", "oneOf": kinds}) == (value, ())


_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | st.floats(allow_nan=False, allow_infinity=False, width=16)
    | st.sampled_from(["5", "-3", "0.5", "true", "[]", "{}", '["1"]', '{"a": "1"}', "text", ""]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=6,
)
_TYPES = st.sampled_from(["integer", "number", "boolean", "string", "null", "array", "object"])
_PARTS = st.recursive(
    st.lists(_TYPES, min_size=1, max_size=3, unique=True).map(lambda kinds: {"type": kinds})
    | st.just({"type": "integer", "default": 3})
    | st.just({}),
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: {"anyOf": parts})
        | st.lists(inner, min_size=1, max_size=3).map(lambda parts: {"oneOf": parts})
        | inner.map(lambda part: {"type": "array", "items": part})
        | st.dictionaries(st.sampled_from("abc"), inner, max_size=3).map(
            lambda parts: {"type": "object", "properties": parts, "required": list(parts)[:1]}
        )
    ),
    max_leaves=6,
)
SCHEMAS = st.dictionaries(st.sampled_from("abc"), _PARTS, max_size=3).flatmap(
    lambda parts: st.sets(st.sampled_from("abc")).map(
        lambda names: {"type": "object", "properties": parts, "required": sorted(names)}
    )
)
ARGUMENTS = st.dictionaries(st.sampled_from("abc"), _VALUES, max_size=3)


@given(SCHEMAS, ARGUMENTS)
@settings(max_examples=300, deadline=None)
def test_valid_arguments_are_never_changed_and_the_given_ones_never_touched(
    schema: dict[str, Any], arguments: dict[str, Any]
) -> None:
    before = json.dumps(arguments)
    validator = compile_schema(schema)
    repaired, notes = repair(arguments, validator)
    assert json.dumps(arguments) == before
    if validator.is_valid(arguments):
        assert json.dumps(repaired) == before
    assert bool(notes) == (
        json.dumps(repaired, sort_keys=True) != json.dumps(arguments, sort_keys=True)
    )


@given(SCHEMAS, ARGUMENTS)
@settings(max_examples=200, deadline=None)
def test_a_second_repair_finds_nothing_new_once_the_arguments_fit(
    schema: dict[str, Any], arguments: dict[str, Any]
) -> None:
    validator = compile_schema(schema)
    repaired, _ = repair(arguments, validator)
    if validator.is_valid(repaired):
        assert repair(repaired, validator) == (repaired, ())


@given(st.integers() | st.floats(allow_nan=False, allow_infinity=False))
@settings(max_examples=300, deadline=None)
def test_a_number_read_from_text_is_exactly_that_number(number: float) -> None:
    text = json.dumps(number)
    result = mend({"type": "number"}, text)
    assert result == text if "e" in text else json.dumps(result) == text
