# SPDX-License-Identifier: Apache-2.0
"""Mends values that do not fit their schema, where nothing is lost by it, and makes up small ones
that fit.

Mended are: text that is exactly the number or boolean that is due (`"5"`, `"0.25"`, `"true"`; `"5.0"` also for
an integer; never `"1e3"`, `"05"`, `" 5"`, or a decimal that a float would round), JSON text where an
object or array is due, an integral float for an integer, a missing required property with a default,
and an explicit null for an optional property, which is left out. A part that fits stays as it is, and
alternatives are mended only where all that fit afterwards agree on the result.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from decimal import Decimal
from typing import Any, cast

from .exceptions import ArgumentsInvalidity, SchemaInvalidity
from .schemas import (
    Place,
    Validator,
    build_engine,
    compile_schema,
    copy_plain,
    is_array,
    is_object,
    is_plain,
    show,
)

_STEPS = 2_000
_NESTING = 100
_SECONDS = 0.5
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,400}")
_DECIMAL = re.compile(r"(-?(?:0|[1-9][0-9]{0,400}))\.([0-9]{1,400})")
_FORMATS = (
    {"date-time": "2025-01-31T12:00:00Z", "date": "2025-01-31", "time": "12:00:00Z"}
    | {"duration": "PT1H", "email": "someone@example.com", "hostname": "example.com"}
    | {"ipv4": "192.0.2.1", "ipv6": "2001:db8::1", "uri": "https://example.com/"}
    | {"uuid": "123e4567-e89b-42d3-a456-426614174000", "uri-reference": "/a", "json-pointer": "/a"}
)
_TEXTS = (
    "a,A,1,0,-1,ab,AB,12,abc,ABC,123,abcd,1234,12345,12345678,a1,A1,a1b2c3d4,0123456789abcdef,12:00,2025,"
    "2025-01,1.0,1.5,1.0.0,v1.0.0,#a1b2c3,+15550100,en,en-US,a-b,a_b,a.b,a/b,file.txt,ABC-123,abcdefgh,@a,$1,"
)
_KINDS: dict[type, str] = {dict: "object", list: "array", str: "string", bool: "boolean"}


def repair(
    arguments: Mapping[str, Any], schema: Mapping[str, Any] | Validator
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """A copy with everything mended that can be without loss, and a note for each repair.

    The copy may still not fit: that is for the caller to judge.
    """
    validator = schema if isinstance(schema, Validator) else compile_schema(schema)
    plain = dict(arguments)
    if not is_plain(plain):
        try:
            plain = copy_plain(plain)
        except ValueError as failure:
            raise ArgumentsInvalidity(f"The arguments are unusable: {failure}.") from failure
    mender = _Mender(validator)
    mended = mender.mend((), plain, "")
    return mended, tuple(mender.notes)


class Walk:
    """What explaining and mending share: the parts of a value, and an end to every effort."""

    def __init__(self, validator: Validator) -> None:
        self.validator = validator
        self.atlas = validator.atlas
        self._active: set[tuple[Place, str]] = set()
        self._steps = _STEPS
        self._deadline = time.monotonic() + _SECONDS

    def enter(self, place: Place, path: str) -> bool:
        """Whether to go on; False in a circle, and when enough effort was spent."""
        self._steps -= 1
        if self._steps < 0 or len(self._active) >= _NESTING or time.monotonic() > self._deadline:
            return False
        if (place, path) in self._active:
            return False
        self._active.add((place, path))
        return True

    def leave(self, place: Place, path: str) -> None:
        """Ends what `enter` began."""
        self._active.discard((place, path))

    def list_parts(self, place: Place, value: Any) -> Iterator[tuple[str | int, Place]]:
        """Each property or item of a value with the subschema that is due for it."""
        schema = self.atlas.schemas[place]
        if is_object(value):
            declared = schema.get("properties", {})
            others = is_object(schema.get("additionalProperties"))
            others = others and not schema.get("patternProperties")
            for name in value:
                if name in declared:
                    yield name, (*place, "properties", name)
                elif others:
                    yield name, (*place, "additionalProperties")
        elif is_array(value):
            tupled = is_array(schema.get("items"))
            first, rest = ("items", "additionalItems") if tupled else ("prefixItems", "items")
            leading = len(schema.get(first, ()))
            for index in range(len(value)):
                if index < leading:
                    yield index, (*place, first, str(index))
                elif rest in schema:
                    yield index, (*place, rest)

    def resolve(self, place: Place) -> dict[str, Any]:
        """The subschema at a place, or what it merely refers to."""
        for _ in range(8):
            leads = self.atlas.references.get(place, [])
            if not leads or "type" in self.atlas.schemas.get(place, {}):
                break
            place = leads[0]
        return self.atlas.schemas.get(place, {})


class _Mender(Walk):
    """Mends a value part by part, leaving alone whatever fits."""

    def __init__(self, validator: Validator) -> None:
        super().__init__(validator)
        self.notes: list[str] = []

    def mend(self, place: Place, value: Any, path: str) -> Any:
        """The value as one subschema would have it, as far as that is free of loss."""
        if self.validator.fits(place, value) or place not in self.atlas.schemas:
            return value
        if not self.enter(place, path):
            return value
        schema = self.atlas.schemas[place]
        value = self._convert(place, list_types(schema), value, path)
        if is_object(value):
            value = self._complete(place, schema, value, path)
        if isinstance(value, (dict, list)):
            value = self._mend_parts(place, value, path)
        for near in (*self.atlas.references[place], *self.atlas.list_branches(place, "allOf")):
            value = self.mend(near, value, path)
        for keyword in ("anyOf", "oneOf"):
            value = self._mend_branches(self.atlas.list_branches(place, keyword), value, path)
        self.leave(place, path)
        return value

    def _note(self, path: str, words: str) -> None:
        self.notes.append(f"{path or 'arguments'}: {words}")

    def _convert(self, place: Place, kinds: list[str], value: Any, path: str) -> Any:
        """Reads text, or an integral float, as the kind of value that is due."""
        whole = isinstance(value, float) and value.is_integer() and abs(value) <= 2**53
        if whole and "integer" in kinds and "number" not in kinds:
            self._note(path, f"the number {value!r} was read as the integer {int(value)}")
            return int(value)
        if not isinstance(value, str) or "string" in kinds:
            return value
        readings = [(kind, _READERS[kind](value)) for kind in kinds if kind in _READERS]
        readings = [(kind, reading) for kind, reading in readings if reading is not None]
        fitting = [pair for pair in readings if self.validator.fits(place, pair[1])] or readings
        if not fitting or any(reading != fitting[0][1] for _, reading in fitting):
            return value
        kind, reading = fitting[0]
        self._note(path, f"the text {show(value)} was read as the {kind} {show(reading)}")
        return reading

    def _complete(
        self, place: Place, schema: dict[str, Any], value: dict[str, Any], path: str
    ) -> dict[str, Any]:
        """Fills in defaults of required properties, and leaves out nulls of optional ones."""
        required = schema.get("required", [])
        required = required if is_array(required) else []
        result = dict(value)
        for name, part in schema.get("properties", {}).items():
            at = (*place, "properties", name)
            if name in value:
                unwanted = value[name] is None and name not in required
                if unwanted and not self.validator.fits(at, None):
                    del result[name]
                    self._note(join_path(path, name), "null was left out: the property is optional")
            elif name in required and is_object(part) and "default" in part:
                default = part["default"]
                result |= {name: deepcopy(default)} if self.validator.fits(at, default) else {}
        for name in result.keys() - value.keys():
            words = f"the default {show(result[name])} was filled in"
            self._note(join_path(path, name), words)
        return result

    def _mend_parts(self, place: Place, value: Any, path: str) -> Any:
        result: Any = None
        for key, part in list(self.list_parts(place, value)):
            mended = self.mend(part, value[key], join_path(path, key))
            if mended is not value[key]:
                result = value.copy() if result is None else result
                result[key] = mended
        return value if result is None else result

    def _mend_branches(self, branches: list[Place], value: Any, path: str) -> Any:
        """Mends for an alternative, if there is but one outcome."""
        if any(self.validator.fits(branch, value) for branch in branches):
            return value
        outcomes: list[tuple[Any, list[str]]] = []
        before = self.notes
        for branch in branches:
            self.notes = []
            outcome = self.mend(branch, value, path)
            if self.validator.fits(branch, outcome):
                outcomes.append((outcome, self.notes))
        self.notes = before
        if not outcomes or any(outcome != outcomes[0][0] for outcome, _ in outcomes):
            return value
        self.notes += outcomes[0][1]
        return outcomes[0][0]


def _read_integer(text: str) -> int | None:
    decimal = _DECIMAL.fullmatch(text)
    digits = decimal[1] if decimal and not decimal[2].strip("0") else text
    return int(digits) if _INTEGER.fullmatch(digits) else None


def _read_number(text: str) -> float | None:
    if _INTEGER.fullmatch(text):
        return int(text)
    try:
        return _read_float(text) if _DECIMAL.fullmatch(text) else None
    except ValueError:
        return None


def _read_float(text: str) -> float:
    value = float(text)
    if Decimal(repr(value)) != Decimal(text):
        raise ValueError("a float would round it")
    return value


def _read_json(text: str, kind: type) -> Any:
    try:
        value = json.loads(
            text,
            parse_float=_read_float,
            parse_constant=_refuse_constant,
            object_pairs_hook=_read_pairs,
        )
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, kind) and is_plain(value) else None


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _read_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a property is there twice")
    return result


_READERS: dict[str, Callable[[str], Any]] = {
    "integer": _read_integer,
    "number": _read_number,
    "boolean": {"true": True, "false": False}.get,
    "object": lambda text: _read_json(text, dict),
    "array": lambda text: _read_json(text, list),
}


def join_path(path: str, key: str | int) -> str:
    """`filters` and 2 make `filters[2]`; odd names are quoted."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    if not re.fullmatch(r"[\w$-]{1,64}", key):
        return f"{path}[{show(key)}]"
    return f"{path}.{key}" if path else key


def list_types(schema: Mapping[str, Any]) -> list[str]:
    """The types that a schema names; none if it takes any."""
    kinds = schema.get("type", [])
    return [kinds] if isinstance(kinds, str) else list(kinds)


def name_kind(value: Any) -> str:
    """The JSON type of a value."""
    if value is None:
        return "null"
    other = "integer" if isinstance(value, int) else "number"
    return _KINDS.get(cast("type", type(value)), other)


def make_example(schema: Any, depth: int, root: Any = None, index: int = 0) -> Any:
    """A small value for a schema; `index` asks for different ones."""
    root = schema if root is None else root
    if not is_object(schema) or depth < 0:
        return f"text{index or ''}"
    node = _flatten(schema, root, depth)
    kinds = [kind for kind in list_types(node) if kind != "null"] or list_types(node)
    examples = node.get("examples")
    for choice in (node.get("default"), *(examples[:1] if is_array(examples) else ())):
        if not index and choice is not None and (not kinds or name_kind(choice) in kinds):
            return choice
    if "const" in node or node.get("enum"):
        choices = node.get("enum") or [node["const"]]
        return choices[index % len(choices)]
    kind = kinds[0] if kinds else _guess_kind(node)
    if kind == "object":
        return _make_object(node, depth, root)
    if kind == "array":
        return _make_array(node, depth, root)
    if kind in ("integer", "number"):
        return _make_number(node, kind, index)
    if kind == "string":
        return _make_text(node, index)
    return {"boolean": index % 2 == 0}.get(kind)


def _flatten(schema: dict[str, Any], root: Any, depth: int) -> dict[str, Any]:
    """One schema out of references, `allOf` and the first alternative that is not null."""
    node: dict[str, Any] = dict(schema)
    parts: list[Any] = (
        [_look_up(root, node.pop("$ref"))] if isinstance(node.get("$ref"), str) else []
    )
    parts += node.pop("allOf", [])
    for keyword in ("anyOf", "oneOf"):
        branches = node.pop(keyword, [])
        parts += [branch for branch in branches if branch != {"type": "null"}][:1] or branches[:1]
    for part in parts if depth > 0 else ():
        if is_object(part):
            more = _flatten(part, root, depth - 1)
            properties = more.get("properties", {}) | node.get("properties", {})
            required = more.get("required", []) + node.get("required", [])
            node = {**more, **node, "properties": properties, "required": required}
    return node


def _look_up(root: Any, reference: str) -> Any:
    node = root
    for token in reference.lstrip("#").split("/")[1:]:
        name = token.replace("~1", "/").replace("~0", "~")
        node = node.get(name) if is_object(node) else None
    return node


def _guess_kind(node: Mapping[str, Any]) -> str:
    clues = {"properties": "object", "items": "array", "prefixItems": "array"}
    clues |= {"minimum": "integer", "maximum": "integer", "multipleOf": "integer"}
    return next((kind for clue, kind in clues.items() if node.get(clue)), "string")


def _make_object(node: Mapping[str, Any], depth: int, root: Any) -> dict[str, Any]:
    declared = node.get("properties", {})
    other = node.get("additionalProperties", True)
    names = list(dict.fromkeys(node.get("required", [])))
    extra = [name for name in declared if name not in names]
    extra += [f"property{number}" for number in range(1, 9)] if other is not False else []
    names += extra[: max(0, node.get("minProperties", 0) - len(names))]
    return {name: make_example(declared.get(name, other), depth - 1, root) for name in names}


def _make_array(node: Mapping[str, Any], depth: int, root: Any) -> list[Any]:
    items = node.get("items", True)
    leading: list[Any] = items if is_array(items) else node.get("prefixItems", [])
    rest: Any = node.get("additionalItems", True) if is_array(items) else items
    count = min(max(node.get("minItems", 0), 1 if node.get("contains") else 0), 64)
    parts = [*leading, *[node.get("contains", rest)] * count][:count]
    distinct = bool(node.get("uniqueItems"))
    return [
        make_example(part, depth - 1, root, i if distinct else 0) for i, part in enumerate(parts)
    ]


def _make_number(node: Mapping[str, Any], kind: str, index: int) -> Any:
    low, high = node.get("minimum", -math.inf), node.get("maximum", math.inf)
    above, below = node.get("exclusiveMinimum", False), node.get("exclusiveMaximum", False)
    if not isinstance(above, bool):
        low, above = max(low, above), above >= low
    if not isinstance(below, bool):
        high, below = min(high, below), below <= high
    start = min(max(1, low), high)
    step = node.get("multipleOf") or (1 if kind == "integer" else 0)
    if not step:
        middle = (low + high) / 2 if high - low < math.inf else start + (1 if above else -1)
        value = middle if (above and start <= low) or (below and start >= high) else start
        span = min(high, value + 100) - max(low, value - 100)
        return value + span * index / 200 if value <= low + span / 2 else value - span * index / 200
    value = -(-start // step) * step
    value += step * (index + (above and value <= low))
    if value > high or (below and value >= high):
        value = high // step * step
        value -= step * (index + (below and value >= high))
    return int(value) if kind == "integer" else value


def _make_text(node: Mapping[str, Any], index: int) -> str:
    suffix = str(index or "")
    text = _FORMATS.get(node.get("format", ""), "text") + suffix
    pattern = node.get("pattern")
    if isinstance(pattern, str):
        limits = {key: node[key] for key in ("pattern", "minLength", "maxLength") if key in node}
        try:
            engine = build_engine(limits)
        except SchemaInvalidity:
            return text
        return next(
            (
                each
                for each in (text, *_FORMATS.values(), *_TEXTS.split(","))
                if engine.is_valid(each)
            ),
            text,
        )
    text = text.ljust(min(node.get("minLength", 0), 1_000), "x")
    limit = node.get("maxLength", len(text))
    return text if len(text) <= limit else suffix[:limit] + text[: limit - len(suffix[:limit])]
