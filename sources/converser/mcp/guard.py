# SPDX-License-Identifier: Apache-2.0
"""An HTTP transport that turns a network fault or a bare HTTP error into the failure of one call.

The SDK's client dies whole when one POST fails, and forgets the status of an error response.
"""

from __future__ import annotations

import json
from typing import Any

import httpx2

from .failures import FAULT_KEY

_FAULT_CODE = -32000


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
            sent = not isinstance(failure, (httpx2.ConnectError, httpx2.ConnectTimeout))
            words = str(failure) or type(failure).__name__
            return _answer(request, 503, {"text": words, "sent": sent})
        if response.status_code < 400 or request.method != "POST" or _has_json(response):
            return response
        await response.aclose()
        fault = {
            "status": response.status_code,
            "retry_after": response.headers.get("retry-after"),
        }
        return _answer(request, response.status_code, fault, dict(response.headers))

    async def aclose(self) -> None:
        """Closes the transport inside."""
        await self._inner.aclose()


def _has_json(response: httpx2.Response) -> bool:
    return "json" in response.headers.get("content-type", "")


def _answer(
    request: httpx2.Request,
    status: int,
    fault: dict[str, Any],
    headers: dict[str, str] | None = None,
) -> httpx2.Response:
    """A response that says what went wrong; headers that authorization needs are passed through."""
    kept = {k: v for k, v in (headers or {}).items() if k == "www-authenticate"}
    error = {"code": _FAULT_CODE, "message": "HTTP fault", "data": {FAULT_KEY: fault}}
    return httpx2.Response(
        status,
        headers={**kept, "content-type": "application/json"},
        request=request,
        content=json.dumps({"jsonrpc": "2.0", "id": 0, "error": error}).encode(),
    )
