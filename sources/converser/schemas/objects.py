# SPDX-License-Identifier: Apache-2.0
"""What a schema says of objects: whether it takes any, and which of their properties it declares."""

from __future__ import annotations

from .atlas import Atlas, Place
from .keywords import REFERENCES, list_types
from .limits import copy_schema
from .validators import Validator

_DOUBTS = frozenset({"const", "enum", "allOf", "anyOf", "oneOf", *REFERENCES})
_PARTS = frozenset(
    {"properties", "patternProperties", "additionalProperties"}
    | {"items", "prefixItems", "additionalItems", "unevaluatedItems"}
)


def takes_object(validator: Validator) -> bool:
    """Whether an object could fit; a rough answer that errs on the side of yes."""
    schema = validator.schema
    plainly = schema.get("type") == "object" and _DOUBTS.isdisjoint(schema)
    return plainly or _takes_object(validator.atlas, (), set())


def _takes_object(atlas: Atlas, place: Place, seen: set[Place]) -> bool:
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


def tighten(validator: Validator) -> Validator:
    """One that takes no undeclared properties where the schema is silent on them."""
    root, _ = copy_schema(validator.schema)
    dialect = root.get("$schema", "")
    if "draft-04" in dialect:
        remark = "undeclared properties are let through: the schema is of draft 4"
        return Validator(root, validator.atlas, (*validator.remarks, remark))
    if "draft-0" in dialect:  # 2019-09 reads these drafts, and sees through references
        root["$schema"] = "https://json-schema.org/draft/2019-09/schema"
    atlas = Atlas(root)
    _close(atlas)
    return Validator(root, atlas, validator.remarks)


def _close(atlas: Atlas) -> None:
    """Refuses what is undeclared, wherever a value is looked at by a schema that declares properties."""
    pending: list[Place] = [()]
    seen: set[Place] = set()
    while pending:
        place = pending.pop()
        if place in seen or place not in atlas.schemas:
            continue
        seen.add(place)
        members = _list_members(atlas, place)
        schema = atlas.schemas[place]
        silent = not {"additionalProperties", "unevaluatedProperties"} & schema.keys()
        if silent and any("properties" in atlas.schemas[member] for member in members):
            schema["unevaluatedProperties"] = False
        for member in members:
            pending += (part for part in atlas.below[member] if part[len(member)] in _PARTS)


def _list_members(atlas: Atlas, place: Place) -> list[Place]:
    """All subschemas that see the value at a place and count as fitting it."""
    members, pending = dict[Place, None](), [place]
    while pending:
        member = pending.pop()
        if member in atlas.schemas and member not in members:
            members[member] = None
            unasserted = {(*member, "not"), (*member, "if")}
            pending += (near for near in atlas.nearby[member] if near not in unasserted)
    return list(members)
