# SPDX-License-Identifier: Apache-2.0
"""Two servers beside a local ensemble, in one conversation; prefixes keep equal names apart."""

import asyncio
import sys
from contextlib import AsyncExitStack
from pathlib import Path

from weather_server import server

import converser
from converser.testing import ScriptedModel

SERVER = Path(__file__).with_name("weather_server.py")
CLIENTS = {
    "north": converser.StdioMCPClient(command=[sys.executable, str(SERVER)]),
    "south": converser.InProcessMCPClient(server),
}


def compare(first: int, second: int) -> str:
    """Says how much warmer the second place is than the first."""
    return f"{second - first} degrees warmer"


async def main() -> None:
    async with AsyncExitStack() as stack:
        ensembles = [converser.create_local_ensemble("local", [compare])]
        for name, client in CLIENTS.items():
            configuration = converser.EnsembleConfiguration(naming=converser.Naming(prefix=name))
            ensemble = await converser.discover_mcp_tools(client, name, configuration=configuration)
            ensembles.append(await stack.enter_async_context(ensemble))
        print("tools:", *converser.gather_invokers(ensembles))

        model = ScriptedModel(
            [
                [
                    ("north_get_weather", {"city": "Oslo"}),
                    ("south_get_weather", {"city": "Lagos"}),
                ],
                [("compare", {"first": 7, "second": 31})],
                lambda canisters: f"Lagos is {canisters[-1].text} than Oslo.",
            ]
        )
        question = converser.user("How much warmer is Lagos than Oslo?")
        reply = await model.converse([question], ensembles=ensembles)
        print(reply.text)
    # Here every connection has ended, in the reverse order, whatever happened above.


if __name__ == "__main__":
    asyncio.run(main())
