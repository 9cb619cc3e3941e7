# SPDX-License-Identifier: Apache-2.0
"""Schemas in the words of JSON Schema 2020-12: services refuse a whole request for one of an older edition."""

from __future__ import annotations

import re
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
_ODD = re.compile(
    r"'items': (\[|False)|(?<!'additionalProperties)': True|\[True|, True|exclusiveM\w+': False"
)
_BOUNDS = (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum"))


def modernize(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The same schema as 2020-12 writes it, as plainly as can be.

    What older editions say of tuples and of open bounds is said anew, and `true` is an empty schema: llama.cpp,
    Ollama and others refuse all tools for the short form.
    """
    if _ODD.search(str(schema)) is None:
        return schema
    return revise(schema, _modernize)


def _modernize(facts: Schema) -> Schema:
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
    if not isinstance(schema, Mapping):
        return schema
    facts: Schema = {}
    for key, value in cast("Mapping[str, Any]", schema).items():
        if key in _NAMED and isinstance(value, Mapping):
            named = cast("Mapping[str, Any]", value)
            facts[key] = {name: _revise(_write_out(part), change) for name, part in named.items()}
        elif key == "items":
            facts[key] = _revise(_write_out(value), change)
        else:
            facts[key] = value if key in _DATA else _revise(value, change)
    return change(facts)


def _write_out(schema: Any) -> Any:
    """A schema; the one that takes everything in its long form."""
    return {} if schema is True else schema
