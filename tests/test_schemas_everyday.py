# SPDX-License-Identifier: Apache-2.0
"""Schemas that are not compiled when tools are listed: they must be sure to compile when a tool is called."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from converser import ArgumentsInvalidity
from converser.arguments import ArgumentsGate
from converser.immutables import freeze
from converser.schemas import compile_schema
from converser.schemas.everyday import Glance, is_everyday
from converser.schemas.objects import takes_object

LEAF: dict[str, Any] = {
    "type": "string",
    "title": "Ä",
    "description": "words",
    "format": "date",
    "const": None,
    "enum": [str(number) for number in range(32)],
    "default": list(range(8)),
    "minimum": 1,
    "maximum": 2.5,
    "exclusiveMinimum": -1e300,
    "exclusiveMaximum": 1e300,
    "minLength": 0,
    "maxLength": 2**31,
    "minItems": 1,
    "maxItems": 2,
    "uniqueItems": True,
    "additionalProperties": False,
}
SMALL: dict[str, Any] = {**LEAF, "items": LEAF}
PART: dict[str, Any] = {
    **LEAF,
    "items": SMALL,
    "properties": {f"p{number}": SMALL for number in range(6)},
    "required": [f"p{number}" for number in range(6)],
    "anyOf": [SMALL] * 3,
    "additionalProperties": LEAF,
}
GREATEST: dict[str, Any] = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "title": "T",
    "description": "D",
    "properties": {f"p{number}": PART for number in range(20)},
    "required": [f"p{number}" for number in range(20)],
    "additionalProperties": True,
}


def wrap(part: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": part}}


def test_the_greatest_everyday_schema_is_within_the_limits_for_all() -> None:
    assert is_everyday(GREATEST)
    assert is_everyday(freeze(GREATEST))
    assert compile_schema(GREATEST).remarks == ()


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "array"},
        {"type": ["object"]},
        {"type": "object", "$schema": "https://example.com/dialect"},
        {"type": "object", "$defs": {}},
        {"type": "object", "properties": {f"p{number}": {} for number in range(21)}},
        wrap({"type": "strnig"}),
        wrap({"pattern": "("}),
        wrap({"patternProperties": {}}),
        wrap({"$ref": "#/properties/a"}),
        wrap({"required": ["b", "b"]}),
        wrap({"enum": []}),
        wrap({"enum": [{"deep": [1]}]}),
        wrap({"minimum": "1"}),
        wrap({"minLength": -1}),
        wrap({"default": float("nan")}),
        wrap({"default": float("inf")}),
        wrap({"default": 10**6000}),
        {"type": "object", "properties": {"\ud800": {}}},
        wrap({"anyOf": []}),
        wrap({"items": {"items": {"items": {}}}}),
        wrap(True),
        {"type": "object", 1: 2},
        {"type": "object", "title": object()},
    ],
)
def test_what_may_need_a_closer_look_is_not_everyday(schema: Any) -> None:
    assert not is_everyday(schema)
    assert not is_everyday(freeze(schema))


TEXT = st.characters(exclude_categories=["Cs"])
KEYWORDS = st.sampled_from([*SMALL, *PART, "pattern", "$ref", "not", "oneOf", "multipleOf"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(TEXT) | st.just("object"),
    lambda part: (
        st.lists(part, max_size=3)
        | st.dictionaries(KEYWORDS | st.text(TEXT, max_size=3), part, max_size=4)
    ),
    max_leaves=12,
)


@st.composite
def almost_everyday(draw: st.DrawFn) -> dict[str, Any]:
    part = dict(draw(st.sampled_from([LEAF, SMALL, PART])))
    for keyword in draw(st.lists(KEYWORDS, max_size=2)):
        part[keyword] = draw(VALUES)
    schema = wrap(part)
    if draw(st.booleans()):
        schema[draw(st.sampled_from([*GREATEST]))] = draw(VALUES)
    return schema


@given(almost_everyday() | VALUES)
def test_an_everyday_schema_compiles_without_remark_and_takes_an_object(schema: Any) -> None:
    assert is_everyday(freeze(schema)) == is_everyday(schema)
    if is_everyday(schema):
        validator = compile_schema(schema)
        assert validator.remarks == ()
        assert takes_object(validator)


def test_a_gate_that_compiles_at_first_use_refuses_what_does_not_fit() -> None:
    schema = freeze(wrap({"type": "integer", "minimum": 1}))
    assert is_everyday(schema)
    gate = ArgumentsGate(schema)
    assert gate.admit({"a": "2"}) == {"a": 2}
    with pytest.raises(ArgumentsInvalidity, match="at least 1"):
        gate.admit({"a": 0})
    assert gate.admit({"a": 3}) == {"a": 3}


def test_text_that_is_no_unicode_is_found_at_first_use() -> None:
    gate = ArgumentsGate(wrap({"title": "\ud800"}))
    for _ in range(2):
        with pytest.raises(ArgumentsInvalidity, match="schema is unusable"):
            gate.admit({"a": 0})


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(2**60), 2**60),
    st.floats(),
    st.text(st.characters(codec=None, exclude_categories=())),
    st.lists(st.integers(), max_size=2),
)
PARTS = st.fixed_dictionaries(
    {"type": st.sampled_from(["string", "integer", "boolean", "number", "null", "array"])},
    optional={"title": st.text(max_size=3), "minLength": st.just(2), "default": st.just(1)},
)


@given(
    properties=st.dictionaries(st.sampled_from("abc"), PARTS),
    required=st.lists(st.sampled_from("abc"), unique=True),
    arguments=st.dictionaries(st.sampled_from("abcd"), VALUES),
)
def test_what_is_admitted_at_a_glance_fits_the_schema(
    properties: dict[str, Any], required: list[str], arguments: dict[str, Any]
) -> None:
    schema = {"type": "object", "properties": properties, "required": required}
    assert is_everyday(schema)
    if Glance(schema).admits(arguments):
        assert compile_schema(schema).is_valid(arguments)


def test_plain_arguments_are_admitted_at_a_glance_as_a_copy() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "integer", "default": 3}},
        "required": ["a"],
    }
    glance = Glance(schema)
    assert glance.admits({"a": "x", "b": 5})
    assert not any(
        glance.admits(other)
        for other in ({"b": 5}, {"a": 1}, {"a": "x", "b": True}, {"a": "x", "c": 1}, {"a": "é"})
    )
    gate = ArgumentsGate(schema)
    arguments = {"a": "x"}
    for _ in range(2):
        admitted = gate.admit(arguments)
        assert admitted == arguments
        assert admitted is not arguments
