# SPDX-License-Identifier: Apache-2.0
"""A server from configuration becomes an ensemble; its secrets are read when it is connected."""

from __future__ import annotations

from ..configuration import (
    MCPServer,
    resolve_command,
    resolve_cwd,
    resolve_environment,
    resolve_headers,
    resolve_server,
    resolve_url,
)
from ..ensembles import Ensemble, EnsembleConfiguration
from ..naming import Naming
from ..selection import Selection
from .base import SessionClient
from .connection import Patience
from .handlers import ElicitationHandler
from .sessions import Way
from .stderr import StderrRing
from .transports import Launch, open_http, open_sse


class ConfiguredMCPClient(SessionClient):
    """Speaks to a configured server; references to secrets are resolved at each connect."""

    def __init__(self, server: MCPServer, *, elicit: ElicitationHandler | None = None) -> None:
        patience = Patience(
            connect_timeout=server.connect_timeout, attempts=server.reconnect_attempts
        )
        super().__init__(server.name, server.transport, patience, elicit)
        self.server = server

    def open_transport(self) -> Way:
        """Resolves what is configured, and opens the transport that it names."""
        server = self.server
        if server.transport == "in-process":
            in_process: Way = resolve_server(server)
            return in_process
        if server.transport == "stdio":
            ring = self.ring = StderrRing()
            return Launch(
                command=resolve_command(server),
                environment=resolve_environment(server),
                cwd=resolve_cwd(server),
                ring=ring,
            )
        opener = open_http if server.transport == "http" else open_sse
        return opener(resolve_url(server), resolve_headers(server))


def create_mcp_ensemble(server: MCPServer, *, elicit: ElicitationHandler | None = None) -> Ensemble:
    """An ensemble for a configured server, not yet connected."""
    client = ConfiguredMCPClient(server, elicit=elicit)
    return Ensemble(server.name, connection=client, configuration=configure_ensemble(server))


def configure_ensemble(server: MCPServer) -> EnsembleConfiguration:
    """What the configuration of a server says of its tools."""
    prefix = server.name if server.tool_prefix is None else server.tool_prefix
    naming = Naming(style="mcp") if server.tool_names == "mcp" else Naming(prefix=prefix)
    return EnsembleConfiguration(
        selection=Selection(allow=server.enabled_tools, deny=server.disabled_tools),
        naming=naming,
        timeout=server.timeout,
        idle_timeout=server.idle_timeout,
        timeout_maximum=server.timeout_maximum,
        tool_timeouts=server.tool_timeouts,
        replay=server.replay_tools,
    )
