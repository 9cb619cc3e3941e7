# SPDX-License-Identifier: Apache-2.0
"""Looks up a `$ref` within its own schema; anything outside it is never fetched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast
from urllib.parse import unquote


def resolve_reference(root: Mapping[str, Any], reference: Any) -> Any:
    """What `#/…` points to, or None."""
    if reference == "#":
        return root
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return None
    place: Any = root
    for step in unquote(reference[2:]).split("/"):
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(place, Mapping):
            place = cast("Mapping[str, Any]", place).get(key)
        elif isinstance(place, list) and key.isdigit():
            items = cast("Sequence[Any]", place)
            place = items[int(key)] if int(key) < len(items) else None
        else:
            return None
    return place
