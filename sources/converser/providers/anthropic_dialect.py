# SPDX-License-Identifier: Apache-2.0
"""JSON Schemas of answers in the subset to which Anthropic's service holds a model, and of tools as it takes them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any, cast

from ..naming import distinguish_name, fit_name
from .dialects import as_mapping, note
from .editions import Schema
from .references import resolve_reference

_KEPT = ("title", "description")
_DEFINITIONS = ("$defs", "definitions")
_COMBINED = ("anyOf", "oneOf", "allOf")
_SILENT = frozenset(("$schema", "$id", "$comment", "$anchor", "examples", "default", *_DEFINITIONS))
_HANDLED = frozenset(
    ("$ref", "type", "properties", "required", "items", "additionalProperties", *_COMBINED)
)
_FORMATS = frozenset(
    "date-time time date duration email hostname uri ipv4 ipv6 uuid".split()  # noqa: SIM905
)
_PROPERTY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
_PRIMITIVE = (str, int, float, bool, type(None))


def fit_properties(schema: Schema) -> Schema:
    """The schema of a tool with names of arguments that the service takes; one other, and it refuses all tools."""
    properties = as_mapping(schema.get("properties"))
    names = _name_properties(properties)
    if not names:
        return schema
    fitted = {**schema, "properties": {names.get(key, key): properties[key] for key in properties}}
    if "required" in schema:
        fitted["required"] = [names.get(key, key) for key in schema["required"]]
    return fitted


def restore_properties(schema: Mapping[str, Any], arguments: Any) -> Any:
    """Arguments under the names that the tool has for them, as the opened schema has them."""
    names = _name_properties(as_mapping(schema.get("properties")))
    if not names or not isinstance(arguments, dict):
        return arguments
    originals = {name: key for key, name in names.items()}
    given = cast("dict[str, Any]", arguments)
    return {originals.get(name, name): value for name, value in given.items()}


def _name_properties(properties: Mapping[str, Any]) -> dict[str, str]:
    """Other names for those that the service refuses; a hash tells apart what would be alike."""
    foreign = [name for name in properties if not _PROPERTY.fullmatch(name)]
    fitted = {name: fit_name(name) for name in foreign}
    taken = Counter((*(name for name in properties if name not in fitted), *fitted.values()))
    return {
        name: wire if taken[wire] == 1 else distinguish_name(name) for name, wire in fitted.items()
    }


class _Inexpressible(Exception):
    """A schema says something that the subset would make impossible to answer."""


def translate_for_anthropic(schema: Mapping[str, Any]) -> Schema | None:
    """The schema in the subset, or None where it would shut out what a program may want.

    It gets no narrower, but that objects have only the properties which are named. Rules that the
    subset lacks are told in words, and checked when the answer has come.
    """
    translator = _Translator(schema)
    try:
        native = translator.translate(schema, ())
        for key in _DEFINITIONS:
            if key in schema:
                native[key] = {
                    name: translator.translate(part, (f"#/{key}/{name}",))
                    for name, part in as_mapping(schema[key]).items()
                }
    except _Inexpressible:
        return None
    return native


class _Translator:
    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._sound: set[str] = set()

    def translate(self, schema: Any, path: tuple[str, ...]) -> Schema:
        """One schema; `path` has the references that led here."""
        facts = as_mapping(schema)
        if "$ref" in facts:
            return self._refer(str(facts["$ref"]), path)
        kinds = facts.get("type")
        if isinstance(kinds, list):
            return {"anyOf": [self.translate({**facts, "type": kind}, path) for kind in kinds]}  # pyright: ignore[reportUnknownVariableType]
        native: Schema = {key: facts[key] for key in _KEPT if key in facts}
        native |= _keep_rules(facts)
        for key in _COMBINED:
            if key in facts:
                name = "anyOf" if key == "oneOf" else key
                native[name] = [self.translate(part, path) for part in facts[key]]
        if not native.keys() & {"enum", "const", "anyOf", "allOf"}:
            native |= self._structure(facts, path)
        told = {
            key: value
            for key, value in facts.items()
            if key not in native and key not in _HANDLED and key not in _SILENT
        }
        return note(native, told) if told else native

    def _refer(self, reference: str, path: tuple[str, ...]) -> Schema:
        """A reference, as long as it does not go round in a circle."""
        if reference not in self._sound:
            target = resolve_reference(self._root, reference)
            if target is None or reference == "#" or reference in path:
                raise _Inexpressible
            self.translate(target, (*path, reference))
            self._sound.add(reference)
        return {"$ref": reference}

    def _structure(self, facts: Mapping[str, Any], path: tuple[str, ...]) -> Schema:
        match facts.get("type"):
            case "object":
                return self._close(facts, path)
            case "array":
                if "items" not in facts:
                    raise _Inexpressible
                return {"type": "array", "items": self.translate(facts["items"], path)}
            case str() as kind:
                return {"type": kind}
            case _:
                raise _Inexpressible

    def _close(self, facts: Mapping[str, Any], path: tuple[str, ...]) -> Schema:
        """An object, which must be a closed one; one that is meant to be open has no place there."""
        properties = as_mapping(facts.get("properties"))
        closed = facts.get("additionalProperties")
        if closed not in (None, False) or "patternProperties" in facts:
            raise _Inexpressible
        if closed is None and not properties:
            raise _Inexpressible
        native: Schema = {"type": "object", "additionalProperties": False}
        native["properties"] = {
            name: self.translate(part, path) for name, part in properties.items()
        }
        if "required" in facts:
            native["required"] = list(facts["required"])
        return native


def _keep_rules(facts: Mapping[str, Any]) -> Schema:
    """Those of the rules for values that the service keeps."""
    rules: Schema = {}
    choices: Any = facts.get("enum", ())
    if choices and all(isinstance(choice, _PRIMITIVE) for choice in choices):
        rules["enum"] = list(choices)
    if "const" in facts and isinstance(facts["const"], _PRIMITIVE):
        rules["const"] = facts["const"]
    if facts.get("format") in _FORMATS and facts.get("type") == "string":
        rules["format"] = facts["format"]
    if facts.get("minItems") in (0, 1):
        rules["minItems"] = facts["minItems"]
    return rules
