# SPDX-License-Identifier: Apache-2.0
"""What Python types an input schema amounts to: read once here, then built as classes or written as text.

A schema is a server's word: whatever is odd, remote, endless or over a limit becomes `Any`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeGuard, Union, cast
from urllib.parse import unquote

from .identifiers import claim_name, compose_class_name, compose_field_name

_DEPTH_MAX = 32
_SHAPES_MAX = 5_000
ScalarKind = Literal["str", "int", "float", "bool", "None", "Any"]
ChoiceValue = Union[str, int, bool, None]


@dataclass(frozen=True, slots=True)
class Scalar:
    """One of the simple types, or anything."""

    kind: ScalarKind


@dataclass(frozen=True, slots=True)
class Choice:
    """A few allowed values."""

    values: tuple[ChoiceValue, ...]

    @property
    def tags(self) -> tuple[tuple[str, ChoiceValue], ...]:
        """The values, each with its type, since `True == 1`."""
        return tuple((type(value).__name__, value) for value in self.values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Choice) and self.tags == other.tags

    def __hash__(self) -> int:
        return hash(self.tags)


@dataclass(frozen=True, slots=True)
class Array:
    """A list of one type."""

    item: Shape


@dataclass(frozen=True, slots=True)
class Table:
    """An object whose keys are free."""

    value: Shape


@dataclass(frozen=True, slots=True)
class Reference:
    """An object that has a class of its own, by the name of that class."""

    name: str


@dataclass(frozen=True, slots=True)
class Alternatives:
    """Any of several types."""

    members: tuple[Shape, ...]


Shape = Union[Scalar, Choice, Array, Table, Reference, Alternatives]
ANYTHING = Scalar("Any")
NOTHING = Scalar("None")


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribute:
    """One field of a class: a property, or all additional properties together.

    `default` is what marks an optional attribute as not given: the default of the schema where
    that fits, else None, or `omissible` where None itself is a value that can be sent.
    """

    name: str
    property: str | None
    shape: Shape
    required: bool
    description: str = ""
    default: Any = None
    omissible: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One class: an object with known properties."""

    name: str
    attributes: tuple[Attribute, ...]
    description: str = ""


def read_schema(schema: Mapping[str, Any], name: str, *, taken: set[str]) -> list[Record]:
    """The classes for an input schema, its own first; their names are added to those taken."""
    reader = _Reader(root=schema, prefix=name, taken=taken)
    reader.open_record("", reader.merge(schema), pointer="#")
    return list(reader.records.values())


def unite(shapes: Iterable[Shape]) -> Shape:
    """One shape for several: flat, without doubles, null at the end; anything swallows all others."""
    flat: dict[Shape, None] = {}
    for shape in shapes:
        flat.update(dict.fromkeys(shape.members if isinstance(shape, Alternatives) else (shape,)))
    if not flat or ANYTHING in flat:
        return ANYTHING
    members = sorted(flat, key=lambda shape: shape == NOTHING)
    return members[0] if len(members) == 1 else Alternatives(tuple(members))


@dataclass(slots=True)
class _Reader:
    """Reads one schema; keeps what is named, what is being expanded, and what may still be spent."""

    root: Mapping[str, Any]
    prefix: str
    taken: set[str]
    records: dict[str, Record] = field(default_factory=dict[str, Record])
    references: dict[str, Reference] = field(default_factory=dict[str, Reference])
    expanding: set[str] = field(default_factory=set[str])
    budget: int = _SHAPES_MAX

    def open_record(
        self, hint: str, schema: Mapping[str, Any], *, pointer: str = "", depth: int = 0
    ) -> Reference:
        """Names a class before its properties are read, so that they may refer to it."""
        name = claim_name(self.prefix + compose_class_name(hint), self.taken)
        reference = Reference(name)
        if pointer:
            self.references[pointer] = reference
        self.records[name] = Record(name=name, attributes=())
        attributes = tuple(self._read_attributes(schema, depth))
        self.records[name] = Record(
            name=name, attributes=attributes, description=_get_text(schema, "description")
        )
        return reference

    def read(self, schema: Any, hint: str, depth: int) -> Shape:
        """The shape of one subschema; the hint names a class, should it need one."""
        self.budget -= 1
        if not _is_table(schema) or depth > _DEPTH_MAX or self.budget < 0:
            return ANYTHING
        if isinstance(pointer := schema.get("$ref"), str):
            shape = self._follow(pointer, depth)
        else:
            shape = self._read_merged(self.merge(schema), hint, depth)
        return unite((shape, NOTHING)) if schema.get("nullable") is True else shape

    def merge(self, schema: Mapping[str, Any], depth: int = 0) -> Mapping[str, Any]:
        """Makes one schema of `allOf`: properties and what is required add up, else the first wins."""
        parts = _get_list(schema, "allOf")
        if not parts or depth > _DEPTH_MAX:
            return schema
        merged = {key: value for key, value in schema.items() if key != "allOf"}
        for part in parts:
            self.budget -= 1
            target = self._resolve_all(part)
            if self.budget < 0 or target is None:
                continue
            target = self.merge(target, depth + 1)
            properties = {**_get_table(target, "properties"), **_get_table(merged, "properties")}
            required = [*_get_list(merged, "required"), *_get_list(target, "required")]
            merged = {**target, **merged, "properties": properties, "required": required}
        return merged

    def _resolve_all(self, schema: Any) -> Mapping[str, Any] | None:
        """Follows references to a schema that is none; None where that does not end."""
        for _ in range(_DEPTH_MAX):
            if not _is_table(schema):
                return None
            if not isinstance(pointer := schema.get("$ref"), str):
                return schema
            schema = _resolve(self.root, pointer)
        return None

    def _follow(self, pointer: str, depth: int) -> Shape:
        """A reference within the schema; one that only leads back to itself can be anything."""
        if pointer in self.references:
            return self.references[pointer]
        target = _resolve(self.root, pointer)
        if target is None or pointer in self.expanding:
            return ANYTHING
        hint = pointer.rpartition("/")[2]
        if "$ref" not in target and _is_record(merged := self.merge(target)):
            return self.open_record(hint, merged, pointer=pointer, depth=depth + 1)
        self.expanding.add(pointer)
        shape = self.read(target, hint, depth + 1)
        self.expanding.discard(pointer)
        return shape

    def _read_merged(self, schema: Mapping[str, Any], hint: str, depth: int) -> Shape:
        if "const" in schema:
            return _read_values([schema["const"]])
        if values := _get_list(schema, "enum"):
            return _read_values(values)
        options = _get_list(schema, "anyOf") or _get_list(schema, "oneOf")
        if options and not _get_table(schema, "properties"):
            inherited = {"type": schema["type"]} if "type" in schema else {}
            return unite(
                self.read({**inherited, **option}, hint, depth + 1)
                if _is_table(option) and "$ref" not in option
                else self.read(option, hint, depth + 1)
                for option in options
            )
        return unite(self._read_kind(kind, schema, hint, depth) for kind in _find_kinds(schema))

    def _read_kind(self, kind: Any, schema: Mapping[str, Any], hint: str, depth: int) -> Shape:
        if kind == "array":
            items: Shape = ANYTHING
            if "prefixItems" not in schema:
                items = self.read(schema.get("items"), f"{hint} item", depth + 1)
            return Array(items)
        if kind == "object":
            if _is_record(schema):
                return self.open_record(hint, schema, depth=depth + 1)
            return Table(self.read(schema.get("additionalProperties"), hint, depth + 1))
        return _SCALARS.get(kind, ANYTHING) if isinstance(kind, str) else ANYTHING

    def _read_attributes(self, schema: Mapping[str, Any], depth: int) -> Iterable[Attribute]:
        properties = _get_table(schema, "properties")
        required = [name for name in _get_list(schema, "required") if isinstance(name, str)]
        taken = set[str]()
        for name in dict.fromkeys((*properties, *required)):
            if self.budget < 0:
                return
            yield self._read_attribute(
                name, properties.get(name), required=name in required, taken=taken, depth=depth
            )
        others = schema.get("additionalProperties", False)
        if _get_table(schema, "patternProperties"):
            others = True
        if others is not False:
            shape = Table(self.read(others, "additional", depth + 1))
            yield Attribute(
                name=claim_name("additional_properties", taken),
                property=None,
                shape=unite((shape, NOTHING)),
                required=False,
                description="Properties that the schema does not name.",
            )

    def _read_attribute(
        self, name: str, schema: Any, *, required: bool, taken: set[str], depth: int
    ) -> Attribute:
        shape = self.read(schema, name, depth + 1)
        details: Mapping[str, Any] = schema if _is_table(schema) else {}
        default = details.get("default")
        fitting = not required and "default" in details and _fits(shape, default)
        omissible = not required and not fitting and _fits(shape, None)
        if not (required or fitting or omissible):
            shape = unite((shape, NOTHING))
        return Attribute(
            name=claim_name(compose_field_name(name), taken),
            property=name,
            shape=shape,
            required=required,
            description=_get_text(details, "description"),
            default=_settle(default) if fitting else None,
            omissible=omissible,
        )


_SCALARS: Mapping[str, Shape] = {
    "string": Scalar("str"),
    "integer": Scalar("int"),
    "number": Scalar("float"),
    "boolean": Scalar("bool"),
    "null": NOTHING,
}


def _find_kinds(schema: Mapping[str, Any]) -> Sequence[Any]:
    """The types that a schema names, or else those that its keywords speak of."""
    if isinstance(kind := schema.get("type"), str):
        return (kind,)
    if kinds := _get_list(schema, "type"):
        return kinds
    if _is_record(schema) or "additionalProperties" in schema:
        return ("object",)
    return ("array",) if "items" in schema else ()


def _is_record(schema: Mapping[str, Any]) -> bool:
    """Whether an object has properties that are known by name."""
    named = _get_table(schema, "properties") or _get_list(schema, "required")
    return bool(named) and (
        schema.get("type", "object") == "object" or "object" in _get_list(schema, "type")
    )


def _read_values(values: Sequence[Any]) -> Shape:
    """The shape of an enumeration; numbers with a fraction have no literal type."""
    if all(_is_literal(value) and not isinstance(value, float) for value in values):
        return Choice(tuple({(type(value).__name__, value): value for value in values}.values()))
    if all(_is_literal(value) for value in values):
        return unite(
            Scalar(cast("ScalarKind", "None" if v is None else type(v).__name__)) for v in values
        )
    return ANYTHING


def _is_literal(value: Any) -> bool:
    """Whether a value can be written down in Python and read again."""
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, int):
        return value.bit_length() <= 1024
    return value is None or isinstance(value, str)


def _fits(shape: Shape, value: Any) -> bool:
    """Whether a default is one that a class can have: a literal of that shape, or a list of them."""
    if isinstance(shape, Alternatives):
        return any(_fits(member, value) for member in shape.members)
    if isinstance(shape, Array):
        return _is_list(value) and all(_fits(shape.item, item) for item in value)
    if isinstance(shape, Choice):
        return _is_literal(value) and (type(value).__name__, value) in shape.tags
    if isinstance(shape, Scalar) and _is_literal(value):
        kind = "None" if value is None else type(value).__name__
        return shape.kind in (kind, "Any") or (shape.kind, kind) == ("float", "int")
    return False


def _settle(value: Any) -> Any:
    """A default as an immutable value."""
    return tuple(map(_settle, value)) if _is_list(value) else value


def _resolve(root: Any, pointer: str) -> Mapping[str, Any] | None:
    """What a local JSON pointer leads to; None for any other reference."""
    if not pointer.startswith("#") or pointer[1:2] not in ("", "/"):
        return None
    target = root
    for token in unquote(pointer[1:]).split("/")[1:]:
        step = token.replace("~1", "/").replace("~0", "~")
        if _is_table(target):
            target = target.get(step)
        elif _is_list(target) and step.isdecimal() and len(step) < 10:
            target = next(iter(target[int(step) :]), None)
        else:
            return None
    return target if _is_table(target) else None


def _is_table(value: Any) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(value, Mapping)


def _is_list(value: Any) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def _get_table(schema: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    return value if _is_table(value := schema.get(key)) else {}


def _get_list(schema: Mapping[str, Any], key: str) -> list[Any]:
    return value if _is_list(value := schema.get(key)) else []


def _get_text(schema: Mapping[str, Any], key: str) -> str:
    value = schema.get(key)
    return value if isinstance(value, str) else ""
