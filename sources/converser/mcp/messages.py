# SPDX-License-Identifier: Apache-2.0
"""JSON-RPC messages to and from bytes; a broken one still tells, where it can, which call it answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from mcp.shared.exceptions import MCPError
from mcp_types import PARSE_ERROR
from opentelemetry import propagate, trace
from pydantic_core import from_json, to_json

from .failures import blame_answer
from .leniency import decode_leniently
from .narrowing import as_dictionary, as_list

_BEGINNING = b'{"jsonrpc"'


def compose_message(
    method: str,
    params: Mapping[str, Any] | None,
    identifier: int | str | None,
    *,
    wants_progress: bool = False,
) -> dict[str, Any]:
    """A message with its progress token and trace context, where there are any."""
    body: dict[str, Any] = {"jsonrpc": "2.0"}
    if identifier is not None:
        body["id"] = identifier
        meta: dict[str, Any] = {"progressToken": identifier} if wants_progress else {}
        if trace.get_current_span().get_span_context().is_valid:
            propagate.inject(meta)
        if meta:
            params = {**(params or {}), "_meta": {**((params or {}).get("_meta") or {}), **meta}}
    body["method"] = method
    if params:
        body["params"] = params
    return body


def encode_message(message: dict[str, Any]) -> bytes:
    """A message as it is sent."""
    return to_json(message, by_alias=True)


def decode_messages(line: bytes) -> list[dict[str, Any]] | None:
    """The message, or the batch of messages, on a line; None where it is none."""
    value = _decode(line)
    if value is None and (start := line.rfind(_BEGINNING)) > 0:
        value = _decode(line[start:])  # after a word of the server's, or half a message
    items = [value] if (batch := as_list(value)) is None else batch
    messages = [cast("dict[str, Any]", item) for item in items if isinstance(item, dict)]
    return messages if messages and len(messages) == len(items) else None


def normalize_identifier(identifier: Any) -> int | str:
    """An id as we know it: some servers answer to a number with its text, or as a fraction."""
    if isinstance(identifier, float) and identifier.is_integer():
        return int(identifier)
    if isinstance(identifier, str) and identifier.isdecimal() and len(identifier) < 20:
        return int(identifier)
    return identifier if isinstance(identifier, int | str) else ""


def read_error(error: Any) -> MCPError:
    """The error of an answer without a result."""
    fields = as_dictionary(error) or {}
    code, message = fields.get("code"), fields.get("message")
    if isinstance(code, int) and isinstance(message, str):
        return MCPError(code, message, fields.get("data"))
    return blame_answer(PARSE_ERROR, "it has neither a result nor a proper error")


def _decode(line: bytes) -> Any:
    try:
        return from_json(line, cache_strings="keys")
    except ValueError:
        pass
    try:
        return decode_leniently(line)
    except ValueError:
        return None
