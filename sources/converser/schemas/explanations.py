# SPDX-License-Identifier: Apache-2.0
"""Why a value does not fit its schema, in words from which people and models can correct it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from ..exceptions import SchemaInvalidity
from .atlas import Place
from .engines import Judge, build_engine
from .keywords import list_types
from .plain import copy_plain, is_object, is_plain, name_kind, show
from .walks import Walk, join_path

_VIOLATIONS = 10
_LEAVES = frozenset(
    {"type", "enum", "const", "pattern", "format", "required", "dependentRequired", "multipleOf"}
    | {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength"}
    | {"minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties"}
)
_EXPECTATIONS = {
    "minimum": "at least {limit}",
    "maximum": "at most {limit}",
    "exclusiveMinimum": "more than {limit}",
    "exclusiveMaximum": "less than {limit}",
    "multipleOf": "a multiple of {multiple_of}",
    "minLength": "at least {limit} characters",
    "maxLength": "at most {limit} characters",
    "minItems": "at least {limit} items",
    "maxItems": "at most {limit} items",
    "minProperties": "at least {limit} properties",
    "maxProperties": "at most {limit} properties",
    "uniqueItems": "items that all differ",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One way in which a value does not fit: where, what was due, and what is there instead."""

    path: str
    expected: str
    found: str
    message: str


def explain(judge: Judge, instance: Any) -> tuple[Violation, ...]:
    """Why a value does not fit; none if it does."""
    if not is_plain(instance):
        try:
            instance = copy_plain(instance)
        except ValueError as failure:
            return (_violate("", "JSON data", "something else", f"not usable: {failure}"),)
    explainer = _Explainer(judge)
    explainer.explain((), instance, "")
    return tuple(explainer.violations[:_VIOLATIONS])


class _Explainer(Walk):
    """Finds where a value does not fit, asking the engine only yes or no about parts."""

    # The engine's own list of errors grows exponentially with nested alternatives.

    def __init__(self, judge: Judge) -> None:
        super().__init__(judge)
        self.violations: list[Violation] = []

    def explain(self, place: Place, value: Any, path: str) -> None:
        """Adds the violations of one subschema."""
        if len(self.violations) >= _VIOLATIONS or self.judge.fits(place, value):
            return
        before = len(self.violations)
        if place in self.atlas.schemas and self.enter(place, path):
            self._explain_leaves(place, value, path)
            for key, part in self.list_parts(place, value):
                self.explain(part, value[key], join_path(path, key))
            for near in (*self.atlas.references[place], *self.atlas.list_branches(place, "allOf")):
                self.explain(near, value, path)
            for keyword in ("anyOf", "oneOf"):
                self._explain_branches(self.atlas.list_branches(place, keyword), value, path)
            if len(self.violations) == before:
                self._explain_undeclared(place, value, path)
            self.leave(place, path)
        if len(self.violations) == before:
            self._add(path, self.describe(place), value)

    def describe(self, place: Place) -> str:
        """What a subschema takes, in a few words."""
        schema = self.resolve(place)
        if not schema:
            return "a value that is allowed here"
        if "const" in schema:
            return f"exactly {show(schema['const'])}"
        if "enum" in schema:
            return _list_choices(schema["enum"])
        kinds = list_types(schema)
        if kinds:
            form = schema.get("format")
            return " or ".join(kinds) + (f" in the format {show(form)}" if form else "")
        branches = schema.get("anyOf", schema.get("oneOf", []))
        words = [" or ".join(list_types(b)) for b in branches if is_object(b)]
        return " or ".join(filter(None, words)) or "a value that fits the schema"

    def _add(self, path: str, expected: str, found: Any) -> None:
        violation = _violate(path, expected, _describe_value(found))
        if violation not in self.violations:
            self.violations.append(violation)

    def _explain_leaves(self, place: Place, value: Any, path: str) -> None:
        schema = self.atlas.schemas[place]
        leaves: dict[str, Any] = {key: item for key, item in schema.items() if key in _LEAVES}
        if schema.get("additionalProperties") is False:
            leaves["additionalProperties"] = False
            for keyword in ("properties", "patternProperties"):
                leaves[keyword] = {name: {} for name in schema.get(keyword, ())}
        if "$schema" in self.judge.schema:
            leaves["$schema"] = self.judge.schema["$schema"]
        try:
            errors = list(build_engine(leaves).iter_errors(value))
        except (SchemaInvalidity, ValueError):
            return
        for error in errors[:_VIOLATIONS]:
            self._explain_error(error.kind.name, error.kind.as_dict(), place, value, path)

    def _explain_error(
        self, keyword: str, facts: dict[str, Any], place: Place, value: Any, path: str
    ) -> None:
        if keyword == "required":
            name = facts["property"]
            due = self.describe((*place, "properties", name))
            strays = _list_strays(self.atlas.schemas[place], value)
            found = f"nothing (but {strays}, which is not known here)" if strays else "nothing"
            self.violations.append(
                _violate(join_path(path, name), f"{due} (it is required)", found)
            )
        elif keyword == "additionalProperties":
            self._refuse(facts["unexpected"], self.atlas.schemas[place], value, path)
        elif keyword in ("type", "enum", "const"):
            self._add(path, self.describe(place), value)
        elif keyword in ("pattern", "format"):
            self._add(path, f"text that fits the {keyword} {show(facts[keyword])}", value)
        else:
            words = _EXPECTATIONS.get(keyword, "a value that fits the schema")
            self._add(path, words.format(**facts), value)

    def _refuse(self, names: list[str], schema: Mapping[str, Any], value: Any, path: str) -> None:
        known = ", ".join(show(name) for name in list(schema.get("properties", ()))[:20])
        words = f"no such property (known here: {known or 'none'})"
        for name in names[:_VIOLATIONS]:
            self._add(join_path(path, name), words, value[name])

    def _explain_branches(self, branches: list[Place], value: Any, path: str) -> None:
        fitting = sum(self.judge.fits(branch, value) for branch in branches)
        if fitting > 1 and branches[0][-2] == "oneOf":
            self._add(path, f"a value that fits only one alternative, not {fitting}", value)
        if fitting or not branches:
            return
        plausible = [branch for branch in branches if self._is_plausible(branch, value)]
        if len(plausible) == 1:
            self.explain(plausible[0], value, path)
        else:
            words = dict.fromkeys(self.describe(branch) for branch in (plausible or branches)[:8])
            self._add(path, f"{' or '.join(words)} (one of {len(branches)} alternatives)", value)

    def _is_plausible(self, branch: Place, value: Any) -> bool:
        """Whether an alternative was perhaps meant: the type is right, and what tells it apart."""
        schema = self.resolve(branch)
        kinds = list_types(schema)
        if kinds and name_kind(value) not in (*kinds, *(["integer"] if "number" in kinds else [])):
            return False
        if not isinstance(value, dict):
            return True
        for name, part in schema.get("properties", {}).items():
            told = is_object(part) and ("const" in part or "enum" in part)
            if told and name in value and value[name] not in part.get("enum", [part.get("const")]):
                return False
        return True

    def _explain_undeclared(self, place: Place, value: Any, path: str) -> None:
        if self.atlas.schemas[place].get("unevaluatedProperties") is not False:
            return
        pending, known, seen = [place], dict[str, Any](), set[Place]()
        while pending:
            near = pending.pop()
            if near in self.atlas.schemas and near not in seen:
                seen.add(near)
                known |= self.atlas.schemas[near].get("properties", {})
                pending += self.atlas.nearby[near]
        if isinstance(value, dict):
            names = [name for name in cast("dict[str, Any]", value) if name not in known]
            self._refuse(names, {"properties": known}, value, path)


def _list_strays(schema: Mapping[str, Any], value: dict[str, Any]) -> str:
    """What was given under names that a schema tolerates and does not know: one was perhaps meant."""
    if schema.get("additionalProperties") is False:
        return ""  # Then they are violations of their own.
    strays = [show(name) for name in value if name not in schema.get("properties", {})]
    return ", ".join(strays[:_VIOLATIONS])


def _violate(path: str, expected: str, found: str, message: str = "") -> Violation:
    words = message or f"{path or 'the value'}: expected {expected}, found {found}"
    return Violation(path=path, expected=expected, found=found, message=words)


def _list_choices(choices: list[Any]) -> str:
    words = ", ".join(show(choice, 40) for choice in choices[:12])
    return f"one of {words}{', …' if len(choices) > 12 else ''}"


def _describe_value(value: Any) -> str:
    if isinstance(value, (dict, list)):
        count = len(cast("list[Any]", value))
        return f"an {name_kind(value)} of {count}: {show(value, 40)}"
    return show(value)
