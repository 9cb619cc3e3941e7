# SPDX-License-Identifier: Apache-2.0
"""Which tools of a server are exposed, and under which names."""

import asyncio

from weather_server import server

import converser
from converser import EnsembleConfiguration, Naming, Selection

CONFIGURATIONS = {
    "all, as the server calls them": EnsembleConfiguration(),
    "an allow list": EnsembleConfiguration(selection=Selection(allow=("get_*",))),
    "then a deny list": EnsembleConfiguration(
        selection=Selection(allow=("get_*",), deny=("get_forecast",))
    ),
    "a predicate": EnsembleConfiguration(
        selection=Selection(predicate=lambda tool: "days" in tool.arguments_schema["properties"])
    ),
    "a prefix": EnsembleConfiguration(naming=Naming(prefix="weather")),
    "mcp__server__tool": EnsembleConfiguration(naming=Naming(style="mcp")),
    "renames": EnsembleConfiguration(naming=Naming(renames={"get_weather": "look_outside"})),
}


async def main() -> None:
    for title, configuration in CONFIGURATIONS.items():
        client = converser.InProcessMCPClient(server)
        async with await converser.discover_mcp_tools(
            client, "mcp-weather", configuration=configuration
        ) as weather:
            print(f"{title}: {', '.join(weather.invokers)}")


if __name__ == "__main__":
    asyncio.run(main())
