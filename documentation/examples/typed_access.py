# SPDX-License-Identifier: Apache-2.0
"""Typed access: a dataclass from a tool's schema, and a whole module of them as text."""

import asyncio

from weather_server import server

import converser


async def main() -> None:
    client = converser.InProcessMCPClient(server)
    async with await converser.discover_mcp_tools(client, "mcp-weather") as weather:
        invoker = weather.access_invoker("get_forecast")

        kind = converser.create_arguments_class(invoker)
        arguments = kind(city="Oslo", days=2)
        print(arguments)
        print((await invoker(converser.dump_arguments(arguments))).structured)

        print(converser.write_stub_module(weather.invokers.values(), weather.name))


if __name__ == "__main__":
    asyncio.run(main())
