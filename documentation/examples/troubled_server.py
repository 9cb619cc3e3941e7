# SPDX-License-Identifier: Apache-2.0
"""An MCP server that fails in every way, over stdio."""

import asyncio
import os
from pathlib import Path

from mcp import MCPError
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import INVALID_PARAMS, ToolAnnotations

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


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def glance(mark: str) -> str:
    """Only reads; ends the process at the first call, of which a file is the mark."""
    if not Path(mark).exists():
        Path(mark).touch()
        os._exit(7)
    return "All quiet."


@server.tool()
async def toil(context: Context, steps: int) -> str:
    """Takes a fifth of a second for each step, and tells when it begins."""
    for step in range(steps):
        await context.report_progress(step + 1, steps)
        await asyncio.sleep(0.2)
    return f"{steps} steps done."


if __name__ == "__main__":
    server.run("stdio")
