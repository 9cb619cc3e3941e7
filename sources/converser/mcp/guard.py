# SPDX-License-Identifier: Apache-2.0
"""An HTTP transport that turns a network fault or a bare HTTP error into the failure of one call.

The SDK's client dies whole when one POST fails, and forgets the status of an error response.
No text of an exception is passed on that could quote a header: headers hold secrets.
"""

from __future__ import annotations

import json
from typing import Any

import httpx2

from .failures import FAULT_KEY, HttpRefusal

_FAULT_CODE = -32000
_BODY_MAX = 1024 * 1024
_NEVER_SENT = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.LocalProtocolError,
    httpx2.UnsupportedProtocol,
)


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Answers in the server's place where the server, or the way to it, is broken."""

    def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Passes a request on; the SDK reads a JSON-RPC error body of an error response verbatim."""
        try:
            response = await self._inner.handle_async_request(request)
        except httpx2.TransportError as failure:
            if request.method != "POST":
                raise
            fault = {"text": _describe(failure), "sent": not isinstance(failure, _NEVER_SENT)}
            return _answer(request, 503, _wrap(fault))
        if response.status_code < 400 or not _is_message(request):
            return response
        error = await _read_error(response)
        if error is None or response.status_code in (401, 403):
            error = _wrap(
                {
                    "status": response.status_code,
                    "retry_after": response.headers.get("retry-after"),
                    "session": "mcp-session-id" in request.headers,
                }
            )
        return _answer(request, response.status_code, error, dict(response.headers))

    async def aclose(self) -> None:
        """Closes the transport inside."""
        await self._inner.aclose()


def _is_message(request: httpx2.Request) -> bool:
    """Whether this is a message to the server; what a login asks elsewhere must come back as it is."""
    return request.method == "POST" and "text/event-stream" in request.headers.get("accept", "")


class RefusalTransport(httpx2.AsyncBaseTransport):
    """Tells the status of a refused event stream without its URL, which may hold a secret."""

    def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Passes a request on."""
        response = await self._inner.handle_async_request(request)
        if response.status_code < 400 or request.method != "GET":
            return response
        await response.aclose()
        raise HttpRefusal(response.status_code, response.headers.get("retry-after"))

    async def aclose(self) -> None:
        """Closes the transport inside."""
        await self._inner.aclose()


def _describe(failure: httpx2.TransportError) -> str:
    if isinstance(failure, httpx2.LocalProtocolError):
        return "the request is not valid HTTP"
    return str(failure) or type(failure).__name__


async def _read_error(response: httpx2.Response) -> dict[str, Any] | None:
    """The JSON-RPC error in a body, also where it has no id; other JSON tells the SDK nothing."""
    body = b""
    try:
        if "json" in response.headers.get("content-type", ""):
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > _BODY_MAX:
                    return None
        error = json.loads(body)["error"]
        return {
            "code": int(error["code"]),
            "message": str(error["message"]),
            "data": error.get("data"),
        }
    except (httpx2.HTTPError, httpx2.StreamError, LookupError, RecursionError):
        return None
    except (TypeError, ValueError):
        return None
    finally:
        await response.aclose()


def _wrap(fault: dict[str, Any]) -> dict[str, Any]:
    return {"code": _FAULT_CODE, "message": "HTTP fault", "data": {FAULT_KEY: fault}}


def _answer(
    request: httpx2.Request,
    status: int,
    error: dict[str, Any],
    headers: dict[str, str] | None = None,
) -> httpx2.Response:
    """A response that says what went wrong; headers that authorization needs are passed through."""
    kept = {k: v for k, v in (headers or {}).items() if k == "www-authenticate"}
    return httpx2.Response(
        status,
        headers={**kept, "content-type": "application/json"},
        request=request,
        content=json.dumps({"jsonrpc": "2.0", "id": 0, "error": error}).encode(),
    )
