# SPDX-License-Identifier: Apache-2.0
"""One observer hears of the model, of its calls, and of the servers in use: here one crashes and comes back."""

import asyncio
import sys
from pathlib import Path

import converser
from converser.testing import ScriptedModel

SERVER = Path(__file__).with_name("troubled_server.py")


def listen(event: converser.Event) -> None:
    match event:
        case converser.InvocationCompleted():
            print(f"{event.name}: {event.result.outcome}")
        case converser.ServerStateChanged():
            print(f"{event.server} is {event.state}")
        case converser.ReplyCompleted():
            print(event.reply.text)


async def main() -> None:
    client = converser.StdioMCPClient(command=[sys.executable, str(SERVER)])
    model = ScriptedModel([[("crash", {})], [("add", {"a": 1, "b": 1})], "It is 2."])
    async with await converser.discover_mcp_tools(client, "mcp-troubled") as troubled:
        await model.converse([converser.user("Go.")], ensembles=[troubled], events=listen)


if __name__ == "__main__":
    asyncio.run(main())
