# SPDX-License-Identifier: Apache-2.0
"""JSON Schemas of arguments in the dialect of each provider.

What a dialect cannot say is told in words, and where a service holds a model to the translation, it
takes all that the schema takes. Arguments that come back are validated against the tool's own schema.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from .editions import Schema, modernize, modernize_part, revise
from .references import resolve_reference

_BRANCHES = ("anyOf", "oneOf")
_TOP_FOREIGN = (
    "$schema",
    "$id",
    "$ref",
    "allOf",
    *_BRANCHES,
    "not",
    "enum",
    "const",
    "if",
    "then",
    "else",
)
_STRICT_STRUCTURE = (
    "$defs",
    "$ref",
    "additionalProperties",
    "anyOf",
    "items",
    "properties",
    "required",
)
_STRICT_RULES = ("const", "enum", "exclusiveMaximum", "exclusiveMinimum", "format", "maxItems")
_STRICT_BOUNDS = ("maximum", "minItems", "minimum", "multipleOf", "pattern")
_STRICT_KEYWORDS = frozenset(
    (*_STRICT_STRUCTURE, *_STRICT_RULES, *_STRICT_BOUNDS, "description", "title", "type")
)
_STRICT_FORMATS = frozenset(
    ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"]
)
_LOOKAROUND = re.compile(r"\(\?<?[=!]")
_STRICT_DEPTH_MAX = 10
_STRICT_SIZES = Counter(properties=5000, choices=1000, characters=120_000)
"""How much there may be in one schema, names and choices counted by their characters."""
_NOTE_LENGTH_MAX = 400


def as_mapping(value: Any) -> Mapping[str, Any]:
    """A schema as a mapping; `true`, and whatever is no schema, is an empty one."""
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def open_top(schema: Mapping[str, Any]) -> Schema:
    """The schema as an object without combinations at its top, as Anthropic and OpenAI demand.

    The properties of all parts are put together, as hints: a property that only one alternative
    speaks of keeps its schema. Neither service holds a model to such a schema.
    """
    schema = modernize(schema)
    facts = {key: value for key, value in schema.items() if key not in _TOP_FOREIGN}
    facts["type"] = "object"
    properties: Schema = dict(as_mapping(facts.get("properties")))
    required = list(facts.get("required", ()))
    for part, alternatives in _list_parts(schema, schema, depth=0):
        facts.pop("additionalProperties", None)
        for name, detail in as_mapping(part.get("properties")).items():
            properties[name] = _either(properties[name], detail) if name in properties else detail
        if not alternatives:
            required += [name for name in part.get("required", ()) if name not in required]
    facts["properties"] = properties
    if required:
        facts["required"] = required
    told = {key: schema[key] for key in (*_BRANCHES, "not", "if", "then", "else") if key in schema}
    return note(facts, told) if told else facts


def _list_parts(
    schema: Mapping[str, Any], root: Mapping[str, Any], depth: int
) -> Iterator[tuple[Mapping[str, Any], bool]]:
    """The schemas that are combined at the top, and whether each is one of several alternatives."""
    if depth > 8:
        return
    conjuncts = [as_mapping(part) for part in schema.get("allOf", ())]
    if "$ref" in schema:
        conjuncts.append(as_mapping(resolve_reference(root, schema["$ref"])))
    for part in conjuncts:
        yield part, False
        yield from _list_parts(part, root, depth + 1)
    for key in _BRANCHES:
        for branch in schema.get(key, ()):
            part = as_mapping(branch)
            yield part, True
            for deeper, _ in _list_parts(part, root, depth + 1):
                yield deeper, True


def _either(one: Any, other: Any) -> Any:
    return one if one == other else {"anyOf": [one, other]}


def note(facts: Schema, told: Mapping[str, Any]) -> Schema:
    """The schema with rules in its description that the dialect cannot say."""
    words = json.dumps(told, ensure_ascii=False, default=str)
    if len(words) > _NOTE_LENGTH_MAX:
        words = ", ".join(told)
    before = str(facts.get("description", "")).rstrip()
    return {**facts, "description": f"{before} (JSON Schema also says: {words})".lstrip()}


def fit_openai(schema: Mapping[str, Any]) -> Schema:
    """The schema as OpenAI takes it, which refuses a request for one that it does not."""
    return revise(schema, _fit_openai)


def _fit_openai(facts: Schema) -> Schema:
    """Each array says what is in it, though it be anything; patterns that look round are told in words."""
    facts = modernize_part(facts)
    if "array" in _types(facts):
        facts.setdefault("items", {})
    pattern = facts.get("pattern")
    if isinstance(pattern, str) and _LOOKAROUND.search(pattern):
        del facts["pattern"]
        return note(facts, {"pattern": pattern})
    return facts


def form_answer(schema: Mapping[str, Any]) -> tuple[Schema, bool]:
    """The form of an answer, and whether OpenAI holds a model to it to the letter.

    For that, an object has only the properties which are named, where the form does not say otherwise.
    """
    fitted = fit_openai(schema)
    closed = revise(fitted, _close)
    return (closed, True) if is_strict(closed) else (fitted, False)


def _close(facts: Schema) -> Schema:
    return {"additionalProperties": False, **facts} if "properties" in facts else facts


def is_strict(schema: Mapping[str, Any]) -> bool:
    """Whether OpenAI's strict mode takes the schema as it is, so that it changes nothing."""
    if schema.get("type") != "object" or "anyOf" in schema:
        return False
    sizes = Counter[str]()
    return _is_strict(schema, sizes, 0) and sizes <= _STRICT_SIZES


def _is_strict(schema: Any, sizes: Counter[str], depth: int) -> bool:
    if not isinstance(schema, Mapping) or depth > _STRICT_DEPTH_MAX:
        return False
    facts = cast("Mapping[str, Any]", schema)
    if not _STRICT_KEYWORDS.issuperset(facts):
        return False
    if not facts.keys() & {"type", "$ref", "anyOf", "enum", "const"}:
        return False
    if "$ref" in facts and len(facts) > 1:
        return False
    if "format" in facts and facts["format"] not in _STRICT_FORMATS:
        return False
    properties = as_mapping(facts.get("properties"))
    if facts.get("type") == "object" or "object" in _types(facts) or properties:
        closed = facts.get("additionalProperties") is False
        if not closed or set(facts.get("required", ())) != set(properties):
            return False
    if "array" in _types(facts) and "items" not in facts:
        return False
    choices = [str(choice) for choice in facts.get("enum", ())]
    names = [*properties, *as_mapping(facts.get("$defs")), *choices]
    characters = sum(map(len, names))
    sizes.update(properties=len(properties), choices=len(choices), characters=characters)
    return all(_is_strict(part, sizes, depth + 1) for part in _list_subschemas(facts))


def _types(facts: Mapping[str, Any]) -> Iterable[str]:
    kind = facts.get("type", ())
    return (kind,) if isinstance(kind, str) else kind


def _list_subschemas(facts: Mapping[str, Any]) -> Iterator[Any]:
    for key in ("properties", "$defs"):
        yield from as_mapping(facts.get(key)).values()
    yield from facts.get("anyOf", ())
    if "items" in facts:
        yield facts["items"]
