# SPDX-License-Identifier: Apache-2.0
"""A server from configuration becomes an ensemble; its secrets are read when it is connected."""

from __future__ import annotations

from typing import cast

from mcp.server import Server
from mcp.server.mcpserver import MCPServer as SdkServer

from ..configuration import (
    MCPServer,
    resolve_command,
    resolve_cwd,
    resolve_environment,
    resolve_headers,
    resolve_parts,
    resolve_server,
    resolve_url,
)
from ..ensembles import Ensemble
from ..exceptions import ConfigurationFailure
from .base import SessionClient
from .connection import Patience
from .eras import EraMemory
from .handlers import ElicitationHandler
from .oversize.spills import Bounds
from .secrecy import Secrets
from .sessions import Way
from .settings import configure_ensemble
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

    def find_era_memory(self) -> EraMemory | None:
        """A server that is asked what it does not know may be silent for long, or end."""
        server = self.server
        if server.transport == "in-process":
            return None
        if server.transport == "stdio":
            return EraMemory(server.command, server.cwd)
        return EraMemory((server.transport, str(server.url)), None)

    def open_transport(self) -> Way:
        """Resolves what is configured, and opens the transport that it names."""
        server = self.server
        if server.transport == "in-process":
            return _take_server(server.name, resolve_server(server))
        if server.transport == "stdio":
            command, environment = resolve_command(server), resolve_environment(server)
            self.secrets = Secrets([*environment.values(), *resolve_parts(server)])
            ring = self.ring = StderrRing(self.secrets)
            return Launch(
                command=command,
                environment=environment,
                cwd=resolve_cwd(server),
                ring=ring,
                bounds=Bounds(server.result_limit),
            )
        url, headers, bounds = (
            resolve_url(server),
            resolve_headers(server),
            Bounds(server.result_limit),
        )
        self.secrets = Secrets(resolve_parts(server), headers=headers, url=url)
        if server.transport == "sse":
            return open_sse(url, headers, bounds=bounds)
        return open_http(url, headers, bounds=bounds, watch=self.stream_watch)


def _take_server(name: str, found: object) -> Way:
    if isinstance(found, Server | SdkServer):
        return cast("Way", found)
    raise ConfigurationFailure(
        f"What is configured as `server` of {name!r} is no MCP server, but a {type(found).__name__}.",
        remedy="Name a `Server` or an `MCPServer` of the SDK itself, not a function that makes one.",
    )


def create_mcp_ensemble(server: MCPServer, *, elicit: ElicitationHandler | None = None) -> Ensemble:
    """An ensemble for a configured server, not yet connected."""
    client = ConfiguredMCPClient(server, elicit=elicit)
    return Ensemble(server.name, connection=client, configuration=configure_ensemble(server))
