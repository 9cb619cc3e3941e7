# SPDX-License-Identifier: Apache-2.0
"""The keywords of JSON Schema that hold other schemas, and what a schema directly says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .plain import is_array, is_object

_BRANCHED = ("allOf", "anyOf", "oneOf")
IN_PLACE = frozenset({*_BRANCHED, "not", "if", "then", "else", "dependentSchemas", "dependencies"})
"""Under these are schemas for the same value, not for a part of it."""
HOLDERS = frozenset({"$defs", "definitions"})
"""Under these are schemas that see nothing unless something refers to them."""
REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
NAMED = frozenset({*HOLDERS, "properties", "patternProperties", "dependentSchemas", "dependencies"})
"""Under these are schemas by names."""
_SINGLE = frozenset(
    {"items", "additionalItems", "unevaluatedItems", "contains", "propertyNames", "not", "if"}
    | {"additionalProperties", "unevaluatedProperties", "then", "else"}
)
_LISTED = frozenset({*_BRANCHED, "prefixItems", "items"})


def list_within(schema: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """What stands directly within a schema where a schema is due, each with the way to it."""
    for keyword, value in schema.items():
        if is_object(value) and keyword in NAMED:
            yield from (((keyword, name), part) for name, part in value.items())
        elif is_array(value) and keyword in _LISTED:
            yield from (((keyword, str(index)), part) for index, part in enumerate(value))
        elif is_object(value) and keyword in _SINGLE:
            yield (keyword,), value


def list_types(schema: Mapping[str, Any]) -> list[str]:
    """The types that a schema names; none if it takes any."""
    kinds = schema.get("type", [])
    return [kinds] if isinstance(kinds, str) else list(kinds)
