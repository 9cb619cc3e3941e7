# SPDX-License-Identifier: Apache-2.0
"""JSON Schemas in the subset that Gemini understands.

None gets narrower, but for alternatives at the top, which `open_top` gives as hints.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from .dialects import as_mapping, note, open_top
from .editions import Schema, modernize
from .references import resolve_reference

_KEPT = ("type", "title", "description", "minItems", "maxItems", "minimum", "maximum")
_FORMATS = frozenset(("date-time", "date", "time", "int32", "int64", "float", "double"))
_SILENT = frozenset(("$schema", "$id", "$defs", "definitions", "$comment", "$anchor", "examples"))
_COMBINED = ("anyOf", "oneOf", "allOf", "enum", "const", "exclusiveMinimum", "exclusiveMaximum")
_HANDLED = frozenset(
    (
        "$ref",
        "properties",
        "required",
        "items",
        "prefixItems",
        "additionalProperties",
        "format",
        *_COMBINED,
    )
)
_WORDS = frozenset(("title", "description"))
_UNROLLED = 2
"""How often a definition may stand within itself, as Gemini cannot follow it for ever."""
_NODES_MAX = 3000


def translate_for_gemini(schema: Mapping[str, Any]) -> Schema:
    """The arguments of a tool: an object, with references written out and foreign rules in words."""
    schema = modernize(schema)
    return _Translator(schema).translate(open_top(schema), ())


@dataclass(slots=True)
class _Translator:
    root: Mapping[str, Any]
    nodes: int = 0

    def translate(self, schema: Any, path: tuple[str, ...]) -> Schema:
        """One schema; `path` has the references that led here."""
        self.nodes += 1
        facts = as_mapping(schema)
        if schema is False:
            return {"description": "Nothing is valid here: leave it out."}
        if "$ref" in facts:
            return self._follow(facts, path)
        native: Schema = {key: facts[key] for key in _KEPT if key in facts}
        told = {
            key: value
            for key, value in facts.items()
            if key not in native
            and key not in _HANDLED
            and key not in _SILENT
            and (key, value) != ("default", None)
        }
        self._add_structure(facts, native, path)
        _add_required(facts, native, told)
        self._add_rules(facts, native, told)
        self._add_alternatives(facts, native, told, path)
        return note(native, told) if told else native

    def _follow(self, facts: Mapping[str, Any], path: tuple[str, ...]) -> Schema:
        """What a reference points to, with what stands beside it; cut off where it goes round."""
        reference = str(facts["$ref"])
        beside = {key: value for key, value in facts.items() if key != "$ref"}
        target = resolve_reference(self.root, reference)
        if target is None or path.count(reference) >= _UNROLLED or self.nodes > _NODES_MAX:
            name = reference.rpartition("/")[2]
            kind = as_mapping(target).get("type")
            cut: Schema = {"type": kind} if kind else {}
            described = {"description": f"As {name!r} above."} if name else {}
            return {**cut, **described}
        merged = {**as_mapping(target), **beside}
        clash = as_mapping(target).keys() & (beside.keys() - _WORDS)
        if clash or not isinstance(target, Mapping):
            merged = {"allOf": [target, beside]}
        return self.translate(merged, (*path, reference))

    def _add_structure(
        self, facts: Mapping[str, Any], native: Schema, path: tuple[str, ...]
    ) -> None:
        if "properties" in facts:
            native["properties"] = {
                name: self.translate(detail, path)
                for name, detail in as_mapping(facts["properties"]).items()
            }
        if "items" in facts:
            native["items"] = self.translate(facts["items"], path)
        elif native.get("type") == "array":
            native["items"] = {}
        if "prefixItems" in facts:
            native["prefixItems"] = [self.translate(part, path) for part in facts["prefixItems"]]
        extra = facts.get("additionalProperties")
        if "patternProperties" in facts:
            return  # These would be among those that nothing else is said of.
        if isinstance(extra, bool):
            native["additionalProperties"] = extra
        elif extra is not None:
            native["additionalProperties"] = self.translate(extra, path)

    def _add_rules(self, facts: Mapping[str, Any], native: Schema, told: Schema) -> None:
        if "format" in facts:
            if facts["format"] in _FORMATS:
                native["format"] = facts["format"]
            else:
                told["format"] = facts["format"]
        for key, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
            if key in facts:
                told[key] = facts[key]
                if _is_number(facts[key]):
                    native.setdefault(bound, facts[key])
        if "const" in facts:
            _add_choices([facts["const"]], native, told)
        elif "enum" in facts:
            _add_choices(facts["enum"], native, told)

    def _add_alternatives(
        self, facts: Mapping[str, Any], native: Schema, told: Schema, path: tuple[str, ...]
    ) -> None:
        """Alternatives, of which Gemini knows one kind; and parts that all hold, as far as they fit."""
        groups = [cast("list[Schema]", native["anyOf"])] if "anyOf" in native else []
        for key in ("anyOf", "oneOf"):
            if key in facts:
                groups.append([self.translate(part, path) for part in facts[key]])
        if groups:
            native["anyOf"] = groups[0]
        if len(groups) > 1:
            told["also one of"] = groups[1:]
        for part in facts.get("allOf", ()):
            fitting = self.translate(part, path)
            for key in _WORDS & native.keys():
                fitting.pop(key, None)
            if native.keys() & fitting.keys():
                told.setdefault("allOf", []).append(part)
            else:
                native.update(fitting)


def _add_required(facts: Mapping[str, Any], native: Schema, told: Schema) -> None:
    """Gemini refuses a request in which a name is required that is not among the properties."""
    properties = native.get("properties", {})
    names = list(facts.get("required", ()))
    if known := [name for name in names if name in properties]:
        native["required"] = known
    if len(known) < len(names):
        told["required"] = [name for name in names if name not in properties]


def _add_choices(choices: Sequence[Any], native: Schema, told: Schema) -> None:
    """Gemini takes texts, but no empty ones, and numbers as choices; null is an alternative to them."""
    plain = [choice for choice in choices if choice != "" and _is_text_or_number(choice)]
    if len(plain) == len(choices):
        native["enum"] = plain
        if all(isinstance(choice, str) for choice in plain):
            native.setdefault("type", "string")
    elif plain and len(plain) + sum(choice is None for choice in choices) == len(choices):
        kinds = {"string" if isinstance(choice, str) else "number" for choice in plain}
        kind: Schema = {"type": kinds.pop()} if len(kinds) == 1 else {}
        native.pop("type", None)
        native["anyOf"] = [{**kind, "enum": plain}, {"type": "null"}]
    else:
        told["enum"] = list(choices)


def _is_text_or_number(value: Any) -> bool:
    return isinstance(value, str) or _is_number(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
