# SPDX-License-Identifier: Apache-2.0
"""The gate between a model and a tool: arguments that fit pass, others are mended without loss, or
refused in words from which a model can correct itself, with an example."""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping
from typing import Any, cast

from .exceptions import ArgumentsInvalidity, SchemaInvalidity
from .repairs import Walk, join_path, list_types, make_example, name_kind, repair
from .schemas import (
    Atlas,
    Place,
    Validator,
    Violation,
    build_engine,
    compile_schema,
    copy_plain,
    is_object,
    is_plain,
    show,
)

_EXAMPLE_CHARACTERS = 2_000
_VIOLATIONS = 10
_PARTS = frozenset(
    {"properties", "patternProperties", "additionalProperties"}
    | {"items", "prefixItems", "additionalItems", "unevaluatedItems"}
)
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


class Strictness(str, enum.Enum):
    """How much of the arguments is checked."""

    STRICT = "strict"
    """Properties that are not declared are refused as well, unless the schema says that it takes them."""
    STANDARD = "standard"
    """Exactly what the JSON Schema says."""
    OFF = "off"
    """Nothing is checked or mended."""


class ArgumentsGate:
    """Checks the arguments of one tool, with a schema that is compiled once."""

    __slots__ = ("_example", "_repair", "_validator", "remarks")

    def __init__(
        self,
        schema: Mapping[str, Any],
        *,
        repair: bool = True,
        strictness: Strictness = Strictness.STANDARD,
    ) -> None:
        self._repair = repair
        self._example: str | None = None
        self._validator: Validator | None = None
        self.remarks: tuple[str, ...] = ()
        if strictness is Strictness.OFF:
            return
        validator = compile_schema(schema)
        remarks = validator.remarks
        if not _takes_object(validator.atlas, (), set()):
            raise SchemaInvalidity(
                "The schema of the arguments is unusable: it does not take an object.",
                remedy="Ask the author of the tool to give it the type `object`.",
            )
        if strictness is Strictness.STRICT:
            validator, more = _tighten(validator)
            remarks += more
        self._validator = validator
        self.remarks = remarks

    def admit(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments as a dictionary of their own that fits; raises `ArgumentsInvalidity`.

        Nested containers are shared with the caller where they are plain and nothing was mended.
        """
        if not isinstance(arguments, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArgumentsInvalidity(
                f"The arguments are no object: found {show(arguments)}.",
                remedy="Give the arguments as one JSON object.",
            )
        admitted = dict(arguments)
        validator = self._validator
        if validator is None:
            return admitted
        if not is_plain(admitted):
            admitted = _make_plain(admitted)
        if validator.fits((), admitted):
            return admitted
        if self._repair:
            admitted, _ = repair(admitted, validator)
            if validator.fits((), admitted):
                return admitted
        raise self._refuse(validator, admitted)

    def _refuse(self, validator: Validator, arguments: dict[str, Any]) -> ArgumentsInvalidity:
        lines = [
            f"- {each.path or 'arguments'}: expected {each.expected}, found {each.found}"
            for each in explain(validator, arguments)
        ]
        if self._example is None:
            self._example = _write_example(validator)
        if self._example:
            lines.append(f"A valid example: {self._example}")
        return ArgumentsInvalidity(
            "\n".join(("The arguments do not fit the schema:", *lines)),
            remedy="\nCorrect the arguments and call again.",
        )


def _make_plain(arguments: dict[str, Any]) -> dict[str, Any]:
    try:
        return cast("dict[str, Any]", copy_plain(arguments))
    except ValueError as failure:
        raise ArgumentsInvalidity(
            f"The arguments are unusable: {failure}.", remedy="Give less, and plain JSON data."
        ) from failure


def _write_example(validator: Validator) -> str:
    """An example as JSON, if one is found that truly fits and is short."""
    example = make_example(validator.schema, 8)
    if not validator.is_valid(example):
        return ""
    text = json.dumps(example, ensure_ascii=False)
    return text if len(text) <= _EXAMPLE_CHARACTERS else ""


def _takes_object(atlas: Atlas, place: Place, seen: set[Place]) -> bool:
    """Whether an object could fit; a rough answer that errs on the side of yes."""
    if place in seen:
        return True
    seen.add(place)
    schema = atlas.schemas.get(place)
    if schema is None:
        return atlas.find(place) is not False
    kinds = list_types(schema)
    choices = [schema["const"]] if "const" in schema else schema.get("enum", [{}])
    if (kinds and "object" not in kinds) or not any(isinstance(item, dict) for item in choices):
        return False
    needed = [*atlas.references[place], *atlas.list_branches(place, "allOf")]
    if not all(_takes_object(atlas, near, seen) for near in needed):
        return False
    for keyword in ("anyOf", "oneOf"):
        branches = atlas.list_branches(place, keyword)
        if branches and not any(_takes_object(atlas, branch, seen) for branch in branches):
            return False
    return True


def _tighten(validator: Validator) -> tuple[Validator, tuple[str, ...]]:
    """Compiles anew such that undeclared properties do not fit where the schema is silent on them."""
    atlas = Atlas(copy_plain(validator.schema, 2 * 64))
    dialect = atlas.root.get("$schema", "")
    if "draft-04" in dialect:
        return validator, ("undeclared properties are let through: the schema is of draft 4",)
    if "draft-0" in dialect:  # 2019-09 reads these drafts, and sees through references
        atlas.root["$schema"] = "https://json-schema.org/draft/2019-09/schema"
    pending: list[Place] = [()]
    seen: set[Place] = set()
    while pending:
        location = pending.pop()
        if location in seen or location not in atlas.schemas:
            continue
        seen.add(location)
        members = _list_members(atlas, location)
        node = atlas.schemas[location]
        silent = not {"additionalProperties", "unevaluatedProperties"} & node.keys()
        if silent and any("properties" in atlas.schemas[member] for member in members):
            node["unevaluatedProperties"] = False
        for member in members:
            pending += (to for to in atlas.neighbours(member)[1] if to[len(member)] in _PARTS)
    return compile_schema(atlas.root), ()


def _list_members(atlas: Atlas, location: Place) -> list[Place]:
    """All subschemas that see the value at a location and count as fitting it."""
    members, pending = dict[Place, None](), [location]
    while pending:
        member = pending.pop()
        if member in atlas.schemas and member not in members:
            members[member] = None
            unasserted = {(*member, "not"), (*member, "if")}
            pending += (near for near in atlas.neighbours(member)[0] if near not in unasserted)
    return list(members)


def explain(validator: Validator, instance: Any) -> tuple[Violation, ...]:
    """Why a value does not fit; none if it does."""
    if not is_plain(instance):
        try:
            instance = copy_plain(instance)
        except ValueError as failure:
            return (_violate("", "JSON data", "something else", f"not usable: {failure}"),)
    explainer = _Explainer(validator)
    explainer.explain((), instance, "")
    return tuple(explainer.violations[:_VIOLATIONS])


class _Explainer(Walk):
    """Finds where a value does not fit; only asks the engine yes or no about parts.

    The engine's own list of errors grows exponentially with nested alternatives.
    """

    def __init__(self, validator: Validator) -> None:
        super().__init__(validator)
        self.violations: list[Violation] = []

    def explain(self, place: Place, value: Any, path: str) -> None:
        """Adds the violations of one subschema."""
        if len(self.violations) >= _VIOLATIONS or self.validator.fits(place, value):
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
        if "$schema" in self.validator.schema:
            leaves["$schema"] = self.validator.schema["$schema"]
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
            self.violations.append(
                _violate(join_path(path, name), f"{due} (it is required)", "nothing")
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
        fitting = sum(self.validator.fits(branch, value) for branch in branches)
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
                pending += self.atlas.neighbours(near)[0]
        if isinstance(value, dict):
            names = [name for name in cast("dict[str, Any]", value) if name not in known]
            self._refuse(names, {"properties": known}, value, path)


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
