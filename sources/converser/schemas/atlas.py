# SPDX-License-Identifier: Apache-2.0
"""The map of a schema document: each subschema by its place, its neighbours, and where references lead."""

from __future__ import annotations

from typing import Any, TypeAlias
from urllib.parse import unquote, urljoin

from ..exceptions import SchemaInvalidity
from .keywords import HOLDERS, IN_PLACE, REFERENCES, list_within
from .plain import is_array, is_object, show

Place: TypeAlias = "tuple[str, ...]"
"""Where a subschema is within its document: the tokens of its JSON pointer."""

_BASE = "https://converser.invalid/schema"
_DIALECTS = ("http://json-schema.org/", "https://json-schema.org/")


class Atlas:
    """Every subschema of a document by its place, and where its references lead."""

    def __init__(self, root: dict[str, Any]) -> None:
        self.root = root
        self.schemas: dict[Place, dict[str, Any]] = {}
        self.nearby: dict[Place, list[Place]] = {}
        """Subschemas that see the same value; those that are referred to are the last."""
        self.below: dict[Place, list[Place]] = {}
        """Subschemas that see a part of the value."""
        self.references: dict[Place, list[Place]] = {}
        self._bases: dict[Place, str] = {}
        self._targets: dict[str, Place] = {_BASE: ()}
        self._identity = "id" if "draft-04" in str(root.get("$schema")) else "$id"
        self._chart((), root, _BASE)
        self.base = self._bases[()]
        self._refer_all()

    def find(self, place: Place) -> Any:
        """What stands at a place of the document; raises `LookupError` or `ValueError`."""
        node: Any = self.root
        for token in place:
            node = node[int(token)] if is_array(node) else node[token]
        return node

    def list_branches(self, place: Place, keyword: str) -> list[Place]:
        """The places of the alternatives of `anyOf` and the like."""
        count = len(self.schemas[place].get(keyword, ()))
        return [(*place, keyword, str(index)) for index in range(count)]

    def _chart(self, place: Place, schema: Any, base: str) -> None:
        pending = [(place, schema, base)]
        while pending:
            place, schema, base = pending.pop()
            if not is_object(schema) or place in self.schemas:
                continue
            self.schemas[place] = schema
            base = self._bases[place] = self._name(place, schema, base)
            nearby = self.nearby[place] = []
            below = self.below[place] = []
            for step, part in list_within(schema):
                inner = place + step
                pending.append((inner, part, base))
                if step[0] in IN_PLACE:
                    nearby.append(inner)
                elif step[0] not in HOLDERS:
                    below.append(inner)

    def _name(self, place: Place, schema: dict[str, Any], base: str) -> str:
        """Notes the names that a subschema gives itself; returns the base of references in it."""
        for keyword in (self._identity, "$anchor", "$dynamicAnchor"):
            name = schema.get(keyword)
            if isinstance(name, str):
                target = _join(base, name if keyword == self._identity else f"#{name}")
                self._targets.setdefault(target.rstrip("#"), place)
                base = target.partition("#")[0]
        return base

    def _refer_all(self) -> None:
        """Follows all references, also those in what is only found by a reference."""
        pending = list(self.schemas)
        while pending:
            place = pending.pop()
            known = len(self.schemas)
            self.references[place] = self._refer(place)
            self.nearby[place] += self.references[place]
            pending += list(self.schemas)[known:] if len(self.schemas) > known else ()

    def _refer(self, place: Place) -> list[Place]:
        """Where the references of one subschema lead; out of the document is no way to go."""
        leads: list[Place] = []
        schema = self.schemas[place]
        for keyword in REFERENCES:
            reference = schema.get(keyword)
            if not isinstance(reference, str):
                continue
            target = self._follow(place, reference)
            if target is not None:
                leads.append(target)
            elif not reference.startswith(_DIALECTS):
                raise SchemaInvalidity(
                    f"The schema is unusable: the reference {show(reference)} leads to nothing in it.",
                    remedy="Schemas elsewhere are never fetched; put the definition under `$defs`.",
                )
        return leads

    def _follow(self, place: Place, reference: str) -> Place | None:
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
        self._chart(target, found, base)
        return target


def _join(base: str, reference: str) -> str:
    if reference.startswith("#"):  # `urljoin` knows no fragments on `urn:` and the like
        return base + reference
    try:
        return urljoin(base, reference)
    except ValueError:  # no address; what is wrong with it is for the engine to say
        return reference
