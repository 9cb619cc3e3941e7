# SPDX-License-Identifier: Apache-2.0
"""Clients that speak to one server each: over stdio, HTTP, SSE, or in this very process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ..ensembles import Connection
from ..exceptions import ConfigurationFailure
from ..immutables import EMPTY
from .base import SessionClient
from .connection import Patience
from .eras import EraMemory
from .handlers import ElicitationHandler
from .http.logins import GuardedLogin
from .oversize.spills import RESULT_LIMIT, Bounds
from .secrecy import Secrets
from .sessions import Way
from .states import ConnectionState
from .stderr import StderrRing
from .transports import Launch, open_http, open_sse

if TYPE_CHECKING:
    import httpx2
    from mcp.server import Server
    from mcp.server.mcpserver import MCPServer

CONNECT_TIMEOUT = 30.0
RECONNECT_ATTEMPTS = 3


class MCPClient(Connection, Protocol):
    """Speaks to one MCP server; calls may come from any task, also before `connect`."""

    name: str
    """What error messages call the server."""

    @property
    def state(self) -> ConnectionState:
        """Where the connection stands."""
        ...

    @property
    def protocol_version(self) -> str | None:
        """The protocol version that was negotiated, while connected."""
        ...

    @property
    def instructions(self) -> str | None:
        """What the server says of its use; untrusted, like all that it says."""
        ...


class StdioMCPClient(SessionClient):
    """Starts a server as a process of its own, and speaks to it over its standard streams."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str] = EMPTY,
        cwd: str | Path | None = None,
        *,
        name: str = "",
        connect_timeout: float = CONNECT_TIMEOUT,
        reconnect_attempts: int = RECONNECT_ATTEMPTS,
        elicit: ElicitationHandler | None = None,
        result_limit: int = RESULT_LIMIT,
    ) -> None:
        words = (command,) if isinstance(command, str) else tuple(command)
        if not words or not words[0]:
            raise ConfigurationFailure(
                "A stdio server needs a command.", remedy='Give a list, such as ["uvx", "…"].'
            )
        patience = Patience(connect_timeout=connect_timeout, attempts=reconnect_attempts)
        super().__init__(name or Path(words[0]).name, "stdio", patience, elicit)
        self._command = words
        self._environment = environment
        self._cwd = cwd
        self._bounds = Bounds(result_limit)

    def find_era_memory(self) -> EraMemory:
        """A process that is asked what it does not know may be silent for long, or end."""
        return EraMemory(self._command, self._cwd)

    def open_transport(self) -> Way:
        """What to start, and how."""
        self.secrets = Secrets(self._environment.values())
        ring = self.ring = StderrRing(self.secrets)
        return Launch(
            command=self._command,
            environment=self._environment,
            cwd=self._cwd,
            ring=ring,
            bounds=self._bounds,
        )


class HttpMCPClient(SessionClient):
    """Speaks streamable HTTP to a server that runs elsewhere.

    `auth` signs requests, and may log in for that: the SDK's `OAuthClientProvider` is one.
    """

    transport = "http"

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str] = EMPTY,
        *,
        name: str = "",
        connect_timeout: float = CONNECT_TIMEOUT,
        reconnect_attempts: int = RECONNECT_ATTEMPTS,
        elicit: ElicitationHandler | None = None,
        auth: httpx2.Auth | None = None,
        result_limit: int = RESULT_LIMIT,
    ) -> None:
        patience = Patience(connect_timeout=connect_timeout, attempts=reconnect_attempts)
        super().__init__(name or self.transport, self.transport, patience, elicit)
        self._url = url
        self._headers = headers
        self._auth = auth
        self._bounds = Bounds(result_limit)

    def find_era_memory(self) -> EraMemory:
        """A server that is asked what it does not know may be silent for long."""
        return EraMemory((self.transport, self._url), None)

    def open_transport(self) -> Way:
        """Opens the HTTP client."""
        self.secrets = Secrets(headers=self._headers, url=self._url)
        return open_http(
            self._url, self._headers, self._guard_login(), self._bounds, self.stream_watch
        )

    def _guard_login(self) -> httpx2.Auth | None:
        return None if self._auth is None else GuardedLogin(self._auth, self.hold_clocks)


class SseMCPClient(HttpMCPClient):
    """Speaks HTTP with server-sent events, which the protocol has deprecated."""

    transport = "sse"

    def open_transport(self) -> Way:
        """Opens the stream of events."""
        self.secrets = Secrets(headers=self._headers, url=self._url)
        return open_sse(self._url, self._headers, self._guard_login(), self._bounds)


class InProcessMCPClient(SessionClient):
    """Speaks to a server object of the SDK in this process, without a wire between."""

    def __init__(
        self,
        server: Server[Any] | MCPServer,
        *,
        name: str = "",
        connect_timeout: float = CONNECT_TIMEOUT,
        reconnect_attempts: int = RECONNECT_ATTEMPTS,
        elicit: ElicitationHandler | None = None,
    ) -> None:
        patience = Patience(connect_timeout=connect_timeout, attempts=reconnect_attempts)
        super().__init__(name or server.name, "in-process", patience, elicit)
        self._server = server

    def open_transport(self) -> Way:
        """The server itself: the SDK calls it directly."""
        return self._server
