# SPDX-License-Identifier: Apache-2.0
"""Servers from `converser.toml`; secrets are read at connect, and shown nowhere."""

import asyncio
from pathlib import Path

import converser

FILE = Path(__file__).with_name("converser.toml")


async def main() -> None:
    configuration = converser.load_configuration(FILE)
    for server in configuration.servers.values():
        print(server)
    async with converser.create_mcp_ensemble(configuration.servers["weather"]) as weather:
        print(*weather.invokers)
        print((await weather.access_invoker("get_weather")({"city": "NYC"})).structured)


if __name__ == "__main__":
    asyncio.run(main())
