# SPDX-License-Identifier: Apache-2.0
"""JSON-RPC messages to and from bytes; a broken one still tells, where it can, which call it answers."""

from __future__ import annotations

import json
import re
from typing import Any, cast

from pydantic_core import from_json, to_json

_IDENTIFIER = re.compile(rb'"id"\s*:\s*(?:(\d{1,19})|"([^"\\]{1,100})")')
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def encode_message(message: dict[str, Any]) -> bytes:
    """One line for a message."""
    return to_json(message, by_alias=True) + b"\n"


def decode_messages(line: bytes) -> list[dict[str, Any]] | None:
    """The message, or the batch of messages, on a line; None where it is none."""
    try:
        value: Any = from_json(line, cache_strings="keys")
    except ValueError:
        value = _decode_leniently(line)
    items = cast("list[Any]", value) if isinstance(value, list) else [value]
    messages = [cast("dict[str, Any]", item) for item in items if isinstance(item, dict)]
    return messages if messages and len(messages) == len(items) else None


def recover_identifier(line: bytes) -> int | str | None:
    """The id in a line that cannot be decoded, where there is just one at its beginning or end."""
    found = {match for part in (line[:4_096], line[-4_096:]) for match in _IDENTIFIER.findall(part)}
    if len(found) != 1:
        return None
    number, text = found.pop()
    return int(number) if number else text.decode("utf-8", "replace")


def _decode_leniently(line: bytes) -> Any:
    """Reads what the quick decoder refuses: bytes that are no UTF-8, and lone surrogates."""
    try:
        return _mend(json.loads(line.decode("utf-8", "replace")))
    except (ValueError, RecursionError):
        return None


def _mend(value: Any) -> Any:
    if isinstance(value, str):
        return _LONE_SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_mend(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {_mend(k): _mend(v) for k, v in cast("dict[str, Any]", value).items()}
    return value
