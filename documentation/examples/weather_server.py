# SPDX-License-Identifier: Apache-2.0
"""An MCP server with invented weather: `python weather_server.py` (stdio), or `… http [PORT]`."""

import sys
from typing import TypedDict

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations

TEMPERATURES = {"NYC": 18, "Oslo": 7, "Lagos": 31}
READS = ToolAnnotations(read_only_hint=True)
server = MCPServer("weather", log_level="WARNING")


class Weather(TypedDict):
    city: str
    celsius: int


def measure(city: str) -> int:
    if city not in TEMPERATURES:
        raise ToolError(f"No weather station in {city}. Known: {', '.join(TEMPERATURES)}.")
    return TEMPERATURES[city]


@server.tool(annotations=READS)
def get_weather(city: str) -> Weather:
    """Tells the weather in a city right now."""
    return Weather(city=city, celsius=measure(city))


@server.tool(annotations=READS)
def get_forecast(city: str, days: int = 3) -> list[int]:
    """Forecasts the temperature in a city for the next days, in degrees Celsius."""
    return [measure(city) + day for day in range(1, days + 1)]


if __name__ == "__main__":
    if sys.argv[1:2] == ["http"]:
        server.settings.log_level = "INFO"  # so that it tells its URL
        server.run("streamable-http", port=int(sys.argv[2]) if sys.argv[2:] else 8000)
    else:
        server.run("stdio")
