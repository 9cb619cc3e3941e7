# SPDX-License-Identifier: Apache-2.0
"""What a broken way to a server, or its refusal, says: an error of the protocol, which the SDK passes on."""

from __future__ import annotations

import json
from typing import Any

import httpx2
from mcp_types import METHOD_NOT_FOUND

from ..failures import annotate_error, wrap_fault

_ERROR_MAX = 1024 * 1024
_NEVER_SENT = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.LocalProtocolError,
    httpx2.UnsupportedProtocol,
)
_LOST_SESSION = (
    "session not found",
    "session terminated",
    "no valid session id",
    "invalid session id",
    "session expired",
    "session has expired",
    "unknown session",
    "server not initialized",
)
_OTHER_ERA = (
    "missing session id",
    "mcp-session-id header is required",
    "unsupported protocol version",
)
"""What a server says to requests of an era that it no longer speaks, because an older one has replaced it."""
_WORDS_MAX = 1_000


async def explain_status(
    response: httpx2.Response, *, has_session: bool, is_opening: bool = False
) -> dict[str, Any]:
    """What an error response says: the server's own error where there is one, and its status in any case.

    Before anything was agreed on, there is nothing that can be lost.
    """
    status = response.status_code
    body = await _read_body(response)
    error = _find_error(body)
    words = error["message"] if error else body[:_WORDS_MAX].decode("utf-8", "replace")
    lost = not is_opening and _is_session_lost(status, error, words, has_session)
    retry_after = response.headers.get("retry-after")
    fault = {"status": status, "retry_after": retry_after, "lost": lost}
    if lost or status in (401, 403):
        error = None
    return annotate_error(error, fault) if error else wrap_fault(fault)


def _is_session_lost(
    status: int, error: dict[str, Any] | None, words: str, has_session: bool
) -> bool:
    """Whether the server has forgotten what was agreed on, in one of the ways in which servers say so."""
    if status == 404:
        return has_session and (error is None or error["code"] != METHOD_NOT_FOUND)
    return status == 400 and any(
        phrase in words.lower() for phrase in (*_LOST_SESSION, *_OTHER_ERA)
    )


async def _read_body(response: httpx2.Response) -> bytes:
    """The body where it may tell why: JSON, or the words that go with 400; nothing where it is large."""
    body = b""
    try:
        if response.status_code == 400 or "json" in response.headers.get("content-type", ""):
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > _ERROR_MAX:
                    return b""
    except (httpx2.HTTPError, httpx2.StreamError):
        return b""
    finally:
        await response.aclose()
    return body


def _find_error(body: bytes) -> dict[str, Any] | None:
    """The JSON-RPC error in a body, also where it has no id; other JSON tells the SDK nothing."""
    try:
        error = json.loads(body)["error"]
        return {
            "code": int(error["code"]),
            "message": str(error["message"]),
            "data": error.get("data"),
        }
    except (LookupError, RecursionError, TypeError, ValueError):
        return None


def blame_network(failure: Exception) -> dict[str, Any]:
    """What a network fault says, and whether the request can have left."""
    text = str(failure) or type(failure).__name__
    if isinstance(failure, httpx2.LocalProtocolError):
        text = "the request is not valid HTTP"
    return wrap_fault({"text": text, "sent": not isinstance(failure, _NEVER_SENT)})
