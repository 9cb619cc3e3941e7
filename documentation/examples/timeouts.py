# SPDX-License-Identifier: Apache-2.0
"""Timeouts: progress moves the first one, nothing moves the maximum, and the connection stays in use."""

import asyncio
import sys
from pathlib import Path

import converser

SERVER = Path(__file__).with_name("troubled_server.py")


async def tell(progress: float, total: float | None, message: str | None) -> None:
    print(f"step {progress:g} of {total:g}")


async def main() -> None:
    client = converser.StdioMCPClient(command=[sys.executable, str(SERVER)])
    configuration = converser.EnsembleConfiguration(tool_timeouts={"toil": 0.7})
    async with await converser.discover_mcp_tools(
        client, "mcp-troubled", configuration=configuration
    ) as troubled:
        toil = troubled.access_invoker("toil")
        # It takes 0.8 s, but is never silent for 0.7 s.
        print((await toil({"steps": 4}, context=converser.Context(on_progress=tell))).text)
        try:
            await toil({"steps": 50}, context=converser.Context(timeout_maximum=0.9))
        except converser.ToolExecutionFailure as failure:
            print(failure.tool, failure.outcome)
        print((await troubled.access_invoker("add")({"a": 1, "b": 1})).text)
    print(f"It was connected again {client.reconnects} times.")


if __name__ == "__main__":
    asyncio.run(main())
