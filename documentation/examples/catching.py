# SPDX-License-Identifier: Apache-2.0
"""What a Python caller catches: one exception, with its cause."""

import asyncio
import sys
from pathlib import Path

import converser

SERVER = Path(__file__).with_name("troubled_server.py")


async def main() -> None:
    try:
        client = converser.StdioMCPClient(command=["no-such-program"])
        await converser.discover_mcp_tools(client, "mcp-absent")
    except converser.MCPConnectionFailure as failure:
        print(failure.server, failure.transport, type(failure.cause).__name__)

    client = converser.StdioMCPClient(command=[sys.executable, str(SERVER)])
    async with await converser.discover_mcp_tools(client, "mcp-troubled") as troubled:
        try:
            await troubled.access_invoker("dawdle")(context=converser.Context(timeout=0.5))
        except converser.ToolExecutionFailure as failure:
            print(failure.tool, failure.outcome, type(failure.__cause__).__name__)


if __name__ == "__main__":
    asyncio.run(main())
