# SPDX-License-Identifier: Apache-2.0
"""Which MCP servers there are: value objects, `converser.toml`, and the files of other hosts."""

from __future__ import annotations

from .discovery import Configuration, find_sources, find_user_file, load_configuration
from .mistakes import Mistake
from .names import normalise_name
from .readings import Source
from .servers import MCPServer, Scope, ServerSettings, ToolNames, Transport
from .values import (
    resolve_command,
    resolve_cwd,
    resolve_environment,
    resolve_headers,
    resolve_parts,
    resolve_server,
    resolve_url,
    resolve_value,
)

__all__ = (
    "Configuration",
    "MCPServer",
    "Mistake",
    "Scope",
    "ServerSettings",
    "Source",
    "ToolNames",
    "Transport",
    "find_sources",
    "find_user_file",
    "load_configuration",
    "normalise_name",
    "resolve_command",
    "resolve_cwd",
    "resolve_environment",
    "resolve_headers",
    "resolve_parts",
    "resolve_server",
    "resolve_url",
    "resolve_value",
)
