# SPDX-License-Identifier: Apache-2.0
"""Narrows JSON of a stranger's to what it must be, for people and type checkers alike."""

from __future__ import annotations

from typing import Any

from ..schemas.plain import is_array, is_object


def as_list(value: Any) -> list[Any] | None:
    """A JSON array, or nothing."""
    return value if is_array(value) else None


def as_number(value: Any) -> float | None:
    """A JSON number, or nothing; also of one that is too large for a float."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def as_dictionary(value: Any) -> dict[str, Any] | None:
    """A JSON object, or nothing."""
    return value if is_object(value) else None
