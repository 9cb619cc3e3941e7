# SPDX-License-Identifier: Apache-2.0
"""A conversation as a stream of events: words as they come, calls as they run, and the reply in the end."""

import asyncio
import sys
from pathlib import Path

import converser
from converser.testing import ScriptedModel

SERVER = Path(__file__).with_name("weather_server.py")


async def main() -> None:
    client = converser.StdioMCPClient(command=[sys.executable, str(SERVER)])
    model = ScriptedModel([[("get_weather", {"city": "Oslo"})], "It has 7 degrees in Oslo."])
    async with await converser.discover_mcp_tools(client, "mcp-weather") as weather:
        question = converser.user("How warm is it in Oslo?")
        async for event in model.stream([question], ensembles=[weather]):
            match event:
                case converser.MessageStarted():
                    print(f"[turn {event.turn}]")
                case converser.InvocationStarted():
                    print(f"[{event.ensemble} ({event.source}) runs {event.invocation.name}]")
                case converser.InvocationCompleted():
                    print(f"[{event.result.outcome}: {event.result.structured}]")
                case converser.TextDelta():
                    print(event.text, end="|", flush=True)
                case converser.ReplyCompleted():
                    print(f"\n[{event.reply.reason}, {len(event.reply)} canisters]")
                case _:
                    pass

        # Leaving the iteration cancels the conversation, here after the first words.
        words = ScriptedModel(["There is a lot to say about that."])
        stream = words.stream([converser.user("Tell me of Oslo.")])
        async for event in stream:
            if isinstance(event, converser.TextDelta):
                print(event.text, "…")
                break
        await stream.aclose()


if __name__ == "__main__":
    asyncio.run(main())
