# SPDX-License-Identifier: Apache-2.0
"""Tells the kinds of parsed data apart, for type checkers and for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeGuard

_NAMES: Mapping[type, str] = {
    bool: "a boolean",
    int: "an integer",
    float: "a number",
    str: "text",
    list: "a list",
    tuple: "a list",
    dict: "a table",
    type(None): "null",
}


def is_table(value: Any) -> TypeGuard[Mapping[str, Any]]:
    """Whether this is a table of TOML, an object of JSON, or any other mapping."""
    return isinstance(value, Mapping)


def is_list(value: Any) -> TypeGuard[list[Any] | tuple[Any, ...]]:
    """Whether this is a list, and no text."""
    return isinstance(value, (list, tuple))


def name_kind(value: Any) -> str:
    """Names the kind of a value, so that a message can do without the value."""
    for family, name in _NAMES.items():
        if isinstance(value, family):
            return name
    return f"a value of the kind {type(value).__name__}"
