# SPDX-License-Identifier: Apache-2.0
"""A conversation with whatever model is at hand, the tools of an MCP server, and a function of your own."""

import asyncio
import sys

import converser


def count_letters(word: str) -> int:
    """Counts the letters of a word."""
    return sum(letter.isalpha() for letter in word)


async def main() -> None:
    # Such as "anthropic:claude-sonnet-5" or "ollama:qwen3"; without a name, whatever is at hand.
    model = converser.access_model(*sys.argv[1:])
    client = converser.StdioMCPClient(command=[sys.executable, "-m", "converser.mcp.clock"])
    async with model, await converser.discover_mcp_tools(client, "clock") as clock:
        local = converser.create_local_ensemble("local", [count_letters])
        question = converser.user("What time is it in Tokyo, and how many letters has Tokyo?")
        reply = await model.converse([question], ensembles=[clock, local])
        print(reply.text)


asyncio.run(main())
