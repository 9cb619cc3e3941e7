# SPDX-License-Identifier: Apache-2.0
"""Dataclasses that are made from input schemas."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Union, get_args, get_type_hints

import jsonschema_rs
import pytest
from hypothesis import given, settings, strategies as st

from converser.signatures import OMITTED, Omitted, create_arguments_class, dump_arguments


def make(properties: Mapping[str, Any], required: Sequence[str] = (), **others: Any) -> type[Any]:
    schema = {"type": "object", "properties": properties, "required": list(required), **others}
    return create_arguments_class(schema)


def hints_of(properties: Mapping[str, Any], **others: Any) -> dict[str, Any]:
    return get_type_hints(make(properties, list(properties), **others))


@pytest.mark.parametrize(
    ("schema", "hint"),
    [
        ({"type": "string"}, str),
        ({"type": "integer"}, int),
        ({"type": "number"}, float),
        ({"type": "boolean"}, bool),
        ({"type": "null"}, type(None)),
        ({}, Any),
        (True, Any),
        ({"type": "array", "items": {"type": "string"}}, Sequence[str]),
        ({"items": {"type": "string"}}, Sequence[str]),
        ({"type": "array"}, Sequence[Any]),
        ({"type": "array", "prefixItems": [{"type": "string"}]}, Sequence[Any]),
        ({"type": "object"}, Mapping[str, Any]),
        ({"additionalProperties": {"type": "integer"}}, Mapping[str, int]),
        ({"enum": ["a", "b", "a"]}, Literal["a", "b"]),
        ({"enum": [1, True, None]}, Literal[1, True, None]),  # noqa: PYI061
        ({"enum": [0.5, "half"]}, Union[float, str]),
        ({"enum": [{"a": 1}]}, Any),
        ({"const": "x"}, Literal["x"]),
        ({"type": ["null", "string"]}, Union[str, None]),
        ({"type": "string", "nullable": True}, Union[str, None]),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, Union[str, int]),
        ({"oneOf": [{"type": "string"}, {"anyOf": [{"type": "string"}]}]}, str),
        ({"type": "string", "anyOf": [{"format": "date"}, {"format": "time"}]}, str),
        ({"anyOf": [{"type": "string"}, {}]}, Any),
        ({"allOf": [{"type": "string"}, {"minLength": 3}]}, str),
        ({"allOf": [{"type": "string"}, True, {"$ref": "#/$defs/absent"}]}, str),
        ({"$ref": "#/examples/1"}, str),
        ({"$ref": "#/examples/9"}, Any),
        ({"$ref": "https://example.org/schema"}, Any),
        ({"$ref": "#/$defs/absent"}, Any),
        ({"type": "quaternion"}, Any),
        ({"type": [{"odd": 1}]}, Any),
    ],
)
def test_a_schema_becomes_a_python_type(schema: Any, hint: Any) -> None:
    examples = [{}, {"type": "string"}]
    assert hints_of({"value": schema}, examples=examples)["value"] == hint


def test_the_class_is_frozen_slotted_and_takes_only_names() -> None:
    kind = make({"city": {"type": "string"}}, ["city"])
    instance = kind(city="Oslo")
    with pytest.raises(dataclasses.FrozenInstanceError):
        instance.city = "Bergen"
    with pytest.raises(TypeError):
        kind("Oslo")
    with pytest.raises(TypeError):
        kind()
    assert not hasattr(instance, "__dict__")
    assert hash(instance) == hash(kind(city="Oslo"))


def test_a_tool_names_its_class_and_describes_its_fields() -> None:
    @dataclasses.dataclass
    class Definition:
        name: str = "get-weather"
        description: str = ""
        arguments_schema: Mapping[str, Any] = dataclasses.field(
            default_factory=lambda: {
                "properties": {"city": {"type": "string", "description": "Where."}},
                "description": "All of it.",
            }
        )

    kind = create_arguments_class(Definition())
    assert kind.__name__ == "GetWeatherArguments"
    assert kind.__doc__ == "All of it."
    assert dataclasses.fields(kind)[0].metadata["description"] == "Where."
    assert create_arguments_class(Definition(), "Weather").__name__ == "Weather"
    assert create_arguments_class({}).__name__ == "Arguments"


def test_what_was_not_given_is_left_out() -> None:
    kind = make(
        {
            "city": {"type": "string"},
            "days": {"type": "integer", "default": 3},
            "units": {"type": "string"},
            "note": {"type": ["string", "null"]},
            "tags": {"type": "array", "items": {"type": "string"}, "default": ["a"]},
            "odd": {"type": "string", "default": None},
        },
        ["city"],
    )
    instance = kind(city="Oslo")
    assert dump_arguments(instance) == {"city": "Oslo"}
    assert (instance.days, instance.units, instance.note) == (3, None, OMITTED)
    assert (instance.tags, instance.odd) == (("a",), None)
    assert not instance.note


def test_null_is_sent_where_it_is_allowed() -> None:
    kind = make(
        {
            "required": {"type": ["string", "null"]},
            "note": {"type": ["string", "null"]},
            "days": {"type": ["integer", "null"], "default": 3},
            "units": {"type": "string"},
        },
        ["required"],
    )
    instance = kind(required=None, note=None, days=None, units=None)
    assert dump_arguments(instance) == {"required": None, "note": None, "days": None}
    assert Omitted in get_args(get_type_hints(kind)["note"])


def test_a_value_that_only_equals_its_default_is_sent() -> None:
    kind = make({"count": {"default": 1}})
    assert dump_arguments(kind(count=True)) == {"count": True}
    assert dump_arguments(kind(count=1)) == {}


@pytest.mark.parametrize(
    ("schema", "default"),
    [
        ({"type": "number", "default": 1}, 1),
        ({"type": "integer", "default": True}, None),
        ({"type": "string", "default": 5}, None),
        ({"type": "number", "default": float("inf")}, None),
        ({"type": "integer", "default": 10**4000}, None),
        ({"enum": ["a", "b"], "default": "c"}, None),
        ({"enum": ["a", "b"], "default": "b"}, "b"),
        ({"enum": [0, 1], "default": False}, None),
        ({"type": "object", "default": {"a": 1}}, None),
        ({"type": "array", "items": {"type": "integer"}, "default": [1, "x"]}, None),
        ({"type": "array", "items": {"type": "array"}, "default": [[], []]}, ((), ())),
        ({"type": ["string", "null"], "default": None}, None),
    ],
)
def test_only_a_fitting_default_becomes_the_default_of_a_field(schema: Any, default: Any) -> None:
    found = dataclasses.fields(make({"value": schema}))[0].default
    assert found == default
    assert type(found) is type(default)


def test_properties_that_are_no_identifiers_get_safe_names_and_keep_their_own() -> None:
    names = [
        "class",
        "foo-bar",
        "foo.bar",
        "_x",
        "3d",
        "",
        "str",
        "天気",
        "ﬁt",
        "$ref",
        "__init__",
        "a𐄇",
    ]
    kind = make({name: {"type": "string"} for name in names}, names)
    fields = [field.name for field in dataclasses.fields(kind)]
    assert fields == [
        "class_",
        "foo_bar",
        "foo_bar_2",
        "x",
        "field_3d",
        "field_",
        "str_",
        "天気",
        "fit",
        "ref",
        "init__",
        "a_",
    ]
    values = dict.fromkeys(fields, "v")
    assert dump_arguments(kind(**values)) == dict.fromkeys(names, "v")


def test_nested_objects_become_classes_and_dictionaries_do_as_well() -> None:
    location = {"type": "object", "properties": {"lat-long": {"type": "string"}}}
    kind = make({"at": location, "many": {"type": "array", "items": location}}, ["at", "many"])
    hints = get_type_hints(kind)
    place, item = hints["at"], get_args(hints["many"])[0]
    assert (place.__name__, item.__name__) == ("ArgumentsAt", "ArgumentsManyItem")
    instance = kind(at=place(lat_long="1"), many=[item(), {"lat-long": "2"}])
    assert dump_arguments(instance) == {"at": {"lat-long": "1"}, "many": [{}, {"lat-long": "2"}]}


def test_recursive_references_lead_back_to_the_same_class() -> None:
    node = {
        "type": "object",
        "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/a~1Node"}}},
    }
    hints = hints_of(
        {"tree": {"$ref": "#/$defs/a~1Node"}, "self": {"$ref": "#"}}, **{"$defs": {"a/Node": node}}
    )
    tree = hints["tree"]
    assert get_type_hints(tree)["kids"] == Union[Sequence[tree], None]
    assert get_type_hints(hints["self"])["tree"] is tree


def test_recursion_without_an_object_ends_in_anything() -> None:
    definitions = {
        "Json": {
            "anyOf": [{"type": "string"}, {"type": "array", "items": {"$ref": "#/$defs/Json"}}]
        },
        "Loop": {"$ref": "#/$defs/Loop"},
        "Merge": {"allOf": [{"$ref": "#/$defs/Merge"}]},
    }
    properties = {name: {"$ref": f"#/$defs/{name}"} for name in definitions}
    hints = hints_of(properties, **{"$defs": definitions})
    assert hints == {"Json": Union[str, Sequence[Any]], "Loop": Any, "Merge": Any}


def test_a_schema_that_explodes_is_cut_off() -> None:
    definitions: dict[str, Any] = {"D0": {"type": "string"}}
    for level in range(1, 30):
        below = {"$ref": f"#/$defs/D{level - 1}"}
        lists = [{"type": "array", "items": below}, {"additionalProperties": below}, below]
        tables = [{"properties": {name: below}} for name in "abcdef"]
        definitions[f"D{level}"] = {"anyOf": [*lists, *tables]}
    bomb = {"$defs": definitions, "properties": {"x": {"$ref": "#/$defs/D29"}}}
    assert dump_arguments(create_arguments_class(bomb)(x=["a"])) == {"x": ["a"]}


def test_all_of_adds_up_properties() -> None:
    base = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    kind = make(
        {"b": {"type": "integer"}}, allOf=[{"$ref": "#/$defs/Base"}], **{"$defs": {"Base": base}}
    )
    with pytest.raises(TypeError):
        kind(b=1)
    assert dump_arguments(kind(a="x", b=1)) == {"a": "x", "b": 1}


def test_additional_properties_have_a_field_of_their_own() -> None:
    kind = make({"a": {"type": "string"}}, additionalProperties={"type": "integer"})
    assert get_type_hints(kind)["additional_properties"] == Union[Mapping[str, int], None]
    assert dump_arguments(kind(a="x", additional_properties={"a": 1, "b": 2})) == {"a": "x", "b": 2}
    assert dump_arguments(kind()) == {}
    closed = make({"a": {}}, additionalProperties=False)
    assert [field.name for field in dataclasses.fields(closed)] == ["a"]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=10,
)
keywords = st.sampled_from(
    [
        *("type", "properties", "required", "items", "anyOf", "oneOf", "allOf", "enum", "const"),
        *("default", "$ref", "$defs", "nullable", "additionalProperties", "patternProperties"),
        "description",
    ]
)
schema_like = st.recursive(
    json_values | st.sampled_from(["object", "array", "string", "#", "#/$defs/a", "#/anyOf/0"]),
    lambda inner: (
        st.dictionaries(keywords | st.text(max_size=3), inner, max_size=5)
        | st.lists(inner, max_size=3)
    ),
    max_leaves=25,
)


@settings(deadline=None, max_examples=200)
@given(st.dictionaries(keywords, schema_like, max_size=6))
def test_whatever_a_server_sends_becomes_a_class(schema: dict[str, Any]) -> None:
    kind = create_arguments_class(schema)
    values = {f.name: None for f in dataclasses.fields(kind) if f.default is dataclasses.MISSING}
    arguments = dump_arguments(kind(**values))
    assert all(value is None for value in arguments.values())


scalar_schemas = st.sampled_from(
    [
        ({"type": "string"}, st.text()),
        ({"type": "integer"}, st.integers()),
        ({"type": "number"}, st.floats(allow_nan=False, allow_infinity=False)),
        ({"type": "boolean"}, st.booleans()),
        ({"type": ["string", "null"]}, st.none() | st.text()),
        ({"enum": ["a", 1, None]}, st.sampled_from(["a", 1, None])),
        ({"type": "array", "items": {"type": "integer"}}, st.lists(st.integers())),
        ({"type": "object"}, st.dictionaries(st.text(), st.integers())),
    ]
)


@settings(deadline=None, max_examples=100)
@given(st.data())
def test_given_arguments_come_back_unchanged_and_valid(data: st.DataObject) -> None:
    drawn = data.draw(st.dictionaries(st.text(), scalar_schemas, max_size=5))
    properties = {name: schema for name, (schema, _) in drawn.items()}
    required = data.draw(st.lists(st.sampled_from(sorted(drawn)), unique=True)) if drawn else []
    schema = {"type": "object", "properties": properties, "required": required}
    kind = create_arguments_class(schema)
    fields = {f.metadata.get("property", f.name): f.name for f in dataclasses.fields(kind)}
    given_names = [n for n in drawn if n in required or data.draw(st.booleans())]
    values = {name: data.draw(drawn[name][1]) for name in given_names}
    dumped = dump_arguments(kind(**{fields[name]: value for name, value in values.items()}))
    assert json.dumps(dumped, sort_keys=True) == json.dumps(values, sort_keys=True)
    if not any("\ud800" <= character <= "\udfff" for character in repr(schema)):
        assert jsonschema_rs.is_valid(schema, dumped)
