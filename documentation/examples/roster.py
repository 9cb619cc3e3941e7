# SPDX-License-Identifier: Apache-2.0
"""A roster: all servers of a file, surveyed, toggled and revised; and its tools remembered in a lock."""

import asyncio
import tempfile
from pathlib import Path

import converser
from converser.testing import ScriptedModel

FILE = Path(__file__).with_name("roster.toml")


def show(roster: converser.Roster) -> None:
    for name, survey in roster.survey().items():
        error = [type(survey.error).__name__] if survey.error else []
        print(f"  {name}", survey.state, *(tool.name for tool in survey.tools), *error)


async def visit(lock: Path) -> None:
    async with converser.open_roster(FILE, lock=lock) as roster:
        print("Opened:")
        show(roster)
        # What a lazy server has is not known until it was connected once.
        await roster.reconnect("calculator")

        model = ScriptedModel(
            [
                [
                    ("weather_get_weather", {"city": "Oslo"}),
                    ("calculator_add", {"a": 40, "b": 2}),
                ],
                "7 degrees, and 42.",
            ]
        )
        reply = await model.converse([converser.user("Go.")], ensembles=roster.ensembles)
        print(reply.text)

        await roster.toggle("weather", False)  # keeps its connection
        print("Toggled:")
        show(roster)

        configuration = converser.load_configuration(FILE)
        wanted = [server for name, server in configuration.servers.items() if name != "archive"]
        revision = await roster.revise(wanted)
        print(f"Revised: kept {revision.kept}, removed {revision.removed}")


async def revisit(lock: Path) -> None:
    """With a lock, nothing is started until a tool is called."""
    async with converser.open_roster(FILE, lock=lock, lazy=True) as roster:
        print("Opened again, lazily:")
        show(roster)
        invoker = roster.access_ensemble("weather").access_invoker("get_weather")
        print((await invoker({"city": "NYC"})).structured)


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        lock = Path(folder, "converser.lock")  # beside `converser.toml`, if not given
        await visit(lock)
        await revisit(lock)


if __name__ == "__main__":
    asyncio.run(main())
