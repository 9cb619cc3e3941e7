# SPDX-License-Identifier: Apache-2.0
"""A server that is a program of its own, spoken to over its standard streams."""

import asyncio
import sys
from pathlib import Path

import converser

SERVER = Path(__file__).with_name("weather_server.py")


async def main() -> None:
    client = converser.StdioMCPClient(
        command=[sys.executable, str(SERVER)],
        environment={"LANG": "C.UTF-8"},  # of yours, the server sees PATH, HOME and a few more
        cwd=SERVER.parent,
    )
    async with await converser.discover_mcp_tools(client, "mcp-weather") as weather:
        result = await weather.access_invoker("get_weather")({"city": "Oslo"})
        print(result.structured)


if __name__ == "__main__":
    asyncio.run(main())
