# SPDX-License-Identifier: Apache-2.0
"""A server dies twice: a call that only reads is made again, the outcome of another stays unknown."""

import asyncio
import sys
import tempfile
from pathlib import Path

import converser
from converser.testing import ScriptedModel

SERVER = Path(__file__).with_name("troubled_server.py")


def listen(event: converser.Event) -> None:
    match event:
        case converser.ServerStateChanged():
            print(f"  {event.server} is {event.state}")
        case converser.InvocationCompleted():
            print(f"{event.name}: {event.result.outcome}")


async def main() -> None:
    client = converser.StdioMCPClient(command=[sys.executable, str(SERVER)], reconnect_attempts=5)
    # `glance` says itself that it only reads. Here you could vouch for others, by name or pattern.
    configuration = converser.EnsembleConfiguration(replay=("get_*",))
    with tempfile.TemporaryDirectory() as folder:
        model = ScriptedModel(
            [
                [("glance", {"mark": str(Path(folder, "mark"))})],
                [("crash", {})],
                [("add", {"a": 1, "b": 1})],
                "It still works.",
            ]
        )
        async with await converser.discover_mcp_tools(
            client, "mcp-troubled", configuration=configuration
        ) as troubled:
            reply = await model.converse(
                [converser.user("Go.")], ensembles=[troubled], events=listen
            )
    print(reply.text)
    print(f"It was connected again {client.reconnects} times.")


if __name__ == "__main__":
    asyncio.run(main())
