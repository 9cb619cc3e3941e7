# SPDX-License-Identifier: Apache-2.0
"""What the configuration of a server says of its tools; here, so that nobody needs the SDK to know it."""

from __future__ import annotations

from ..configuration import MCPServer
from ..ensembles import EnsembleConfiguration
from ..naming import Naming
from ..selection import Selection


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
