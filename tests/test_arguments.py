# SPDX-License-Identifier: Apache-2.0
"""The gate: what passes, what is mended, and how a refusal reads to a model."""

from __future__ import annotations

import json
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from converser.arguments import ArgumentsGate, Strictness
from converser.exceptions import ArgumentsInvalidity, SchemaInvalidity
from converser.immutables import freeze
from converser.schemas import compile_schema

FORECAST: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer", "minimum": 1, "maximum": 14},
        "unit": {"enum": ["C", "F"], "default": "C"},
        "filters": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"field": {"type": "string"}},
                "required": ["field"],
            },
        },
    },
    "required": ["city", "days"],
}


def refuse(gate: ArgumentsGate, arguments: Any) -> str:
    with pytest.raises(ArgumentsInvalidity) as caught:
        gate.admit(arguments)
    return str(caught.value)


# -- admission --


def test_arguments_that_fit_pass_as_they_are() -> None:
    arguments = {"city": "Oslo", "days": 3, "filters": [{"field": "wind"}]}
    admitted = ArgumentsGate(FORECAST).admit(arguments)
    assert admitted == arguments
    assert admitted is not arguments
    assert "unit" not in admitted


@pytest.mark.parametrize("wrap", [freeze, MappingProxyType])
def test_any_mapping_comes_out_as_plain_data(wrap: Any) -> None:
    admitted = ArgumentsGate(FORECAST).admit(
        wrap({"city": "Oslo", "days": 3, "filters": freeze([{"field": "wind"}])})
    )
    assert type(admitted) is dict
    assert type(admitted["filters"]) is list
    assert type(admitted["filters"][0]) is dict


def test_arguments_are_mended_when_nothing_is_lost() -> None:
    arguments = {"city": "Oslo", "days": "3", "filters": '[{"field": "wind"}]', "unit": None}
    admitted = ArgumentsGate(FORECAST).admit(arguments)
    assert admitted == {"city": "Oslo", "days": 3, "filters": [{"field": "wind"}]}
    assert arguments["days"] == "3"


def test_a_gate_without_repair_mends_nothing() -> None:
    gate = ArgumentsGate(FORECAST, repair=False)
    assert "days: expected integer" in refuse(gate, {"city": "Oslo", "days": "3"})


# -- refusal --


def test_a_refusal_names_paths_expectations_findings_and_a_valid_example() -> None:
    gate = ArgumentsGate(FORECAST)
    text = refuse(gate, {"days": 99, "unit": "K", "filters": [{"field": "a"}, {"field": 5}, {}]})
    assert "- city: expected string (it is required), found nothing" in text
    assert "- days: expected at most 14, found 99" in text
    assert '- unit: expected one of "C", "F", found "K"' in text
    assert "- filters[1].field: expected string, found 5" in text
    assert "- filters[2].field: expected string (it is required), found nothing" in text
    example = json.loads(text.partition("A valid example: ")[2].partition("\n")[0])
    assert gate.admit(example) == example


def test_a_refusal_tells_of_a_name_that_was_perhaps_meant_for_one_that_is_missing() -> None:
    text = refuse(ArgumentsGate(FORECAST), {"town": "Oslo", "days": 3})
    assert 'city: expected string (it is required), found nothing (but "town", which is not' in text
    closed = ArgumentsGate({**FORECAST, "additionalProperties": False})
    assert "found nothing\n" in refuse(closed, {"town": "Oslo", "days": 3})


def test_a_refusal_tells_of_what_remains_after_mending() -> None:
    text = refuse(ArgumentsGate(FORECAST), {"city": "Oslo", "days": "99"})
    assert "- days: expected at most 14, found 99" in text


def test_the_example_shows_what_went_wrong_though_it_is_optional() -> None:
    text = refuse(ArgumentsGate(FORECAST), {"city": "Oslo", "days": 3, "unit": "K"})
    example = json.loads(text.partition("A valid example: ")[2].partition("\n")[0])
    assert example.keys() == {"city", "days", "unit"}
    assert example["unit"] == "C"


def test_the_example_leaves_out_an_optional_property_that_it_cannot_make() -> None:
    odd = {"pattern": "^q{7}z$", "type": "string"}
    schema = {"properties": {"a": {"type": "integer"}, "b": odd}, "required": ["a"]}
    assert 'example: {"a": 1}' in refuse(ArgumentsGate(schema), {"a": 1, "b": "x"})


def test_an_example_that_would_not_fit_is_not_given() -> None:
    gate = ArgumentsGate({"properties": {"a": {"pattern": "^q{7}z$"}}, "required": ["a"]})
    assert "example" not in refuse(gate, {})


def test_a_refusal_never_repeats_arguments_in_bulk() -> None:
    secret = "token-" + "x" * 10_000
    text = refuse(ArgumentsGate(FORECAST), {"city": [secret], "days": secret, secret: 1})
    assert len(text) < 1_000


@pytest.mark.parametrize("arguments", [None, [], "text", 5, [("city", "Oslo")], object()])
@pytest.mark.parametrize("strictness", list(Strictness))
def test_what_is_no_mapping_is_refused(arguments: Any, strictness: Strictness) -> None:
    assert "object" in refuse(ArgumentsGate(FORECAST, strictness=strictness), arguments)


@pytest.mark.parametrize("odd", [{1}, b"x", float("nan"), {5: 5}, object()])
def test_what_json_cannot_hold_is_refused(odd: Any) -> None:
    assert "unusable" in refuse(ArgumentsGate({}), {"a": odd})


def test_arguments_that_are_too_deep_are_refused() -> None:
    deep: Any = {}
    for _ in range(100_000):
        deep = {"a": deep}
    assert "levels" in refuse(ArgumentsGate({"additionalProperties": {"$ref": "#"}}), deep)


# -- strictness --


def test_standard_takes_undeclared_properties_where_the_schema_is_silent() -> None:
    arguments = {"city": "Oslo", "days": 3, "odd": 1}
    assert ArgumentsGate(FORECAST).admit(arguments) == arguments


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        ({"city": "Oslo", "days": 3, "odd": 1}, "odd"),
        ({"city": "Oslo", "days": 3, "filters": [{"field": "a", "odd": 1}]}, "filters[0].odd"),
    ],
)
@pytest.mark.parametrize("dialect", ["", "http://json-schema.org/draft-07/schema#"])
def test_strict_refuses_undeclared_properties_at_every_level(
    arguments: dict[str, Any], path: str, dialect: str
) -> None:
    schema = {"$schema": dialect, **FORECAST} if dialect else FORECAST
    gate = ArgumentsGate(schema, strictness=Strictness.STRICT)
    text = refuse(gate, arguments)
    assert f"- {path}: expected no such property" in text
    assert gate.admit({"city": "Oslo", "days": 3, "filters": [{"field": "a"}]})
    assert gate.remarks == ()


@pytest.mark.parametrize(
    ("schema", "arguments"),
    [
        ({"properties": {"a": {}}, "additionalProperties": True}, {"b": 1}),
        ({"properties": {"a": {}}, "patternProperties": {"^x": {}}}, {"x1": 1}),
        ({"properties": {"a": {"type": "object"}}}, {"a": {"free": 1}}),
        ({"type": "object"}, {"free": 1}),
        ({"properties": {"a": {}}, "allOf": [{"properties": {"b": {}}}]}, {"a": 1, "b": 1}),
        ({"$ref": "#/$defs/x", "$defs": {"x": {"properties": {"a": {}}}}}, {"a": 1}),
        ({"anyOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]}, {"b": 1, "a": 1}),
    ],
)
def test_strict_takes_what_is_declared_in_any_way(schema: Any, arguments: dict[str, Any]) -> None:
    assert ArgumentsGate(schema, strictness=Strictness.STRICT).admit(arguments) == arguments


@pytest.mark.parametrize(
    ("schema", "arguments"),
    [
        ({"properties": {"a": {}}, "allOf": [{"properties": {"b": {}}}]}, {"c": 1}),
        ({"$ref": "#/$defs/x", "$defs": {"x": {"properties": {"a": {}}}}}, {"c": 1}),
        ({"properties": {"n": {"$ref": "#"}}}, {"n": {"n": {"c": 1}}}),
        (
            {"properties": {"a": {"anyOf": [{"properties": {"b": {}}}, {"type": "null"}]}}},
            {"a": {"c": 1}},
        ),
        ({"properties": {"if": {"properties": {"b": {}}}}}, {"if": {"c": 1}}),
    ],
)
def test_strict_sees_through_references_and_combinations(schema: Any, arguments: Any) -> None:
    assert ArgumentsGate(schema).admit(arguments) == arguments
    assert "c: expected no such property" in refuse(
        ArgumentsGate(schema, strictness=Strictness.STRICT), arguments
    )


def test_strict_says_that_it_cannot_be_for_draft_4() -> None:
    schema = {"$schema": "http://json-schema.org/draft-04/schema#", **FORECAST}
    gate = ArgumentsGate(schema, strictness=Strictness.STRICT)
    assert "draft 4" in gate.remarks[0]
    assert gate.admit({"city": "Oslo", "days": 3, "odd": 1})


def test_off_checks_and_mends_nothing() -> None:
    gate = ArgumentsGate({"type": "nonsense"}, strictness=Strictness.OFF)
    assert gate.admit({"days": "3", "odd": None}) == {"days": "3", "odd": None}
    assert Strictness("off") is Strictness.OFF


# -- schemas --


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string"},
        {"type": ["array", "null"]},
        {"enum": [1]},
        {"const": []},
        {"$ref": "#/$defs/x", "$defs": {"x": {"type": "array"}}},
        {"allOf": [{}, {"type": "integer"}]},
        {"anyOf": [{"type": "integer"}, False]},
    ],
)
def test_a_schema_that_takes_no_object_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(SchemaInvalidity, match="does not take an object"):
        ArgumentsGate(schema)


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": ["object", "null"]},
        {"anyOf": [{"type": "null"}, {}]},
        {"enum": [1, {}]},
        {"$ref": "#"},
    ],
)
def test_a_schema_that_takes_an_object_is_fine(schema: dict[str, Any]) -> None:
    assert ArgumentsGate(schema).admit({}) == {}


def test_a_bad_schema_is_refused_when_the_gate_is_made() -> None:
    with pytest.raises(SchemaInvalidity):
        ArgumentsGate({"type": "nonsense"})


@pytest.mark.parametrize("strictness", [Strictness.STANDARD, Strictness.STRICT])
def test_remarks_on_the_schema_are_kept(strictness: Strictness) -> None:
    gate = ArgumentsGate({"properties": {"a": {"pattern": "(?=a)"}}}, strictness=strictness)
    assert len(gate.remarks) == 1


# -- properties --

_TYPES = st.sampled_from(["integer", "number", "boolean", "string", "array", "object", "null"])
_SCHEMAS = st.dictionaries(st.sampled_from("abcd"), _TYPES.map(lambda kind: {"type": kind})).map(
    lambda parts: {"type": "object", "properties": parts, "required": sorted(parts)[:2]}
)
_ARGUMENTS = st.dictionaries(
    st.sampled_from("abcde"),
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["5", "0.5", "true", "[]", "{}", "x", "\ud800"])
    | st.lists(st.integers(), max_size=2),
)


@given(_SCHEMAS, _ARGUMENTS, st.sampled_from([Strictness.STANDARD, Strictness.STRICT]))
@settings(max_examples=300, deadline=None)
def test_what_is_admitted_fits_and_everything_else_is_refused(
    schema: dict[str, Any], arguments: dict[str, Any], strictness: Strictness
) -> None:
    validator = compile_schema(schema)
    try:
        admitted = ArgumentsGate(schema, strictness=strictness).admit(arguments)
    except ArgumentsInvalidity:
        assert strictness is Strictness.STRICT or not validator.is_valid(arguments)
        return
    assert validator.is_valid(admitted)
    if validator.is_valid(arguments):
        assert admitted == arguments
    if strictness is Strictness.STRICT and schema["properties"]:
        assert admitted.keys() <= schema["properties"].keys()
