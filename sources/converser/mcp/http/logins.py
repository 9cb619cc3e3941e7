# SPDX-License-Identifier: Apache-2.0
"""Logins as they may fail: the one request is refused with the reason, and the session lives on.

The SDK ends a whole session when a login raises, and takes a refused one for any other error.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractContextManager, aclosing, nullcontext
from typing import Any

import httpx2

from ...hygiene import clean_text

_REFUSAL = "converser/refusal"
_REFUSED = (401, 403)


class GuardedLogin(httpx2.Auth):
    """A login of the application's for one session; the time that it takes besides requests is a person's.

    Where it fails, all further requests of the session are refused: nobody is asked again and again.
    """

    def __init__(
        self, inner: httpx2.Auth, hold: Callable[[], AbstractContextManager[None]]
    ) -> None:
        self._inner = inner
        self._hold = hold
        self.requires_request_body = inner.requires_request_body
        self.requires_response_body = inner.requires_response_body
        self._reason = ""

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Called by the HTTP client for each request."""
        status = 0
        if self._reason:
            yield _mark(request, 401, self._reason)
            return
        async with aclosing(self._inner.async_auth_flow(request)) as flow:
            try:
                step = await anext(flow)
                while True:
                    response = yield step
                    if step is request:
                        status = response.status_code
                    # Before, it may wait for other requests of its own, whose time must run.
                    with self._hold() if status in _REFUSED else nullcontext():
                        step = await flow.asend(response)
            except StopAsyncIteration:
                if status not in _REFUSED:
                    return
            except Exception as failure:
                status, self._reason = 401, describe_login_failure(failure)
        yield _mark(request, status, self._reason)


def _mark(request: httpx2.Request, status: int, reason: str) -> httpx2.Request:
    """The request, which our transports will not send."""
    request.extensions = {**request.extensions, _REFUSAL: {"status": status, "login": reason}}
    return request


def find_refusal(request: httpx2.Request) -> dict[str, Any] | None:
    """The status and the reason, where a request is not to be sent, since its login has failed."""
    refusal: dict[str, Any] | None = request.extensions.get(_REFUSAL)
    return refusal


def describe_login_failure(failure: Exception) -> str:
    """What went wrong with a login; its text may be a server's, and is never long."""
    words = clean_text(str(failure), limit=300) or type(failure).__name__
    return f"the login failed: {words.rstrip('.')}"
