# SPDX-License-Identifier: Apache-2.0
"""What explaining and mending a value have in common: its parts, their paths, and an end."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import Any

from .atlas import Place
from .engines import Judge
from .plain import is_array, is_object, show

_STEPS = 2_000
_NESTING = 100
_SECONDS = 0.5


class Walk:
    """What explaining and mending share: the parts of a value, and an end to every effort."""

    def __init__(self, judge: Judge) -> None:
        self.judge = judge
        self.atlas = judge.atlas
        self._active: set[tuple[Place, str]] = set()
        self._steps = _STEPS
        self._deadline = time.monotonic() + _SECONDS

    def enter(self, place: Place, path: str) -> bool:
        """Whether to go on; False in a circle, and when enough effort was spent."""
        self._steps -= 1
        if self._steps < 0 or len(self._active) >= _NESTING or time.monotonic() > self._deadline:
            return False
        if (place, path) in self._active:
            return False
        self._active.add((place, path))
        return True

    def leave(self, place: Place, path: str) -> None:
        """Ends what `enter` began."""
        self._active.discard((place, path))

    def list_parts(self, place: Place, value: Any) -> Iterator[tuple[str | int, Place]]:
        """Each property or item of a value with the subschema that is due for it."""
        schema = self.atlas.schemas[place]
        if is_object(value):
            declared = schema.get("properties", {})
            others = is_object(schema.get("additionalProperties"))
            others = others and not schema.get("patternProperties")
            for name in value:
                if name in declared:
                    yield name, (*place, "properties", name)
                elif others:
                    yield name, (*place, "additionalProperties")
        elif is_array(value):
            tupled = is_array(schema.get("items"))
            first, rest = ("items", "additionalItems") if tupled else ("prefixItems", "items")
            leading = len(schema.get(first, ()))
            for index in range(len(value)):
                if index < leading:
                    yield index, (*place, first, str(index))
                elif rest in schema:
                    yield index, (*place, rest)

    def resolve(self, place: Place) -> dict[str, Any]:
        """The subschema at a place, or what it merely refers to."""
        for _ in range(8):
            leads = self.atlas.references.get(place, [])
            if not leads or "type" in self.atlas.schemas.get(place, {}):
                break
            place = leads[0]
        return self.atlas.schemas.get(place, {})


def join_path(path: str, key: str | int) -> str:
    """`filters` and 2 make `filters[2]`; odd names are quoted."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    if not re.fullmatch(r"[\w$-]{1,64}", key):
        return f"{path}[{show(key)}]"
    return f"{path}.{key}" if path else key
