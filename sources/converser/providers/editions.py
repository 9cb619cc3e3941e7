# SPDX-License-Identifier: Apache-2.0
"""Schemas in the words of JSON Schema 2020-12: services refuse a whole request for one of an older edition."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

Schema = dict[str, Any]

_NAMED = frozenset(
    (
        "properties",
        "patternProperties",
        "dependentSchemas",
        "dependencies",
        "$defs",
        "definitions",
    )
)
_DATA = frozenset(("const", "default", "enum", "examples", "required", "type"))
_OPENNESS = ("'additionalProperties': False", "'additionalProperties': True")
_MARKS = ("True", "False", "'items': [")
"""What no schema has that there is nothing to say anew of, but for the openness of its objects."""
_BOUNDS = (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum"))


def modernize(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The same schema as 2020-12 writes it, as plainly as can be.

    What older editions say of tuples and of open bounds is said anew, and `true` is an empty schema: llama.cpp,
    Ollama and others refuse all tools for the short form.
    """
    text = str(schema)
    for usual in _OPENNESS:
        text = text.replace(usual, "")
    return revise(schema, modernize_part) if any(mark in text for mark in _MARKS) else schema


def modernize_part(facts: Schema) -> Schema:
    """The same for one schema, which may be changed, and not for those in it."""
    if isinstance(facts.get("items"), list):
        facts["prefixItems"] = facts.pop("items")
        rest = facts.pop("additionalItems", True)
        if isinstance(rest, Mapping):
            facts["items"] = rest
        elif not rest:
            facts["items"] = False
    if facts.get("items") is False and "prefixItems" in facts:
        del facts["items"]
        length = len(facts["prefixItems"])
        facts["maxItems"] = min(length, facts.get("maxItems", length))
    for open_bound, bound in _BOUNDS:
        if isinstance(is_open := facts.get(open_bound), bool):
            del facts[open_bound]
            if is_open and bound in facts:
                facts[open_bound] = facts.pop(bound)
    return facts


def revise(schema: Mapping[str, Any], change: Callable[[Schema], Schema]) -> Schema:
    """The schema, with it and all schemas in it changed, the inner ones first."""
    return cast("Schema", _revise(schema, change))


def _revise(schema: Any, change: Callable[[Schema], Schema]) -> Any:
    """One schema; below some keywords are schemas by name, and below others plain data."""
    if isinstance(schema, list):
        return [_revise(_write_out(part), change) for part in schema]  # pyright: ignore[reportUnknownVariableType]
    if not isinstance(schema, (dict, Mapping)):  # the first is quick to tell
        return schema
    facts: Schema = {}
    for key, value in cast("Mapping[str, Any]", schema).items():
        if key in _NAMED and isinstance(value, Mapping):
            named = cast("Mapping[str, Any]", value)
            facts[key] = {name: _revise(_write_out(part), change) for name, part in named.items()}
        elif key == "items":
            facts[key] = _revise(_write_out(value), change)
        else:
            is_plain = key in _DATA or isinstance(value, str)
            facts[key] = value if is_plain else _revise(value, change)
    return change(facts)


def _write_out(schema: Any) -> Any:
    """A schema; the one that takes everything in its long form."""
    return {} if schema is True else schema
