# SPDX-License-Identifier: Apache-2.0
"""A server behind a URL: start `python weather_server.py http 8000` first, then this."""

import asyncio
import sys

import converser

URL = sys.argv[1] if sys.argv[1:] else "http://127.0.0.1:8000/mcp"


async def main() -> None:
    client = converser.HttpMCPClient(url=URL, headers={"Authorization": "Bearer no-secret"})
    async with await converser.discover_mcp_tools(client, "mcp-weather") as weather:
        result = await weather.access_invoker("get_weather")({"city": "Lagos"})
        print(result.structured)


if __name__ == "__main__":
    asyncio.run(main())
