# SPDX-License-Identifier: Apache-2.0
"""Schemas of strangers: what compiles, what is refused, and that nothing can freeze or crash us."""

from __future__ import annotations

import dataclasses
import enum
import subprocess
import sys
import textwrap
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from converser.exceptions import SchemaInvalidity
from converser.immutables import freeze
from converser.schemas import MAXIMUM_DEPTH, compile_schema, example_for

CITY = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 1}},
    "required": ["city"],
}
TREE = {
    "$ref": "#/$defs/node",
    "$defs": {
        "node": {
            "type": "object",
            "properties": {"below": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
            "additionalProperties": False,
        }
    },
}


def nest(levels: int, core: Any = 1) -> Any:
    for _ in range(levels):
        core = [core]
    return core


def run_apart(source: str, seconds: float = 30) -> str:
    """Runs in a process of its own: a frozen or crashed engine must not take the tests with it."""
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(source)],
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip()


# -- compiling --


def test_values_are_told_apart() -> None:
    validator = compile_schema(CITY)
    assert validator.is_valid({"city": "Oslo", "days": 1})
    assert not validator.is_valid({"city": "Oslo", "days": 0})
    assert not validator.is_valid({})
    assert validator.remarks == ()


def test_frozen_schemas_and_frozen_values_are_taken() -> None:
    validator = compile_schema(freeze({**CITY, "required": ["city", "days"]}))
    assert validator.is_valid(freeze({"city": "Oslo", "days": 1}))
    tags = compile_schema(freeze({"properties": {"tags": {"enum": [["a"], ["b"]]}}}))
    assert tags.is_valid(freeze({"tags": ["a"]}))
    assert not tags.is_valid(freeze({"tags": ["c"]}))


def test_a_later_change_of_the_schema_changes_nothing() -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}}
    validator = compile_schema(schema)
    schema["properties"]["a"]["type"] = "integer"
    assert validator.is_valid({"a": "text"})
    assert validator.violations({"a": 5})[0].expected == "string"


def test_older_drafts_are_honoured() -> None:
    schema = {"properties": {"n": {"type": "number", "minimum": 5, "exclusiveMinimum": True}}}
    old = compile_schema({"$schema": "http://json-schema.org/draft-04/schema#", **schema})
    assert not old.is_valid({"n": 5})
    assert old.is_valid({"n": 6})
    with pytest.raises(SchemaInvalidity):
        compile_schema(schema)


def test_a_misspelt_draft_address_is_still_that_draft() -> None:
    schema = {"$schema": "https://json-schema.org/draft-07/schema", "items": [{"type": "string"}]}
    assert not compile_schema(schema).is_valid([5])


def test_an_unknown_dialect_is_remarked_on() -> None:
    validator = compile_schema({"$schema": "https://example.com/dialect", **CITY})
    assert not validator.is_valid({})
    assert "https://example.com/dialect" in validator.remarks[0]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "strin"},
        {"properties": {"a": {"type": ["nothing"]}}},
        {"properties": []},
        {"required": "city"},
        {"pattern": 5},
        {"minimum": float("nan")},
        {"enum": {1, 2}},
        {"default": object()},
        {5: "x"},
        {"title": "\ud800"},
        {"minimum": 10**5000},
        {"$schema": 5},
        {"allOf": {}},
        {"anyOf": [5]},
        {"$ref": 5},
        {"$id": "http://["},
        {"$ref": "http://["},
        {"oneOf": [{"pattern": "(?=a)"}], "allOf": 5},
        [],
        "object",
        None,
        True,
    ],
)
def test_what_is_no_schema_is_refused_with_a_reason(schema: Any) -> None:
    with pytest.raises(SchemaInvalidity, match="The schema is unusable"):
        compile_schema(schema)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        *(
                            "type",
                            "properties",
                            "items",
                            "anyOf",
                            "oneOf",
                            "not",
                            "if",
                            "$ref",
                            "a",
                        ),
                        *("$defs", "$id", "$anchor", "pattern", "enum", "required"),
                        *("patternProperties", "additionalProperties", "allOf", "$schema"),
                    ]
                ),
                inner | st.sampled_from(["#", "#/a", "#/$defs/a", "object", "a", "(?=a)"]),
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
@settings(max_examples=400, deadline=None)
def test_any_data_compiles_or_is_refused_in_one_way(schema: Any) -> None:
    try:
        validator = compile_schema(schema)
    except SchemaInvalidity:
        return
    for value in ({}, {"a": [1]}, [], "a", None):
        assert validator.is_valid(value) == (not validator.violations(value))
        example_for(schema)


# -- references --


@pytest.mark.parametrize(
    "reference",
    [
        "https://example.com/x.json",
        "http://127.0.0.1:9/x.json",
        "file:///etc/passwd",
        "other.json",
        "#/$defs/absent",
        "#absent",
        "urn:example:x",
    ],
)
def test_references_out_of_the_schema_are_never_fetched(reference: str) -> None:
    with pytest.raises(SchemaInvalidity, match="leads to nothing"):
        compile_schema({"properties": {"a": {"$ref": reference}}})


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/n", "$defs": {"n": {"type": "integer"}}},
        {"$ref": "#/definitions/n", "definitions": {"n": {"type": "integer"}}},
        {"$ref": "#/$defs/a~1b", "$defs": {"a/b": {"type": "integer"}}},
        {"$ref": "#/$defs/a%20b", "$defs": {"a b": {"type": "integer"}}},
        {"$ref": "#n", "$defs": {"x": {"$anchor": "n", "type": "integer"}}},
        {"$ref": "T0", "$defs": {"x": {"$id": "T0", "type": "integer"}}},
        {
            "$id": "https://e.example/s.json",
            "$ref": "s.json#/$defs/n",
            "$defs": {"n": {"const": 5}},
        },
        {"$id": "urn:e:s", "$ref": "#/$defs/n", "$defs": {"n": {"const": 5}}},
        {"$ref": "#/elsewhere/n", "elsewhere": {"n": {"type": "integer"}}},
        {"allOf": [{"$ref": "#/allOf/1"}, {"type": "integer"}]},
        {"allOf": [{"id": "odd", "$ref": "#/$defs/n"}], "$defs": {"n": {"type": "integer"}}},
    ],
)
def test_local_references_work_and_are_explained(schema: dict[str, Any]) -> None:
    validator = compile_schema(schema)
    assert validator.is_valid(5)
    assert not validator.is_valid("x")
    (violation,) = validator.violations("x")
    assert violation.expected in ("integer", "exactly 5")


def test_recursive_schemas_are_fine() -> None:
    validator = compile_schema(TREE)
    assert validator.is_valid({"below": [{"below": []}, {}]})
    (violation,) = validator.violations({"below": [{"below": []}, {"below": [{"odd": 1}]}]})
    assert violation.path == "below[1].below[0].odd"
    assert compile_schema({"$ref": "#"}).is_valid(5)
    circle = {
        "$ref": "#/$defs/a",
        "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}},
    }
    assert compile_schema({**circle, "type": "string"}).violations(5)[0].expected == "string"


# -- patterns --


def test_a_pattern_of_exponential_cost_answers_at_once() -> None:
    answer = run_apart(r"""
        from converser.schemas import compile_schema
        validator = compile_schema({"properties": {"a": {"pattern": "^(a+)+$"}}})
        bad = {"a": "a" * 50 + "!"}
        print(validator.is_valid({"a": "aaa"}), validator.is_valid(bad), len(validator.violations(bad)))
    """)
    assert answer == "True False 1"


@pytest.mark.parametrize(
    "pattern", [r"^(?=.*\d)[a-z\d]+$", r"(a)\1", "((a{1000}){1000}){1000}", "(["]
)
def test_a_pattern_beyond_the_linear_engine_is_left_unchecked_and_remarked_on(pattern: str) -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string", "pattern": pattern}, "b": {"type": "integer"}},
        "required": ["a"],
    }
    validator = compile_schema(schema)
    assert validator.is_valid({"a": "anything"})
    assert not validator.is_valid({"a": 5})
    assert not validator.is_valid({"a": "anything", "b": "x"})
    assert len(validator.remarks) == 1
    assert "properties.a" in validator.remarks[0]


@pytest.mark.parametrize(
    "schema",
    [
        {"not": {"pattern": "^(?=x)"}},
        {"oneOf": [{"pattern": "^(?=a)"}, {"pattern": "^(?!a)"}]},
        {"if": {"pattern": "^(?=x)"}, "then": {"maxLength": 1}},
        {"not": {"$ref": "#/$defs/x"}, "$defs": {"x": {"pattern": "^(?=x)"}}},
    ],
)
def test_an_unchecked_pattern_never_refuses_what_would_fit(schema: dict[str, Any]) -> None:
    assert compile_schema(schema).is_valid("abc")


def test_an_unchecked_pattern_of_names_lets_those_names_through() -> None:
    schema = {"patternProperties": {"^(?=x)": {}}, "additionalProperties": False}
    assert compile_schema(schema).is_valid({"x1": 5})


def test_a_property_that_is_called_pattern_is_no_pattern() -> None:
    schema = {"properties": {"pattern": {"type": "string"}}, "default": {"pattern": "(?=a)"}}
    validator = compile_schema(schema)
    assert validator.remarks == ()
    assert not validator.is_valid({"pattern": 5})


# -- limits --


def _deep_schema() -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "integer"}
    for _ in range(5_000):
        schema = {"properties": {"a": schema}}
    return schema


def _doubling_schema(keyword: str) -> dict[str, Any]:
    steps = {f"d{i}": {keyword: [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(40)}
    return {"$ref": "#/$defs/d0", "$defs": {**steps, "d40": {"type": "integer"}}}


def _chained_schema() -> dict[str, Any]:
    steps = {f"d{i}": {"$ref": f"#/$defs/d{i + 1}"} for i in range(500)}
    return {"$ref": "#/$defs/d0", "$defs": {**steps, "d500": {"type": "integer"}}}


def _circular_schema() -> dict[str, Any]:
    schema: dict[str, Any] = {}
    schema["properties"] = {"a": schema, "b": schema}
    return schema


@pytest.mark.parametrize(
    "schema",
    [
        pytest.param(_deep_schema(), id="deep"),
        pytest.param(_circular_schema(), id="circular"),
        pytest.param(_doubling_schema("allOf"), id="doubling"),
        pytest.param(_doubling_schema("anyOf"), id="doubling-any"),
        pytest.param(_chained_schema(), id="chained"),
        pytest.param({"enum": list(range(100_000))}, id="many"),
        pytest.param({"description": "x" * 2_000_000}, id="long"),
    ],
)
def test_bombs_are_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(SchemaInvalidity):
        compile_schema(schema)


def test_references_that_double_below_properties_are_refused() -> None:
    steps = {
        f"d{i}": {"properties": {"a": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2}}}
        for i in range(40)
    }
    with pytest.raises(SchemaInvalidity, match="multiply"):
        compile_schema({"$ref": "#/$defs/d0", "$defs": {**steps, "d40": {}}})


def test_schemas_for_the_same_value_nest_so_deep_and_no_deeper() -> None:
    assert compile_schema(_negate(63)).is_valid({}) is False
    with pytest.raises(SchemaInvalidity, match="nest beyond the limits"):
        compile_schema(_negate(64))


def _negate(times: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(times):
        schema = {"not": schema}
    return schema


def test_values_that_are_too_deep_are_a_violation() -> None:
    validator = compile_schema({"items": {"$ref": "#"}})
    assert validator.is_valid(nest(MAXIMUM_DEPTH))
    for levels in (MAXIMUM_DEPTH + 1, 100_000):
        assert not validator.is_valid(nest(levels))
    (violation,) = validator.violations(nest(500))
    assert "levels" in violation.message
    circle: list[Any] = []
    circle += [circle, circle]
    assert not validator.is_valid(circle)


def test_a_deep_value_and_a_steep_schema_do_not_crash() -> None:
    answer = run_apart("""
        from converser.schemas import compile_schema
        inner = {"items": {"$ref": "#"}}
        for _ in range(50):
            inner = {"allOf": [inner]}
        validator = compile_schema({**inner, "type": ["array", "string"]})
        value = 5
        for _ in range(64):
            value = [value]
        print(validator.is_valid(value), len(validator.violations(value)))
    """)
    assert answer == "False 1"


def test_nested_alternatives_are_judged_and_explained_in_time() -> None:
    answer = run_apart("""
        from converser.schemas import compile_schema
        kinds = [
            {"type": "object", "required": ["op", "args"], "properties": {
                "op": {"const": f"o{i}"}, "args": {"type": "array", "items": {"$ref": "#"}}}}
            for i in range(10)
        ]
        validator = compile_schema({"oneOf": [{"type": "integer"}, *kinds]})
        value = "bad"
        for _ in range(20):
            value = {"op": "o1", "args": [value, 4]}
        (violation,) = validator.violations(value)
        print(validator.is_valid(value), violation.path.count("args"))
    """)
    assert answer == "False 20"


# -- values that are no JSON --


class Unit(str, enum.Enum):
    CELSIUS = "C"


def test_subclasses_count_as_what_json_would_make_of_them() -> None:
    validator = compile_schema({"properties": {"unit": {"enum": ["C"]}}})
    assert validator.is_valid({"unit": Unit.CELSIUS})
    assert validator.is_valid({"unit": "C", "more": (1, 2)})


@pytest.mark.parametrize(
    "value",
    [
        {"a": {1}},
        {5: 1},
        {"a": float("nan")},
        {"a": float("inf")},
        object(),
        {"a": b"x"},
        [10**5000],
    ],
)
def test_what_json_cannot_hold_never_fits(value: Any) -> None:
    validator = compile_schema({})
    assert not validator.is_valid(value)
    assert validator.violations(value)[0].expected == "JSON data"


def test_text_that_is_no_unicode_does_not_fit_where_it_is_looked_at() -> None:
    validator = compile_schema({"properties": {"a": {"pattern": "^a"}}})
    assert not validator.is_valid({"a": "\ud800"})
    assert validator.violations({"a": "\ud800"})


# -- violations --


@pytest.mark.parametrize(
    ("schema", "value", "path", "expected", "found"),
    [
        ({"type": "integer"}, "x", "", "integer", '"x"'),
        ({"properties": {"a": {"type": ["string", "null"]}}}, {"a": 5}, "a", "string or null", "5"),
        ({"properties": {"a": {"enum": ["a", "b"]}}}, {"a": "c"}, "a", 'one of "a", "b"', '"c"'),
        ({"properties": {"a": {"const": 4}}}, {"a": 5}, "a", "exactly 4", "5"),
        ({"properties": {"a": {"maxItems": 1}}}, {"a": [1, 2]}, "a", "at most 1 items", "an array"),
        ({"properties": {"a": {"minimum": 3}}}, {"a": 2}, "a", "at least 3", "2"),
        ({"properties": {"a": {"pattern": "^x"}}}, {"a": "y"}, "a", '"^x"', '"y"'),
        ({"properties": {"a": {"uniqueItems": True}}}, {"a": [1, 1]}, "a", "all differ", "[1, 1]"),
        ({"required": ["a"]}, {}, "a", "required", "nothing"),
        ({"additionalProperties": False}, {"a b": 1}, '["a b"]', "no such property", "1"),
        ({"properties": {"a": False}}, {"a": 1}, "a", "allowed", "1"),
        ({"properties": {"a": {"not": {"type": "null"}}}}, {"a": None}, "a", "fits", "null"),
        ({"items": {"items": {"type": "string"}}}, [[], ["a", 5]], "[1][1]", "string", "5"),
        ({"prefixItems": [{"type": "null"}]}, [1], "[0]", "null", "1"),
        ({"additionalProperties": {"type": "null"}}, {"a": 1}, "a", "null", "1"),
        ({"oneOf": [{"type": "integer"}, {"type": "number"}]}, 4, "", "only one", "4"),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "x", "", "integer or null", '"x"'),
    ],
)
def test_a_violation_says_where_what_was_due_and_what_is_there(
    schema: dict[str, Any], value: Any, path: str, expected: str, found: str
) -> None:
    (violation,) = compile_schema(schema).violations(value)
    assert violation.path == path
    assert expected in violation.expected
    assert found in violation.found
    assert violation.expected in violation.message
    assert violation.found in violation.message


def test_the_alternative_that_was_meant_is_the_one_explained() -> None:
    circle = {"properties": {"kind": {"const": "circle"}, "radius": {"type": "number"}}}
    square = {"properties": {"kind": {"const": "square"}, "side": {"type": "number"}}}
    validator = compile_schema({"properties": {"shapes": {"items": {"anyOf": [circle, square]}}}})
    (violation,) = validator.violations({"shapes": [{"kind": "square", "side": "x"}]})
    assert violation.path == "shapes[0].side"


def test_violations_are_few_short_and_frozen() -> None:
    validator = compile_schema({"items": {"type": "integer"}})
    violations = validator.violations(["secret " * 1000] * 100)
    assert len(violations) == 10
    assert all(len(violation.found) <= 60 for violation in violations)
    assert validator.violations([1]) == ()
    with pytest.raises(dataclasses.FrozenInstanceError):
        violations[0].path = "x"  # type: ignore[misc]


def test_control_characters_do_not_reach_a_message() -> None:
    (violation,) = compile_schema({"type": "integer"}).violations("\x1b[31m\u202e\x9b")
    assert violation.message.isprintable()


# -- examples --

_NUMBERS = st.fixed_dictionaries(
    {"type": st.sampled_from(["integer", "number"])},
    optional={"minimum": st.integers(-50, 50), "exclusiveMaximum": st.integers(60, 90)},
)
_MULTIPLES = st.builds(
    lambda low, step: {"type": "integer", "exclusiveMinimum": low, "multipleOf": step},
    st.integers(-20, 20),
    st.integers(1, 9),
)
_TEXT = st.builds(
    lambda low, more: {"type": "string", "minLength": low, "maxLength": low + more},
    st.integers(0, 9),
    st.integers(0, 9),
)
_FORMATS = st.sampled_from(
    ["date-time", "date", "time", "email", "uri", "uuid", "ipv4", "hostname"]
)
_PATTERNS = st.sampled_from(["^[a-z]+$", r"^\d{4}-\d{2}-\d{2}$", "^[A-Z]{3}$", "^https?://", r"\S"])
_LEAVES = (
    _NUMBERS
    | _MULTIPLES
    | _TEXT
    | _FORMATS.map(lambda name: {"type": "string", "format": name})
    | _PATTERNS.map(lambda pattern: {"type": "string", "pattern": pattern})
    | st.sampled_from([{"type": "boolean"}, {"type": "null"}, {"const": [1]}, {}, True])
    | st.lists(st.integers() | st.text(max_size=3), min_size=1, max_size=3).map(
        lambda choices: {"enum": choices}
    )
    | st.integers().map(lambda value: {"type": "integer", "default": value})
)


def _contain(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return (
        st.builds(
            lambda parts, closed: {
                "type": "object",
                "properties": parts,
                "required": list(parts)[::2],
                **({"additionalProperties": False} if closed else {}),
            },
            st.dictionaries(st.sampled_from("abcdef"), inner, max_size=4),
            st.booleans(),
        )
        | st.builds(
            lambda part, low: {"type": "array", "items": part, "minItems": low, "maxItems": 5},
            inner,
            st.integers(0, 3),
        )
        | st.lists(inner, min_size=1, max_size=3).map(lambda parts: {"anyOf": parts})
        | inner.map(lambda part: {"anyOf": [{"type": "null"}, part]})
    )


ORDINARY_SCHEMAS = st.recursive(_LEAVES, _contain, max_leaves=8).map(
    lambda part: {
        "type": "object",
        "$defs": {"shared": part},
        "properties": {"first": part, "second": {"$ref": "#/$defs/shared"}},
        "required": ["second"],
    }
)


@given(ORDINARY_SCHEMAS)
@settings(max_examples=200, deadline=None)
def test_examples_of_ordinary_schemas_fit_them(schema: dict[str, Any]) -> None:
    validator = compile_schema({"$schema": "http://json-schema.org/draft-07/schema#", **schema})
    example = example_for(schema)
    assert validator.is_valid(example), (example, validator.violations(example))
    assert set(example) == {"second"}


@pytest.mark.parametrize(
    "schema",
    [
        TREE,
        {"type": "array", "items": {"enum": [1, 2, 3]}, "minItems": 3, "uniqueItems": True},
        {"type": "array", "items": {"type": "string"}, "minItems": 3, "uniqueItems": True},
        {
            "type": "array",
            "items": {"type": "number", "maximum": 1},
            "minItems": 3,
            "uniqueItems": True,
        },
        {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
        {"type": "number", "exclusiveMaximum": 0},
        {"type": "object", "minProperties": 2},
        {"allOf": [{"properties": {"a": {"const": 1}}}, {"required": ["a"], "type": "object"}]},
        {"type": "string", "default": None},
        {"type": ["null", "integer"]},
        {"type": "array", "prefixItems": [{"type": "null"}, {"type": "integer"}], "minItems": 2},
        {"type": "object", "required": ["x"], "additionalProperties": {"type": "integer"}},
        {"type": "integer", "examples": [7]},
    ],
)
def test_examples_fit(schema: dict[str, Any]) -> None:
    assert compile_schema(schema).is_valid(example_for(schema))


def test_an_example_of_an_endless_schema_ends() -> None:
    schema = {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}
    assert "a" in example_for(schema)
