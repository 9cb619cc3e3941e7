# SPDX-License-Identifier: Apache-2.0
"""Knows at a glance the schemas that most tools have, so that thousands need not be compiled at once."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from .engines import build_engine

if TYPE_CHECKING:
    import jsonschema_rs

_PROPERTIES, _INNER_PROPERTIES, _BRANCHES, _CHOICES, _DEFAULTS = 20, 6, 3, 32, 8
"""How many of each there may be: together they stay within the limits for all schemas."""
_DIALECTS = (
    "https://json-schema.org/draft/2020-12/schema",
    "http://json-schema.org/draft-07/schema#",
)
_KINDS: dict[str, type] = {"string": str, "boolean": bool, "integer": int}
_PLAIN_KEYWORDS = frozenset({"type", "title", "description", "default"})
_SMALL = 2**53
_TEXT = {"type": "string"}
_NUMBER = {"type": "number", "minimum": -1e300, "maximum": 1e300}
_COUNT = {"type": "integer", "minimum": 0, "maximum": 2**31}
_SCALAR = {"anyOf": [{"type": ["string", "boolean", "null"]}, _NUMBER]}
_LEAF: dict[str, Any] = {
    "type": {"enum": ["string", "number", "integer", "boolean", "null", "array", "object"]},
    "title": _TEXT,
    "description": _TEXT,
    "format": _TEXT,
    "const": _SCALAR,
    "enum": {"type": "array", "minItems": 1, "maxItems": _CHOICES, "items": _SCALAR},
    "default": {
        "anyOf": [
            _SCALAR,
            {"type": "array", "maxItems": _DEFAULTS, "items": _SCALAR},
            {"type": "object", "maxProperties": 0},
        ]
    },
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _NUMBER),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems"), _COUNT),
    "uniqueItems": {"type": "boolean"},
    "additionalProperties": {"type": "boolean"},
}


class Glance:
    """Admits the plainest arguments of an everyday schema at once; of others it says nothing."""

    __slots__ = ("_kinds", "_required")

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._required = frozenset(schema.get("required", ()))
        self._kinds: dict[str, Any] = {
            name: _KINDS[part["type"]]
            for name, part in schema.get("properties", {}).items()
            if part.get("type") in _KINDS and _PLAIN_KEYWORDS.issuperset(part)
        }

    def admits(self, arguments: Mapping[str, Any]) -> bool:
        """Whether all arguments are texts in ASCII, booleans and small integers where these are due."""
        if arguments.__class__ is not dict:
            return False
        kinds: dict[str, Any] = self._kinds
        value: Any
        for name, value in arguments.items():
            kind = kinds.get(name)
            if type(value) is not kind:
                return False
            if kind is str:
                if not value.isascii():
                    return False
            elif not -_SMALL < value < _SMALL:
                return False
        return self._required.issubset(arguments)


def is_everyday(schema: Mapping[str, Any]) -> bool:
    """Whether a schema takes an object and is sure to compile, with nothing to remark on; else it may still.

    Only texts are not looked into: one that is no Unicode, which no wire brings, is found when it compiles.
    """
    try:
        return _build_rules().is_valid(schema)
    except ValueError:  # no JSON
        return False


@cache
def _build_rules() -> jsonschema_rs.Validator:
    """A schema of schemas that have neither references nor patterns, and are shallow and small."""
    small = _close({**_LEAF, "items": {"$ref": "#/$defs/leaf"}})
    inner = {"$ref": "#/$defs/small"}
    part = _close(
        {
            **_LEAF,
            **_declare(inner, _INNER_PROPERTIES),
            "items": inner,
            "anyOf": {"type": "array", "minItems": 1, "maxItems": _BRANCHES, "items": inner},
            "additionalProperties": {"anyOf": [{"type": "boolean"}, {"$ref": "#/$defs/leaf"}]},
        }
    )
    root = _close(
        {
            **_declare({"$ref": "#/$defs/part"}, _PROPERTIES),
            "$schema": {"enum": list(_DIALECTS)},
            "type": {"const": "object"},
            "title": _TEXT,
            "description": _TEXT,
            "additionalProperties": {"type": "boolean"},
        }
    )
    definitions = {"leaf": _close(_LEAF), "small": small, "part": part}
    return build_engine({**root, "required": ["type"], "$defs": definitions})


def _declare(part: dict[str, Any], count: int) -> dict[str, Any]:
    return {
        "properties": {"type": "object", "maxProperties": count, "additionalProperties": part},
        "required": {"type": "array", "maxItems": count, "uniqueItems": True, "items": _TEXT},
    }


def _close(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False}
