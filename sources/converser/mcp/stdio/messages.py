# SPDX-License-Identifier: Apache-2.0
"""JSON-RPC messages to and from bytes; a broken one still tells, where it can, which call it answers."""

from __future__ import annotations

from typing import Any, cast

from pydantic_core import from_json, to_json

from ..leniency import decode_leniently
from ..narrowing import as_list

_BEGINNING = b'{"jsonrpc"'


def encode_message(message: dict[str, Any]) -> bytes:
    """One line for a message."""
    return to_json(message, by_alias=True) + b"\n"


def decode_messages(line: bytes) -> list[dict[str, Any]] | None:
    """The message, or the batch of messages, on a line; None where it is none."""
    value = _decode(line)
    if value is None and (start := line.rfind(_BEGINNING)) > 0:
        value = _decode(line[start:])  # after a word of the server's, or half a message
    items = [value] if (batch := as_list(value)) is None else batch
    messages = [cast("dict[str, Any]", item) for item in items if isinstance(item, dict)]
    return messages if messages and len(messages) == len(items) else None


def _decode(line: bytes) -> Any:
    try:
        return from_json(line, cache_strings="keys")
    except ValueError:
        pass
    try:
        return decode_leniently(line)
    except ValueError:
        return None
