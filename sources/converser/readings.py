# SPDX-License-Identifier: Apache-2.0
"""Reads text as the JSON value that it exactly is: `"5"`, `"0.25"`, `"true"`, JSON of an object or array.

`"5.0"` is an integer too; never `"1e3"`, `"05"`, `" 5"`, or a decimal that a float would round.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from .schemas.plain import is_plain

_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,400}")
_DECIMAL = re.compile(r"(-?(?:0|[1-9][0-9]{0,400}))\.([0-9]{1,400})")


def _read_integer(text: str) -> int | None:
    decimal = _DECIMAL.fullmatch(text)
    digits = decimal[1] if decimal and not decimal[2].strip("0") else text
    return int(digits) if _INTEGER.fullmatch(digits) else None


def _read_number(text: str) -> float | None:
    if _INTEGER.fullmatch(text):
        return int(text)
    try:
        return _read_float(text) if _DECIMAL.fullmatch(text) else None
    except ValueError:
        return None


def _read_float(text: str) -> float:
    value = float(text)
    if Decimal(repr(value)) != Decimal(text):
        raise ValueError("a float would round it")
    return value


def _read_json(text: str, kind: type) -> Any:
    try:
        value = json.loads(
            text,
            parse_float=_read_float,
            parse_constant=_refuse_constant,
            object_pairs_hook=_read_pairs,
        )
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, kind) and is_plain(value) else None


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _read_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a property is there twice")
    return result


READERS: dict[str, Callable[[str], Any]] = {
    "integer": _read_integer,
    "number": _read_number,
    "boolean": {"true": True, "false": False}.get,
    "object": lambda text: _read_json(text, dict),
    "array": lambda text: _read_json(text, list),
}
