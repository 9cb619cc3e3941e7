# SPDX-License-Identifier: Apache-2.0
"""A real conversation without a key: a small model on this machine's CPU, and a real MCP server.

The first run fetches the model (1.1 GB); after that it works offline. It is a demonstration: small
models err, so the results of tools are printed beside the answer. It asks before it fetches, if there
is somebody to ask, unless you say --yes.
"""

import asyncio
import sys
from pathlib import Path

import converser

WORDS = [word for word in sys.argv[1:] if word != "--yes"]
QUESTION = " ".join(WORDS) or "What's the weather in Oslo?"
SERVER = Path(__file__).with_name("weather_server.py")


def show(event: converser.Event) -> None:
    if isinstance(event, converser.InvocationStarted):
        print(f"invocation  {event.name} {dict(event.arguments)}")
    elif isinstance(event, converser.InvocationCompleted):
        print(f"result      {event.result.outcome}: {event.result.text}")


def confirm(sentence: str) -> bool:
    if "--yes" in sys.argv or not sys.stdin.isatty():
        return True
    return input(f"{sentence} Go on? [Y/n] ").strip().lower() in ("", "y", "yes")


async def main() -> None:
    client = converser.StdioMCPClient(command=[sys.executable, str(SERVER)])
    async with (
        await converser.discover_mcp_tools(client, "mcp-weather") as weather,
        converser.access_model("embedded", confirm=confirm) as model,
    ):
        print(f"tools       {', '.join(weather.invokers)}")
        print(f"user        {QUESTION}")
        reply = await model.converse([converser.user(QUESTION)], ensembles=[weather], events=show)
        print(f"{model.name}\n            {reply.text}")


if __name__ == "__main__":
    asyncio.run(main())
