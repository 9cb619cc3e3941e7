# SPDX-License-Identifier: Apache-2.0
"""A call over HTTP in its caller's own task; the SDK's way takes two tasks and three streams more.

Only where that makes no difference: in an era without sessions, for an answer that is plain. Any other
answer goes the SDK's way after all: it is held until the SDK asks for it, and the server is not asked twice.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import anyio
import anyio.abc
import httpx2
from mcp.shared.dispatcher import CallOptions, OnNotify, OnNotifyIntercept, OnRequest
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.transport_context import TransportContext
from mcp_types import CONNECTION_CLOSED, PARSE_ERROR, RequestId
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from ..failures import blame_answer
from ..messages import (
    compose_message,
    decode_messages,
    encode_message,
    normalize_identifier,
    read_error,
)
from ..narrowing import as_dictionary
from ..tracing import trace_request
from .guard import GuardedTransport

_HEADERS = {"accept": "application/json, text/event-stream", "content-type": "application/json"}


class DirectWay:
    """Posts messages to one address, through the client that the SDK's transport uses too."""

    def __init__(self, client: httpx2.AsyncClient, url: str, guard: GuardedTransport) -> None:
        self._client = client
        self._url = httpx2.URL(url)
        self.hold = guard.hold

    async def post(self, message: dict[str, Any], headers: Mapping[str, str]) -> httpx2.Response:
        """The answer to a message, as the guard leaves it."""
        request = self._client.build_request(
            "POST", self._url, content=encode_message(message), headers={**_HEADERS, **headers}
        )
        return await self._client.send(request, stream=True, follow_redirects=False)


class HttpStreams(NamedTuple):
    """The streams of the SDK's transport, and the way past them."""

    read: Any
    write: Any
    direct: DirectWay


class DirectDispatcher(JSONRPCDispatcher[TransportContext]):
    """The SDK's dispatcher, past which calls go that need nothing of it."""

    def __init__(
        self, streams: HttpStreams, treat: Callable[[str, dict[str, Any]], dict[str, Any]]
    ) -> None:
        super().__init__(streams.read, streams.write)
        self._direct = streams.direct
        self._treat = treat
        self._runs = False
        self._scopes: set[anyio.CancelScope] = set()
        self._roundabout: set[Any] = set()
        """The tools whose answers were not plain, and so will not be."""

    async def send_raw_request(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        opts: CallOptions | None = None,
        *,
        _related_request_id: RequestId | None = None,
    ) -> dict[str, Any]:
        """Sends a request and waits for its answer."""
        if params is None or opts is None or not self._may_go_directly(method, params, opts):
            return await super().send_raw_request(
                method, params, opts, _related_request_id=_related_request_id
            )
        identifier = secrets.randbits(52)
        wants_progress = opts.get("on_progress") is not None
        with trace_request(method, params, identifier):
            message = compose_message(method, params, identifier, wants_progress=wants_progress)
            response = await self._post(message, opts.get("headers", {}))
            result = _read_plain(response, identifier)
        if result is not None:
            return self._treat(method, result)
        self._roundabout.add(params.get("name"))
        async with self._direct.hold(identifier, response):
            return await super().send_raw_request(
                method, params, {**opts, "request_id": identifier}
            )

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: OnNotifyIntercept | None = None,
        *,
        task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Serves what the server sends; when that ends, so do all calls."""
        self._runs = True
        try:
            await super().run(on_request, on_notify, on_notify_intercept, task_status=task_status)
        finally:
            self._runs = False
            for scope in self._scopes:
                scope.cancel()

    def _may_go_directly(
        self, method: str, params: Mapping[str, Any], options: CallOptions
    ) -> bool:
        """Whether a request is a call whose answer its own exchange will bring, or its caller's clock end."""
        version = options.get("headers", {}).get(MCP_PROTOCOL_VERSION_HEADER)
        return (
            method == "tools/call"
            and version in MODERN_PROTOCOL_VERSIONS
            and "timeout" not in options
            and params.get("name") not in self._roundabout
            and self._runs
        )

    async def _post(self, message: dict[str, Any], headers: Mapping[str, str]) -> httpx2.Response:
        with anyio.CancelScope() as scope:
            self._scopes.add(scope)
            try:
                return await self._direct.post(message, headers)
            finally:
                self._scopes.discard(scope)
        raise MCPError(CONNECTION_CLOSED, "Connection closed")


def _read_plain(response: httpx2.Response, identifier: int) -> dict[str, Any] | None:
    """The result in an answer, or its error, raised; nothing where the answer is not plain."""
    kind = response.headers.get("content-type", "").lower()
    if not kind.startswith("application/json") or response.is_redirect:
        return None
    answer = _find_answer(response, identifier)
    if (result := as_dictionary(answer.get("result"))) is None:
        raise read_error(answer.get("error"))
    return result


def _find_answer(response: httpx2.Response, identifier: int) -> dict[str, Any]:
    """The one message that answers the request; without one, nobody needs to wait until the time is up."""
    is_refusal = response.status_code >= 400  # in words of the guard, which do not name the request
    for message in decode_messages(response.content) or ():
        is_ours = normalize_identifier(message.get("id")) == identifier
        if is_refusal or (is_ours and "method" not in message):
            return message
    raise blame_answer(PARSE_ERROR, "it is not a message of the protocol that answers the request")
