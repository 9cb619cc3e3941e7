# SPDX-License-Identifier: Apache-2.0
"""Translated schemas are not narrower than the tool's own.

Alternatives at the top are closed ones here: of open ones, `open_top` gives hints that are narrower.
"""

from __future__ import annotations

import json
import re

import jsonschema_rs
import pytest
from hypothesis import given, settings, strategies as st

from converser.providers.anthropic_dialect import translate_for_anthropic
from converser.providers.dialects import fit_openai, is_strict, open_top
from converser.providers.gemini_dialect import translate_for_gemini
from converser.providers.references import resolve_reference

DIALECT = "https://json-schema.org/draft/2020-12/schema"
NAMES = st.sampled_from(["a", "b", "c"])
LEAVES = st.sampled_from(
    [
        True,
        {},
        {"type": "string"},
        {"type": "integer", "exclusiveMinimum": 0},
        {"type": ["string", "null"], "enum": ["x", None]},
        {"const": 1},
        {"$ref": "#/$defs/node"},
        {"type": "string", "format": "email", "pattern": "^x"},
    ]
)


def objects(details):
    return st.fixed_dictionaries(
        {"type": st.just("object"), "properties": st.dictionaries(NAMES, details, max_size=3)},
        optional={
            "required": st.lists(NAMES, unique=True, max_size=2),
            "additionalProperties": st.booleans() | details,
        },
    )


def closed(details):
    return objects(details).map(lambda schema: {**schema, "additionalProperties": False})


DETAILS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        objects(inner),
        st.builds(lambda items: {"type": "array", "items": items}, inner),
        st.builds(lambda one, two: {"anyOf": [one, two]}, inner, inner),
        st.builds(lambda one, two: {"oneOf": [one, two]}, inner, inner),
        st.builds(lambda one, two: {"allOf": [one, two]}, inner, inner),
    ),
    max_leaves=6,
)
NODE = {"type": "object", "properties": {"a": {"$ref": "#/$defs/node"}, "b": {"type": "integer"}}}
SCHEMAS = st.builds(
    lambda base, extra: {**base, **extra, "$defs": {"node": NODE}},
    objects(DETAILS),
    st.fixed_dictionaries(
        {},
        optional={
            "anyOf": st.lists(closed(DETAILS), min_size=1, max_size=2),
            "oneOf": st.lists(closed(DETAILS), min_size=1, max_size=2),
            "allOf": st.lists(objects(DETAILS), min_size=1, max_size=2),
            "$ref": st.just("#/$defs/node"),
        },
    ),
)
VALUES = st.recursive(
    st.sampled_from([None, True, 0, 1, "x", "y"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
ARGUMENTS = st.dictionaries(NAMES, VALUES, max_size=3)


@settings(max_examples=300, deadline=None)
@given(schema=SCHEMAS, arguments=ARGUMENTS)
def test_an_opened_schema_takes_all_that_the_original_takes(schema, arguments):
    opened = open_top(schema)
    assert opened["type"] == "object"
    assert not opened.keys() & {"anyOf", "oneOf", "allOf", "$ref", "not"}
    if jsonschema_rs.is_valid(schema, arguments):
        assert jsonschema_rs.is_valid(opened, arguments)


PLAIN = LEAVES.filter(lambda leaf: leaf not in (True, {}))
CLOSED = st.recursive(
    PLAIN,
    lambda inner: st.one_of(
        closed(inner),
        st.builds(lambda items, least: {"type": "array", "items": items, "minItems": least},
                  inner, st.integers(0, 2)),
        st.builds(lambda key, one, two: {key: [one, two]},
                  st.sampled_from(["anyOf", "oneOf", "allOf"]), inner, inner),
    ),
    max_leaves=6,
)  # fmt: skip
LEAF = {"type": ["object", "null"], "properties": {"b": {"type": "integer"}}}


@settings(max_examples=300, deadline=None)
@given(schema=closed(CLOSED), arguments=ARGUMENTS)
def test_answers_for_anthropic_are_not_narrower_where_objects_are_closed(schema, arguments):
    schema = {**schema, "$defs": {"node": {**LEAF, "additionalProperties": False}}}
    translated = translate_for_anthropic(schema)
    assert translated is not None
    if jsonschema_rs.is_valid(schema, arguments):
        assert jsonschema_rs.is_valid(translated, arguments)


def list_keywords(schema):
    """All keywords of a schema and of those in it."""
    yield from schema
    for name in schema.get("properties", {}):
        yield from list_keywords(schema["properties"][name])
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from list_keywords(schema[key])
    for part in schema.get("anyOf", ()):
        yield from list_keywords(part)


def list_undefined(schema):
    """The names that are required, and are no properties, in a schema and in those in it."""
    properties = schema.get("properties", {})
    yield from (name for name in schema.get("required", ()) if name not in properties)
    for part in (*properties.values(), *schema.get("anyOf", ()), *list_items(schema)):
        yield from list_undefined(part)


def list_items(schema):
    """The schemas for what is in an array."""
    return [part for part in (schema.get("items"), *schema.get("prefixItems", ())) if part]


GEMINI = {
    *("type", "title", "description", "minItems", "maxItems", "minimum", "maximum", "required"),
    *("properties", "items", "prefixItems", "additionalProperties", "enum", "anyOf", "format"),
}


@settings(max_examples=300, deadline=None)
@given(schema=SCHEMAS, arguments=ARGUMENTS)
def test_gemini_gets_only_what_it_knows_and_nothing_narrower(schema, arguments):
    translated = translate_for_gemini(schema)
    assert set(list_keywords(translated)) <= GEMINI
    assert not list(list_undefined(translated))
    if jsonschema_rs.is_valid(schema, arguments):
        assert jsonschema_rs.is_valid(translated, arguments)


def test_gemini_is_told_in_words_what_its_subset_cannot_say():
    text = {"type": "string", "pattern": "^x", "format": "email", "description": "Who."}
    schema = {"type": "object", "properties": {"a": text}}
    (detail,) = translate_for_gemini(schema)["properties"].values()
    assert detail["type"] == "string"
    assert "format" not in detail
    assert detail["description"].startswith("Who. (")
    assert "email" in detail["description"]
    assert "^x" in detail["description"]


def test_references_are_written_out_for_gemini_and_recursion_ends():
    pets = {"allOf": [{"$ref": "#/$defs/pet"}], "description": "The first."}
    pet = {
        "type": "object",
        "properties": {"n": {"type": "string"}, "young": {"$ref": "#/$defs/pet"}},
    }
    schema = {"type": "object", "properties": {"pet": pets}, "$defs": {"pet": pet}}
    translated = translate_for_gemini(schema)
    first = translated["properties"]["pet"]
    assert first["description"] == "The first."
    assert first["properties"]["young"]["properties"]["n"] == {"type": "string"}
    end = first["properties"]["young"]["properties"]["young"]
    assert end == {"type": "object", "description": "As 'pet' above."}


def test_a_schema_that_multiplies_stays_small_for_gemini():
    definitions = {"n0": {"type": "string"}}
    for level in range(1, 40):
        inner = {"$ref": f"#/$defs/n{level - 1}"}
        definitions[f"n{level}"] = {"type": "object", "properties": {"a": inner, "b": inner}}
    schema = {"type": "object", "properties": {"x": {"$ref": "#/$defs/n39"}}, "$defs": definitions}
    assert len(list(list_keywords(translate_for_gemini(schema)))) < 50_000


@given(schema=objects(DETAILS))
def test_a_schema_without_combinations_at_its_top_stays_as_it_is(schema):
    """But that `true` is written as a schema: llama.cpp, Ollama and others refuse all tools for it."""
    written = re.sub(
        r'("additionalProperties": true)|\btrue\b', lambda m: m[1] or "{}", json.dumps(schema)
    )
    assert open_top(schema) == json.loads(written)


def test_gemini_is_not_shut_out_of_what_names_are_made_of_and_hears_no_empty_default():
    closed = {"type": "object", "patternProperties": {"^x": {}}, "additionalProperties": False}
    optional = {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None}
    schema = {"type": "object", "properties": {"a": closed, "b": optional}}
    properties = translate_for_gemini(schema)["properties"]
    assert "additionalProperties" not in properties["a"]
    assert "patternProperties" in properties["a"]["description"]
    assert "description" not in properties["b"]


CLOSED = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}


def nest(detail):
    return {**CLOSED, "properties": {"a": detail}, "required": ["a"]}


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        (CLOSED, True),
        (nest({"type": "string"}), True),
        (nest({"type": ["string", "null"]}), True),
        (nest({"anyOf": [{"type": "string"}, CLOSED]}), True),
        (nest({"type": "array", "items": nest({"type": "integer"})}), True),
        (nest({"$ref": "#"}), True),
        ({**nest({"$ref": "#/$defs/n"}), "$defs": {"n": CLOSED}}, True),
        ({**nest({"$ref": "#/$defs/n"}), "$defs": {"n": {"type": "object"}}}, False),
        ({**CLOSED, "additionalProperties": True}, False),
        ({"type": "object", "properties": {}}, False),
        ({**nest({"type": "string"}), "required": []}, False),
        (nest({}), False),
        (nest(True), False),
        (nest({"type": "array"}), False),
        (nest({"type": "string", "minLength": 1}), False),
        (nest({"type": "string", "format": "uri"}), False),
        (nest({"type": "string", "default": "x"}), False),
        (nest({"oneOf": [{"type": "string"}]}), False),
        (nest({"type": "object"}), False),
        ({"anyOf": [CLOSED]}, False),
    ],
)
def test_strict_mode_is_for_closed_schemas_only(schema, strict):
    assert is_strict(schema) is strict


def test_patterns_that_look_round_are_told_in_words_for_openai():
    look = r"^(?!.*\.\.)[a-z.]+$"
    text = {"type": "string", "pattern": look, "description": "A name."}
    schema = nest({"anyOf": [text, {"type": "array", "items": {"$ref": "#/$defs/n"}}]})
    schema |= {"$defs": {"n": {"type": "string", "pattern": look}}, "enum": [{"pattern": look}]}
    fitted = fit_openai(schema)
    one, other = fitted["properties"]["a"]["anyOf"]
    assert one["description"].startswith("A name. (JSON Schema also says: ")
    assert json.dumps(look) in one["description"]
    assert "pattern" not in (one.keys() | fitted["$defs"]["n"].keys())
    assert other == {"type": "array", "items": {"$ref": "#/$defs/n"}}
    assert fitted["enum"] == schema["enum"]
    plain = nest({"type": "string", "pattern": "^(?:a|b)$"})
    assert fit_openai(plain) == plain
    named = nest({"type": "string"}) | {"properties": {"pattern": {"const": look}}}
    assert fit_openai(named) == named


def test_a_schema_that_is_too_deep_is_not_strict():
    schema = CLOSED
    for _ in range(12):
        schema = nest(schema)
    assert not is_strict(schema)


@pytest.mark.parametrize(
    ("reference", "found"),
    [
        ("#", "all"),
        ("#/$defs/a~1b", 1),
        ("#/$defs/a%20c", 2),
        ("#/list/0", 3),
        ("#/list/9", None),
        ("#/list/0/x", None),
        ("#/nowhere", None),
        ("https://x.example/schema", None),
        (None, None),
    ],
)
def test_references_are_looked_up_within_the_schema_only(reference, found):
    root = {"$defs": {"a/b": 1, "a c": 2}, "list": [3]}
    assert resolve_reference(root, reference) == (root if found == "all" else found)


TUPLE = {"type": "array", "items": [{"type": "string"}, {"type": "integer"}]}
OPEN_BOUND = {"type": "number", "minimum": 0, "exclusiveMinimum": True}
DATED = {
    "$schema": "http://json-schema.org/draft-04/schema#",
    "type": "object",
    "properties": {
        "closed": {**TUPLE, "additionalItems": False},
        "open": TUPLE,
        "rest": {"anyOf": [{**TUPLE, "additionalItems": {"type": "null"}}, {"type": "string"}]},
        "share": OPEN_BOUND,
        "$ref": {"$ref": "#/definitions/old"},
        "plain": {"enum": [{"items": [1]}], "default": {"items": [1]}},
    },
    "definitions": {"old": {**OPEN_BOUND, "exclusiveMinimum": False}},
}
PAIRS = [["a", 1], ["a", 1, None], ["a", 1, 2], [1, "a"], ["a"], [], "a"]
NUMBERS = [-1, 0, 0.5, "a"]
VALUES_OF = {
    **dict.fromkeys(("closed", "open", "rest"), PAIRS),
    **dict.fromkeys(("share", "$ref"), NUMBERS),
    "plain": [{"items": [1]}, {"items": [2]}],
}


@pytest.mark.parametrize("translate", [open_top, lambda schema: fit_openai(open_top(schema))])
def test_schemas_of_older_editions_are_told_as_services_take_them(translate):
    """Anthropic and OpenAI hold them against the rules of 2020-12, and refuse the whole request."""
    translated = translate(DATED)
    assert "$schema" not in translated
    jsonschema_rs.meta.validate({**translated, "$schema": DIALECT})
    for name, values in VALUES_OF.items():
        for value in values:
            is_valid = jsonschema_rs.is_valid(DATED, {name: value})
            assert jsonschema_rs.is_valid(translated, {name: value}) is is_valid, (name, value)


def test_gemini_hears_of_tuples_of_older_editions():
    closed = translate_for_gemini(DATED)["properties"]["closed"]
    assert closed["prefixItems"] == [{"type": "string"}, {"type": "integer"}]
    assert closed["maxItems"] == 2


@pytest.mark.parametrize(
    ("array", "fitted"),
    [
        ({"type": "array"}, {"type": "array", "items": {}}),
        ({"type": ["array", "null"]}, {"type": ["array", "null"], "items": {}}),
        ({"type": "array", "items": False}, {"type": "array", "items": False}),
        (
            {"type": "array", "prefixItems": [{}, {}], "minItems": 2, "items": False},
            {"type": "array", "prefixItems": [{}, {}], "minItems": 2, "maxItems": 2, "items": {}},
        ),
        ({"prefixItems": [{"type": "array"}]}, {"prefixItems": [{"type": "array", "items": {}}]}),
    ],
)
def test_each_array_says_what_is_in_it_for_openai(array, fitted):
    schema = {"type": "object", "properties": {"a": {"anyOf": [array, {"type": "null"}]}}}
    told = fit_openai(schema)["properties"]["a"]["anyOf"][0]
    assert told == fitted


def test_gemini_is_told_in_words_what_is_required_and_is_no_property():
    parts = [{"required": ["a"]}, {"required": ["b"]}]
    inner = {"type": "object", "properties": {"a": {}}, "required": ["a", "x"], "anyOf": parts}
    translated = translate_for_gemini({"type": "object", "properties": {"i": inner}})
    told = translated["properties"]["i"]
    assert told["required"] == ["a"]
    assert '"x"' in told["description"]
    assert '["b"]' in told["anyOf"][1]["description"]
    assert not list(list_undefined(translated))


def test_gemini_is_told_in_words_of_choices_that_it_refuses():
    properties = {"a": {"type": "string", "enum": ["", "x"]}, "b": {"enum": ["x", "y"]}}
    told = translate_for_gemini({"type": "object", "properties": properties})["properties"]
    assert "enum" not in told["a"]
    assert '["", "x"]' in told["a"]["description"]
    assert told["b"] == {"type": "string", "enum": ["x", "y"]}


def test_gemini_is_not_shut_out_of_true_where_it_is_a_choice_beside_one():
    properties = {"a": {"enum": [1, True]}, "b": {"enum": [None, 1]}}
    told = translate_for_gemini({"type": "object", "properties": properties})["properties"]
    assert "anyOf" not in told["a"]
    assert "[1, true]" in told["a"]["description"]
    assert told["b"]["anyOf"] == [{"type": "number", "enum": [1]}, {"type": "null"}]
