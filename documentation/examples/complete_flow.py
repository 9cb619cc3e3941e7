# SPDX-License-Identifier: Apache-2.0
"""The whole way: a server process, discovery, a conversation that uses a tool, and the end of it."""

import asyncio
import sys
from pathlib import Path

import converser
from converser.testing import ScriptedModel

SERVER = Path(__file__).with_name("weather_server.py")


async def main() -> None:
    # 1. Create an MCP client. Nothing is started yet.
    client = converser.StdioMCPClient(command=[sys.executable, str(SERVER)])

    # 2. Discover tools and create an ensemble, which owns the connection from now on.
    weather = await converser.discover_mcp_tools(client, "mcp-weather")
    for name, invoker in weather.invokers.items():
        print(f"tool        {name}: {invoker.description}")

    # 3. A model. This one is scripted: it says what is written here, and everything else is real.
    model = ScriptedModel(
        [
            [("get_weather", {"city": "NYC"})],
            lambda canisters: f"It is {canisters[-1].structured['celsius']} °C in NYC.",
        ]
    )

    # 4. Converse. The loop runs what the model invokes, until the model is done.
    canisters = [converser.user("What's the weather in NYC?")]
    reply = await model.converse(canisters, ensembles=[weather])
    for canister in reply:
        if isinstance(canister, converser.InvocationCanister):
            print(f"invocation  {canister.name} {dict(canister.arguments)}")
        elif isinstance(canister, converser.ResultCanister):
            print(f"result      {canister.outcome}: {canister.structured}")
    print(f"answer      {reply.text}")

    # 5. Clean up: the server process ends.
    await weather.disconnect()


if __name__ == "__main__":
    asyncio.run(main())
