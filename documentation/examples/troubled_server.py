# SPDX-License-Identifier: Apache-2.0
"""An MCP server that fails in every way, over stdio."""

import asyncio
import os

from mcp import MCPError
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import INVALID_PARAMS

server = MCPServer("troubled", log_level="CRITICAL")


@server.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers; the only tool here that works."""
    return a + b


@server.tool()
def fail() -> str:
    """Fails as a tool should: with a result that is an error."""
    raise ToolError("The disk is full.")


@server.tool()
def refuse() -> str:
    """Fails with an error of the protocol."""
    raise MCPError(INVALID_PARAMS, "Not on a Sunday.")


@server.tool()
async def dawdle() -> str:
    """Takes a minute."""
    await asyncio.sleep(60)
    return "At last."


@server.tool()
def crash() -> str:
    """Ends the process of the server in the middle of the call."""
    os._exit(7)


if __name__ == "__main__":
    server.run("stdio")
