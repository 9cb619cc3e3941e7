# SPDX-License-Identifier: Apache-2.0
"""A test of your own: the real loop and the real server, and a model that follows a script."""

import asyncio

from weather_server import server

import converser
from converser.testing import ScriptedModel


async def ask(question: str, model: converser.Model) -> str:
    """The code that is to be tested."""
    client = converser.InProcessMCPClient(server)
    async with await converser.discover_mcp_tools(client, "mcp-weather") as weather:
        reply = await model.converse([converser.user(question)], ensembles=[weather])
    return reply.text


def test_the_answer_follows_the_tool() -> None:
    model = ScriptedModel(
        [
            [("get_weather", {"city": "Atlantis"})],
            lambda canisters: "I don't know." if canisters[-1].error else "Warm.",
        ]
    )
    assert asyncio.run(ask("What's the weather in Atlantis?", model)) == "I don't know."
    first, second = model.requests
    assert "get_weather" in first.invokers
    assert "No weather station in Atlantis" in second.canisters[-1].text
