# SPDX-License-Identifier: Apache-2.0
"""Small values that fit a schema, for messages and for people who want to see what a tool takes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ..exceptions import SchemaInvalidity
from .engines import build_engine
from .keywords import list_types
from .plain import is_array, is_object, name_kind

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


def example_for(schema: Mapping[str, Any] | bool, depth: int = 8) -> Any:
    """A small value that fits a schema in the ordinary cases."""
    return _make(schema, depth, schema)


def _make(schema: Any, depth: int, root: Any, index: int = 0) -> Any:
    """A small value for a part of a schema; `index` asks for different ones."""
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
    return {name: _make(declared.get(name, other), depth - 1, root) for name in names}


def _make_array(node: Mapping[str, Any], depth: int, root: Any) -> list[Any]:
    items = node.get("items", True)
    leading: list[Any] = items if is_array(items) else node.get("prefixItems", [])
    rest: Any = node.get("additionalItems", True) if is_array(items) else items
    count = min(max(node.get("minItems", 0), 1 if node.get("contains") else 0), 64)
    parts = [*leading, *[node.get("contains", rest)] * count][:count]
    distinct = bool(node.get("uniqueItems"))
    return [_make(part, depth - 1, root, i if distinct else 0) for i, part in enumerate(parts)]


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
    if isinstance(node.get("pattern"), str):
        return _find_text(node, text)
    text = text.ljust(min(node.get("minLength", 0), 1_000), "x")
    limit = node.get("maxLength", len(text))
    return text if len(text) <= limit else suffix[:limit] + text[: limit - len(suffix[:limit])]


def _find_text(node: Mapping[str, Any], text: str) -> str:
    """The first of some usual texts that fits a pattern, if any does."""
    limits = {key: node[key] for key in ("pattern", "minLength", "maxLength") if key in node}
    try:
        engine = build_engine(limits)
    except SchemaInvalidity:
        return text
    candidates = (text, *_FORMATS.values(), *_TEXTS.split(","))
    return next((each for each in candidates if engine.is_valid(each)), text)
