# SPDX-License-Identifier: Apache-2.0
"""Starting several servers, until the tools of all are known; the bare SDK starts one after the other."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator

import mcp

import converser
from tests.benchmarks.rounds import WALL, Cleanup, Row, compare
from tests.benchmarks.sides import create_parameters, lean_command, list_all


async def measure(*, quick: bool) -> AsyncGenerator[Row, None]:
    """All rows, as they come."""
    for title, count, options, target in (
        ("start of 5 servers of 300 ms", 5, ("--slow-start", "0.3"), 0.35),
        ("start of 20 servers", 20, (), 1.0),
    ):
        yield await _measure_one(
            title, 2 if quick else count, options, target=target, rounds=1 if quick else 3
        )


async def _measure_one(
    title: str, count: int, options: tuple[str, ...], *, target: float, rounds: int
) -> Row:
    async def start_bare() -> Cleanup:
        stack = contextlib.AsyncExitStack()
        for _ in range(count):
            client = await stack.enter_async_context(mcp.Client(create_parameters(*options)))
            await list_all(client)
        return stack.aclose

    async def start_ours() -> Cleanup:
        command = tuple(lean_command(*options))
        roster = converser.Roster(
            converser.MCPServer(name=f"lean-{number}", transport="stdio", command=command)
            for number in range(count)
        )
        await roster.open()
        assert all(ensemble.invokers for ensemble in roster.ensembles)
        assert len(roster.ensembles) == count
        return roster.close

    return await compare(title, start_bare, start_ours, target=target, rounds=rounds, clock=WALL)
