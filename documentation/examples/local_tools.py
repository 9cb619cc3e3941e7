# SPDX-License-Identifier: Apache-2.0
"""Typed Python functions become tools; a model cannot tell them from those of a server."""

import asyncio
import json
from typing import Literal

import converser


def convert(degrees: float, unit: Literal["celsius", "fahrenheit"] = "fahrenheit") -> float:
    """Converts a temperature to another unit.

    Args:
        degrees: What the thermometer shows.
        unit: What to convert to.
    """
    return degrees * 9 / 5 + 32 if unit == "fahrenheit" else (degrees - 32) * 5 / 9


@converser.tool(name="count", read_only=True)
async def count_slowly(steps: int, context: converser.Context) -> str:
    """Counts, and says how far it is."""
    for step in range(1, steps + 1):
        if context.on_progress:
            await context.on_progress(step, steps, None)
    return f"Counted to {steps}."


async def main() -> None:
    tools = converser.create_local_ensemble("local", [convert, count_slowly])
    print(json.dumps(tools.access_invoker("convert").arguments_schema, indent=2))
    print((await tools.access_invoker("convert")({"degrees": 7})).text)

    async def show(progress: float, total: float | None, message: str | None) -> None:
        print(f"{progress} of {total}")

    context = converser.Context(on_progress=show)
    print((await tools.access_invoker("count")({"steps": 2}, context=context)).text)


if __name__ == "__main__":
    asyncio.run(main())
