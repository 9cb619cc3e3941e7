# SPDX-License-Identifier: Apache-2.0
"""Two sections: one is open from the beginning, the other brings its server when the model opens it."""

import asyncio
import sys
from pathlib import Path

import converser
from converser.testing import ScriptedModel

WEATHER = Path(__file__).with_name("weather_server.py")


def count_letters(word: str) -> int:
    """Counts the letters of a word."""
    return sum(letter.isalpha() for letter in word)


SECTIONS = [
    converser.Section(
        title="Words",
        text="Count letters with the tool, never in your head.",
        functions=[count_letters],
    ),
    converser.Section(
        title="Weather",
        summary="How the weather is in the cities of the world.",
        text="Say degrees Celsius, and how old the observation is.",
        servers=[converser.MCPServer.stdio("weather", [sys.executable, str(WEATHER)])],
    ),
]


async def main() -> None:
    async with converser.Briefing(SECTIONS) as briefing:
        print(briefing.supervisor.text)
        model = ScriptedModel(
            [
                [("open_section", {"title": "Weather"})],
                [("weather_get_weather", {"city": "Oslo"})],
                "7 degrees.",
            ]
        )
        question = converser.user("How warm is it in Oslo?")
        reply = await model.converse([briefing.supervisor, question], ensembles=briefing.ensembles)
        for number, request in enumerate(model.requests, 1):
            print(f"\nTurn {number}: {', '.join(request.invokers)}")
        print(f"\n{reply.text}")


if __name__ == "__main__":
    asyncio.run(main())
