# SPDX-License-Identifier: Apache-2.0
"""JSON Schemas of strangers: compiled once, under limits, without a network and with a linear regex
engine, so that no schema and no value can freeze the process."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import isfinite
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard, cast
from urllib.parse import quote, unquote, urljoin

from .exceptions import SchemaInvalidity

if TYPE_CHECKING:
    import jsonschema_rs

Place: TypeAlias = "tuple[str, ...]"
"""Where a subschema is within its document: the tokens of its JSON pointer."""

MAXIMUM_DEPTH = 64
_MAXIMUM_VALUES = 1_000_000
_SCHEMA_DEPTH = 128
_SCHEMA_VALUES = 30_000
_SCHEMA_CHARACTERS = 1_000_000
_APPLICATIONS = 100_000
_CHAIN = 64
_REGEX_BYTES = 1 << 20
_BASE = "https://converser.invalid/schema"
_DRAFTS = {
    "draft-04": "http://json-schema.org/draft-04/schema#",
    "draft-06": "http://json-schema.org/draft-06/schema#",
    "draft-07": "http://json-schema.org/draft-07/schema#",
    "draft/2019-09": "https://json-schema.org/draft/2019-09/schema",
    "draft/2020-12": "https://json-schema.org/draft/2020-12/schema",
}
_BRANCHED = ("allOf", "anyOf", "oneOf")
IN_PLACE = frozenset({*_BRANCHED, "not", "if", "then", "else", "dependentSchemas", "dependencies"})
HOLDERS = frozenset({"$defs", "definitions"})
_NAMED = frozenset(
    {*HOLDERS, "properties", "patternProperties", "dependentSchemas", "dependencies"}
)
_SINGLE = frozenset(
    {"items", "additionalItems", "unevaluatedItems", "contains", "propertyNames", "not", "if"}
    | {"additionalProperties", "unevaluatedProperties", "then", "else"}
)
_LISTED = frozenset({*_BRANCHED, "prefixItems", "items"})
_TURNING = ("not", "if", "then", "else", "maxContains", "unevaluatedProperties", "unevaluatedItems")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_SCALARS = frozenset({str, bool, type(None)})
_INTEGER_BITS = 14_000  # Python writes no longer ones, and the engine misjudges them
_TEXT = frozenset({str})
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
            if not all(isinstance(key, str) for key, _ in pairs):
                raise ValueError("it has a property name that is not text")
            return {str.__str__(key): copy(part, left - 1) for key, part in pairs}
        if isinstance(item, (list, tuple)):
            return [copy(part, left - 1) for part in cast("Any", item)]
        return _copy_scalar(item)

    return copy(value, depth)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One way in which a value does not fit: where, what was due, and what is there instead."""

    path: str
    expected: str
    found: str
    message: str


class Atlas:
    """Every subschema of a document by its place, and where its references lead."""

    def __init__(self, root: dict[str, Any]) -> None:
        self.root = root
        self.schemas: dict[Place, dict[str, Any]] = {}
        self._bases: dict[Place, str] = {}
        self._targets: dict[str, Place] = {_BASE: ()}
        self._chart((), _BASE)
        self.base = self._bases[()]
        self.references: dict[Place, list[Place]] = {}
        pending = list(self.schemas)
        while pending:
            place = pending.pop()
            if place not in self.references:
                known = len(self.schemas)
                self.references[place] = self._refer(place)
                pending += list(self.schemas)[known:] if len(self.schemas) > known else ()

    def find(self, place: Place) -> Any:
        """What stands at a place of the document; raises `LookupError` or `ValueError`."""
        node: Any = self.root
        for token in place:
            node = node[int(token)] if is_array(node) else node[token]
        return node

    def follow(self, place: Place, reference: str) -> Place | None:
        """The place that a reference leads to; None where it leads out of the document."""
        base, _, fragment = _join(self._bases[place], reference).partition("#")
        exact = self._targets.get(f"{base}#{fragment}" if fragment else base)
        if exact is not None or base not in self._targets or not fragment.startswith("/"):
            return exact
        tokens = (unquote(token) for token in fragment[1:].split("/"))
        names = tuple(name.replace("~1", "/").replace("~0", "~") for name in tokens)
        target = self._targets[base] + names
        try:
            found = self.find(target)
        except (LookupError, ValueError, TypeError):
            return None
        if isinstance(found, dict) and target not in self.schemas:
            self._chart(target, base)
        return target

    def _chart(self, start: Place, base: str) -> None:
        pending = [(start, base)]
        while pending:
            place, base = pending.pop()
            schema = self.find(place)
            if not is_object(schema) or place in self.schemas:
                continue
            self.schemas[place] = schema
            identity = "id" if "draft-04" in str(self.root.get("$schema")) else "$id"
            for keyword in (identity, "$anchor", "$dynamicAnchor"):
                name = schema.get(keyword)
                if isinstance(name, str):
                    target = _join(base, name if keyword == identity else f"#{name}")
                    self._targets.setdefault(target.rstrip("#"), place)
                    base = target.partition("#")[0]
            self._bases[place] = base
            pending += ((place + step, base) for step in list_steps(schema))

    def _refer(self, place: Place) -> list[Place]:
        """Where the references of one subschema lead; out of the document is no way to go."""
        leads: list[Place] = []
        for keyword in _REFERENCES:
            reference = self.schemas[place].get(keyword)
            if not isinstance(reference, str):
                continue
            target = self.follow(place, reference)
            if target is not None:
                leads.append(target)
            elif not reference.startswith(("http://json-schema.org/", "https://json-schema.org/")):
                raise SchemaInvalidity(
                    f"The schema is unusable: the reference {show(reference)} leads to nothing in it.",
                    remedy="Schemas elsewhere are never fetched; put the definition under `$defs`.",
                )
        return leads

    def measure(self) -> None:
        """Refuses schemas whose references multiply or chain up, whatever they are applied to."""
        weights: dict[Place, tuple[int, int]] = {}
        seen: set[Place] = set()
        pending: list[tuple[Place, bool]] = [((), False)]
        while pending:
            place, complete = pending.pop()
            if complete:
                weights[place] = self._weigh(place, weights)
            elif place not in seen and place in self.schemas:
                seen.add(place)
                nearby, below = self.neighbours(place)
                pending += [(place, True), *((near, False) for near in (*nearby, *below))]

    def neighbours(self, place: Place) -> tuple[list[Place], list[Place]]:
        """Subschemas that see the same value, and subschemas that see a part of it."""
        steps = [step for step in list_steps(self.schemas[place]) if step[0] not in HOLDERS]
        nearby = [place + step for step in steps if step[0] in IN_PLACE]
        below = [place + step for step in steps if step[0] not in IN_PLACE]
        return nearby + self.references[place], below

    def list_branches(self, place: Place, keyword: str) -> list[Place]:
        """The places of the alternatives of `anyOf` and the like."""
        count = len(self.schemas[place].get(keyword, ()))
        return [(*place, keyword, str(index)) for index in range(count)]

    def _weigh(self, place: Place, weights: dict[Place, tuple[int, int]]) -> tuple[int, int]:
        # A cycle counts once: the engine remembers what it has seen of a recursive reference.
        nearby, below = self.neighbours(place)
        near = [weights.get(each, (1, 1)) for each in nearby]
        deepest = max((weights.get(each, (1, 1))[0] for each in below), default=0)
        weight = 1 + deepest + sum(weight for weight, _ in near)
        chain = 1 + max((chain for _, chain in near), default=0)
        if weight > _APPLICATIONS or chain > _CHAIN:
            raise SchemaInvalidity(
                "The schema is unusable: its references multiply or nest beyond the limits.",
                remedy="Ask the author of the tool for a simpler schema.",
            )
        return weight, chain


def list_steps(schema: Mapping[str, Any]) -> Iterator[Place]:
    """The ways from a schema to the schemas directly within it."""
    for keyword, value in schema.items():
        if is_object(value) and keyword in _NAMED:
            yield from ((keyword, name) for name in value)
        elif is_array(value) and keyword in _LISTED:
            yield from ((keyword, str(index)) for index in range(len(value)))
        elif is_object(value) and keyword in _SINGLE:
            yield (keyword,)


def _join(base: str, reference: str) -> str:
    # `urljoin` knows no fragments on `urn:` and the like.
    return base + reference if reference.startswith("#") else urljoin(base, reference)


class Validator:
    """A compiled schema, with what is needed to explain and to mend what does not fit it."""

    __slots__ = ("_engine", "_parts", "_registry", "atlas", "remarks", "schema")

    def __init__(
        self, atlas: Atlas, engine: jsonschema_rs.Validator, remarks: tuple[str, ...]
    ) -> None:
        self.atlas = atlas
        self.schema: Mapping[str, Any] = atlas.root
        self.remarks = remarks
        self._engine = engine
        self._registry: jsonschema_rs.Registry | None = None
        self._parts: dict[Place, jsonschema_rs.Validator | None] = {(): engine}

    def is_valid(self, instance: Any) -> bool:
        """Whether a value fits; what is no JSON, or over the limits, never does."""
        try:
            return self._engine.is_valid(instance if is_plain(instance) else copy_plain(instance))
        except ValueError:  # no JSON, or text that is no Unicode
            return False

    def violations(self, instance: Any) -> tuple[Violation, ...]:
        """Why a value does not fit, in words; a few violations at most, none if it fits."""
        from .arguments import explain

        return explain(self, instance)

    def fits(self, place: Place, value: Any) -> bool:
        """Whether a plain value fits one subschema; True where that cannot be told."""
        if place not in self._parts:
            self._parts[place] = self._build_part(place)
        engine = self._parts[place]
        try:
            return engine is None or engine.is_valid(value)
        except ValueError:  # text that is no Unicode
            return False

    def _build_part(self, place: Place) -> jsonschema_rs.Validator | None:
        import jsonschema_rs

        escaped = (token.replace("~", "~0").replace("/", "~1") for token in place)
        base = self.atlas.base
        part = {"$ref": f"{base}#/{'/'.join(quote(token, safe='~') for token in escaped)}"}
        if "$schema" in self.schema:
            part["$schema"] = self.schema["$schema"]
        try:
            if self._registry is None:
                self._registry = jsonschema_rs.Registry([(base, self.atlas.root)])
            return build_engine(part, registry=self._registry)
        except (SchemaInvalidity, ValueError, jsonschema_rs.ReferencingError):
            return None


def build_engine(
    schema: dict[str, Any], registry: jsonschema_rs.Registry | None = None
) -> jsonschema_rs.Validator:
    """Compiles with a linear regex engine and without any retrieval."""
    import jsonschema_rs

    options = jsonschema_rs.RegexOptions(size_limit=_REGEX_BYTES, dfa_size_limit=_REGEX_BYTES)
    try:
        return jsonschema_rs.validator_for(
            schema, pattern_options=options, offline=True, registry=registry
        )
    except BaseException as failure:
        # A panic of the engine is no `Exception`, and its class cannot be imported.
        if not isinstance(failure, Exception) and type(failure).__name__ != "PanicException":
            raise
        where = ".".join(str(token) for token in getattr(failure, "instance_path", ()))
        reason = show(getattr(failure, "message", str(failure)), 200)
        raise SchemaInvalidity(
            f"The schema is unusable{f' at {show(where)}' if where else ''}: {reason}.",
            remedy="Ask the author of the tool to correct its schema.",
        ) from failure


def compile_schema(schema: Mapping[str, Any]) -> Validator:
    """Compiles a schema under limits; raises `SchemaInvalidity` with a reason that people can read."""
    root = _copy_schema(schema)
    remarks = _settle_draft(root)
    atlas = Atlas(root)
    dropped = _drop_patterns(atlas)
    if dropped:
        _loosen(atlas)
        atlas = Atlas(root)
    atlas.measure()
    return Validator(atlas, build_engine(root), (*remarks, *dropped))


def _copy_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of our own, once it is known to be JSON and of a sane size."""
    try:
        root = copy_plain(schema, _SCHEMA_DEPTH, _SCHEMA_VALUES)
        size = len(json.dumps(root))
    except ValueError as failure:
        reason = str(failure)
    else:
        if is_object(root) and size <= _SCHEMA_CHARACTERS:
            return root
        reason = f"it is not a JSON object of at most {_SCHEMA_CHARACTERS} characters"
    raise SchemaInvalidity(
        f"The schema is unusable: {reason}.", remedy="Ask the author of the tool for a simpler one."
    )


def _settle_draft(root: dict[str, Any]) -> tuple[str, ...]:
    """Spells `$schema` as the engine knows it; an unknown one is read as JSON Schema 2020-12."""
    stated = root.get("$schema")
    if not isinstance(stated, str):
        return ()
    for mark, address in _DRAFTS.items():
        if mark in stated:
            root["$schema"] = address
            return ()
    del root["$schema"]
    return (f"the dialect {show(stated)} is unknown; the schema is read as JSON Schema 2020-12",)


@lru_cache(maxsize=1024)
def _is_linear(pattern: str) -> bool:
    """Whether the linear engine takes a pattern: no look-around, no back-reference, no giants."""
    try:
        build_engine({"pattern": pattern})
    except SchemaInvalidity:
        return False
    return True


def _drop_patterns(atlas: Atlas) -> tuple[str, ...]:
    """Takes out each pattern that only a backtracking engine could run, and says so."""
    dropped: list[str] = []
    for place, schema in atlas.schemas.items():
        pattern, named = schema.get("pattern"), schema.get("patternProperties")
        unfit = [name for name in (named if is_object(named) else ()) if not _is_linear(name)]
        for name in unfit:
            del schema["patternProperties"][name]
            schema.pop("additionalProperties", None)
        if isinstance(pattern, str) and not _is_linear(pattern):
            unfit.append(schema.pop("pattern"))
        where = ".".join(place) or "the root"
        dropped += (f"the pattern {show(name)} at {show(where)} is not checked" for name in unfit)
    return tuple(dropped)


def _loosen(atlas: Atlas) -> None:
    """Without its patterns a schema takes more: nothing may then refuse a value for fitting a part."""
    for schema in atlas.schemas.values():
        for keyword in _TURNING:
            schema.pop(keyword, None)
        if "oneOf" in schema:
            schema.setdefault("allOf", []).append({"anyOf": schema.pop("oneOf")})


def example_for(schema: Mapping[str, Any] | bool, depth: int = 8) -> Any:
    """A small value that fits a schema in the ordinary cases."""
    from .repairs import make_example

    return make_example(schema, depth)
