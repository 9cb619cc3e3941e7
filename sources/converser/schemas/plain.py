# SPDX-License-Identifier: Apache-2.0
"""Plain JSON data: whether something is it, copies that are it, and short forms of it for messages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import isfinite
from typing import Any, TypeGuard, cast

MAXIMUM_DEPTH = 64
_MAXIMUM_VALUES = 1_000_000
_INTEGER_BITS = 14_000  # Python writes no longer ones, and the engine misjudges them
_SCALARS = frozenset({str, bool, type(None)})
_TEXT = frozenset({str})
_KINDS: dict[type, str] = {dict: "object", list: "array", str: "string", bool: "boolean"}
_ENCODER = json.JSONEncoder(ensure_ascii=False)


def is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    """Whether this is a JSON object, for people and type checkers."""
    return isinstance(value, dict)


def is_array(value: Any) -> TypeGuard[list[Any]]:
    """Whether this is a JSON array, for people and type checkers."""
    return isinstance(value, list)


def is_plain(value: Any, depth: int = MAXIMUM_DEPTH) -> bool:
    """Whether this is JSON data in plain containers and within the limits; never recurses."""
    level, budget = [value], _MAXIMUM_VALUES
    for _ in range(depth + 1):
        below: list[Any] = []
        for item in level:
            kind = type(item)  # pyright: ignore[reportUnknownVariableType]
            if kind in _SCALARS:
                continue
            if kind is int:
                if item.bit_length() > _INTEGER_BITS:
                    return False
            elif kind is dict:
                if not _TEXT.issuperset(map(type, item)):
                    return False
                below += item.values()
            elif kind is list:
                below += item
            elif kind is not float or not isfinite(item):
                return False
        if not below:
            return True
        budget -= len(below)
        if budget < 0:
            return False
        level = below
    return False


def copy_plain(value: Any, depth: int = MAXIMUM_DEPTH, values: int = _MAXIMUM_VALUES) -> Any:
    """Copies JSON-like data into plain containers; a `ValueError` says what is no JSON or too much."""
    budget = values

    def copy(item: Any, left: int) -> Any:
        nonlocal budget
        budget -= 1
        if left < 0 or budget < 0:
            raise ValueError(f"it has more than {depth} levels or {values} values")
        if type(item) in _SCALARS:
            return item
        if isinstance(item, (dict, Mapping)):
            pairs: Any = item.items()  # pyright: ignore[reportUnknownVariableType]
            return {
                key if type(key) is str else _copy_name(key): copy(part, left - 1)
                for key, part in pairs
            }
        if isinstance(item, (list, tuple)):
            return [copy(part, left - 1) for part in cast("Any", item)]
        return _copy_scalar(item)

    return copy(value, depth)


def _copy_name(name: Any) -> str:
    if isinstance(name, str):
        return str.__str__(name)
    raise ValueError("it has a property name that is not text")


def _copy_scalar(item: Any) -> Any:
    """Enumerations and other subclasses become what JSON would make of them."""
    if item is None or isinstance(item, bool):
        return item
    if isinstance(item, str):
        return str.__str__(item)
    if isinstance(item, int) and item.bit_length() <= _INTEGER_BITS:
        return int(item)
    if isinstance(item, float) and isfinite(item):
        return float(item)
    raise ValueError(f"it has a value that JSON cannot hold ({type(item).__name__})")


def show(value: Any, limit: int = 60) -> str:
    """A short, printable form of any value, cut so that messages never carry data in bulk."""
    text = ""
    try:
        for piece in _ENCODER.iterencode(value):
            text += "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in piece[:limit])
            if len(text) >= limit + 1:
                break
    except (TypeError, ValueError):  # not JSON, or a number of thousands of digits
        text = f"a value of the type {type(value).__name__}"
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def name_kind(value: Any) -> str:
    """The JSON type of a value."""
    if value is None:
        return "null"
    other = "integer" if isinstance(value, int) else "number"
    return _KINDS.get(cast("type", type(value)), other)
