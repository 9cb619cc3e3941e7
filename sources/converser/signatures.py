# SPDX-License-Identifier: Apache-2.0
"""Typed access for Python callers: a frozen dataclass made from the input schema of a tool.

An optional field that still has its default is left out of the arguments. That default is

- the default of the schema, where it has one of the right type that is no object;
- else None, which then only means "not given", where the schema does not allow null;
- else `OMITTED`, so that None can be sent as null.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, Final, Literal, Protocol, Union, cast

from absence import Absential, absent, is_absent

from .identifiers import compose_arguments_class_name
from .shapes import (
    Array,
    Attribute,
    Choice,
    Record,
    Reference,
    Scalar,
    Shape,
    Table,
    read_schema,
)

PROPERTY_KEY = "property"
"""Where the metadata of a field keep the name of the property, if the field has another."""
ADDITIONAL_KEY = "additional"
"""Marks in the metadata the field that holds all properties without fields of their own."""


class Omitted(Enum):
    """The type of `OMITTED`."""

    OMITTED = "omitted"

    def __repr__(self) -> str:
        return self.name

    def __bool__(self) -> Literal[False]:
        return False


OMITTED: Final = Omitted.OMITTED
"""Marks an optional field that was not given, where None would be sent as null."""


class Describable(Protocol):
    """What is needed of a tool: a `Tool` and an `Invoker` both have it."""

    @property
    def name(self) -> str: ...

    @property
    def description(self) -> str: ...

    @property
    def arguments_schema(self) -> Mapping[str, Any]: ...


def create_arguments_class(
    source: Describable | Mapping[str, Any], name: Absential[str] = absent
) -> type[Any]:
    """Makes a frozen dataclass from the input schema of a tool, or from a schema itself.

    Nested objects become classes too, also recursive ones; `typing.get_type_hints` shows them, and
    a plain dictionary is as good as an instance.
    """
    schema = source if isinstance(source, Mapping) else source.arguments_schema
    if is_absent(name):
        tool = "" if isinstance(source, Mapping) else source.name
        name = compose_arguments_class_name(tool) if tool else "Arguments"
    records = read_schema(schema, name, taken=set())
    classes = {record.name: _create_class(record) for record in records}
    for record in records:
        _annotate_class(classes[record.name], record, classes)
    return classes[records[0].name]


def dump_arguments(instance: object) -> dict[str, Any]:
    """Turns an instance of such a class into JSON arguments, without what was not given."""
    arguments: dict[str, Any] = {}
    for field in dataclasses.fields(cast("Any", instance)):
        value = getattr(instance, field.name)
        if type(value) is type(field.default) and value == field.default:
            continue
        if field.metadata.get(ADDITIONAL_KEY):
            arguments = {**_dump_value(value), **arguments}
        else:
            arguments[field.metadata.get(PROPERTY_KEY, field.name)] = _dump_value(value)
    return arguments


def gather_metadata(attribute: Attribute) -> dict[str, Any]:
    """What `dump_arguments` must know of a field, beyond its name and default."""
    if attribute.property is None:
        return {ADDITIONAL_KEY: True}
    return {} if attribute.property == attribute.name else {PROPERTY_KEY: attribute.property}


def _dump_value(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dump_arguments(value)
    if isinstance(value, Mapping):
        items = cast("Mapping[str, Any]", value).items()
        return {key: _dump_value(item) for key, item in items}
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray)):
        return [_dump_value(item) for item in cast("Any", value)]
    return value


def _create_class(record: Record) -> type[Any]:
    """Makes a class whose annotations come later, when all classes exist that they may name."""
    return dataclasses.make_dataclass(
        record.name,
        [(attribute.name, Any, _create_field(attribute)) for attribute in record.attributes],
        namespace={"__doc__": record.description, "__module__": __name__},
        frozen=True,
        kw_only=True,
        slots=True,
    )


def _create_field(attribute: Attribute) -> Any:
    metadata = {**gather_metadata(attribute), "description": attribute.description}
    if attribute.required:
        return dataclasses.field(metadata=metadata)
    default = OMITTED if attribute.omissible else attribute.default
    return dataclasses.field(default=default, metadata=metadata)


def _annotate_class(subject: Any, record: Record, classes: Mapping[str, type[Any]]) -> None:
    annotations: dict[str, Any] = {}
    for attribute in record.attributes:
        annotation = _express(attribute.shape, classes)
        annotations[attribute.name] = (
            _UNION[annotation, Omitted] if attribute.omissible else annotation
        )
    for field in dataclasses.fields(subject):
        field.type = annotations[field.name]
    subject.__annotations__ = annotations
    subject.__init__.__annotations__ = {**annotations, "return": None}


def _express(shape: Shape, classes: Mapping[str, type[Any]]) -> Any:
    """A shape as a type at run time."""
    if isinstance(shape, Scalar):
        return _SCALARS[shape.kind]
    if isinstance(shape, Choice):
        return Literal[shape.values]
    if isinstance(shape, Array):
        return _SEQUENCE[_express(shape.item, classes)]
    if isinstance(shape, Table):
        return _MAPPING[str, _express(shape.value, classes)]
    if isinstance(shape, Reference):
        return classes[shape.name]
    return _UNION[tuple(_express(member, classes) for member in shape.members)]


# Type checkers take what is between the brackets of these for an annotation, unless they are Any.
_MAPPING: Any = Mapping
_SEQUENCE: Any = Sequence
_UNION: Any = Union
_SCALARS: Mapping[str, Any] = {
    "str": str,
    "int": int,
    "float": float,
    "bool": bool,
    "None": None,
    "Any": Any,
}
