# SPDX-License-Identifier: Apache-2.0
"""Without `async`: `converser.blocking` waits for the same engine, which runs in a thread of its own."""

import sys
from pathlib import Path

import converser
from converser import blocking
from converser.testing import ScriptedModel

SERVER = Path(__file__).with_name("weather_server.py")


def main() -> None:
    with blocking.open_portal() as portal:
        client = converser.StdioMCPClient(command=[sys.executable, str(SERVER)])
        weather = portal.discover_mcp_tools(client, "mcp-weather")
        print(portal.call(weather.access_invoker("get_weather"), {"city": "Oslo"}).structured)

        model = ScriptedModel([[("get_weather", {"city": "NYC"})], "It has 18 degrees."])
        reply = portal.converse(model, [converser.user("And in NYC?")], ensembles=[weather])
        print(reply.text)

    # Without a portal of your own there is a shared one, which ends with the program.
    for event in blocking.stream(ScriptedModel(["Good day."]), [converser.user("Hello!")]):
        if isinstance(event, converser.TextDelta):
            print(event.text)


if __name__ == "__main__":
    main()
