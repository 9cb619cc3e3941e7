# SPDX-License-Identifier: Apache-2.0
"""Slips in schemas that many servers make, and other hosts never notice: read as what is surely meant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .keywords import NAMED
from .limits import copy_schema
from .plain import is_array, is_object

_DATA = frozenset({"const", "default", "enum", "examples"})
_OLDER = ("http://json-schema.org/draft-07/schema#", "http://json-schema.org/draft-04/schema#")


def list_readings(schema: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Other readings of a schema that is invalid as it stands, the likeliest first.

    Keywords that are null, as Go writes an empty list, are not there; an empty list, as PHP writes an
    empty object, is one; and words of an older edition are read as such where none is stated.
    """
    root, _ = copy_schema(schema)
    mended = _mend(root)
    if mended != root:
        yield mended
    if "$schema" not in mended:
        yield from ({**mended, "$schema": edition} for edition in _OLDER)


def _mend(schema: Any) -> Any:
    if is_array(schema):
        return [_mend(part) for part in schema]
    if not is_object(schema):
        return schema
    mended: dict[str, Any] = {}
    for keyword, value in schema.items():
        if keyword in _DATA:
            mended[keyword] = value
        elif keyword in NAMED and (value == [] or is_object(value)):
            mended[keyword] = {name: _mend(part) for name, part in dict(value).items()}
        elif value is not None and not (keyword == "required" and isinstance(value, bool)):
            mended[keyword] = _mend(value)
    return mended
