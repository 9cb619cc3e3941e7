# SPDX-License-Identifier: Apache-2.0
"""A server object of the SDK in this very process: no wire, no other process."""

import asyncio

from weather_server import server

import converser


async def main() -> None:
    client = converser.InProcessMCPClient(server)
    async with await converser.discover_mcp_tools(client, "mcp-weather") as weather:
        result = await weather.access_invoker("get_forecast")({"city": "NYC", "days": 2})
        print(result.structured)


if __name__ == "__main__":
    asyncio.run(main())
