# SPDX-License-Identifier: Apache-2.0
"""Regular expressions that only a backtracking engine could run, or too many: found, taken out, and told of."""

from __future__ import annotations

import time
from functools import lru_cache

from ..exceptions import SchemaInvalidity
from .atlas import Atlas
from .engines import build_engine
from .plain import is_array, is_object, show

_SECONDS_MAX = 0.05
"""Of work on the patterns of one schema: there may be thousands, each as costly as the engine allows."""
_TOLD_MAX = 20
_TURNING = ("not", "if", "then", "else", "maxContains", "unevaluatedProperties", "unevaluatedItems")


def drop_patterns(atlas: Atlas) -> tuple[str, ...]:
    """Takes out each pattern that the linear engine refuses, or has no time for; if any, a new atlas is due."""
    end = time.thread_time() + _SECONDS_MAX
    told: list[str] = []
    count = 0
    for place, schema in atlas.schemas.items():
        pattern, named = schema.get("pattern"), schema.get("patternProperties")
        unfit = [name for name in (named if is_object(named) else ()) if not _is_fit(name, end)]
        for name in unfit:
            del schema["patternProperties"][name]
            schema.pop("additionalProperties", None)
        if isinstance(pattern, str) and not _is_fit(pattern, end):
            unfit.append(schema.pop("pattern"))
        for name in unfit[: max(0, _TOLD_MAX - count)]:
            where = show(".".join(place) or "the root")
            told.append(f"the pattern {show(name)} at {where} is not checked")
        count += len(unfit)
    if count:
        _loosen(atlas)
    if count > len(told):
        told.append(f"{count - len(told)} more patterns are not checked")
    return tuple(told)


def _is_fit(pattern: str, end: float) -> bool:
    return time.thread_time() < end and _is_linear(pattern)


def _loosen(atlas: Atlas) -> None:
    """Without its patterns a schema takes more: nothing may then refuse a value for fitting a part."""
    for schema in atlas.schemas.values():
        for keyword in _TURNING:
            schema.pop(keyword, None)
        demanded = schema.get("allOf", [])
        if "oneOf" in schema and is_array(demanded):
            schema["allOf"] = [*demanded, {"anyOf": schema.pop("oneOf")}]


@lru_cache(maxsize=1024)
def _is_linear(pattern: str) -> bool:
    """Whether the linear engine takes a pattern: no look-around, no back-reference, no giants."""
    try:
        build_engine({"pattern": pattern})
    except SchemaInvalidity:
        return False
    return True
