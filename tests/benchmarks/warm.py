# SPDX-License-Identifier: Apache-2.0
"""Calls on a connection that is warm: one after the other, many at once, and one with a large result."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any

import anyio

import converser
from tests.benchmarks.lean_server import BIG_CHARACTERS
from tests.benchmarks.rounds import WALL, Row, Work, compare
from tests.benchmarks.sides import open_sides

CROWD = 64
_ARGUMENTS: dict[str, dict[str, Any]] = {
    "echo": {"text": "hello"},
    "add": {"a": 2, "b": 3},
    "slow": {},
}

Call = Callable[[str, dict[str, Any]], Coroutine[Any, Any, Any]]


async def measure(*, quick: bool) -> AsyncGenerator[Row, None]:
    """All rows, as they come."""
    rounds, calls = (1, 2) if quick else (15, 200)
    for transport, target, structured_target in (("stdio", 0.5, 0.6), ("http", 1.0, 1.0)):
        async with open_sides(transport) as (bare, ensemble):
            ours = _adapt(ensemble)
            for title, tool, goal in (
                ("warm call", "echo", target),
                ("structured result", "add", structured_target),
            ):
                yield await compare(
                    f"{title}, {transport}",
                    _repeat(bare.call_tool, tool, calls),
                    _repeat(ours, tool, calls),
                    target=goal,
                    rounds=rounds,
                    units=calls,
                )
            if transport == "stdio":
                yield await _measure_crowd(bare.call_tool, ours, "echo", rounds)
                yield await _measure_crowd(bare.call_tool, ours, "slow", rounds)
                yield await _measure_big(bare.call_tool, ours, 1 if quick else 5)


async def _measure_crowd(bare: Call, ours: Call, tool: str, rounds: int) -> Row:
    """The slow tool takes its 20 ms on both sides: the faster the machine, the nearer to 1 is the ratio."""
    return await compare(
        f"{CROWD} calls at once{' of 20 ms' if tool == 'slow' else ''}, stdio",
        _crowd(bare, tool),
        _crowd(ours, tool),
        target=0.7,
        rounds=rounds,
        clock=WALL,
    )


async def _measure_big(bare: Call, ours: Call, rounds: int) -> Row:
    async def call_bare() -> None:
        result = await bare("big", {})
        assert len(result.content[0].text) == BIG_CHARACTERS

    async def call_ours() -> None:
        assert len((await ours("big", {})).text) == BIG_CHARACTERS

    title = "result of 10 MB, stdio"
    return await compare(title, call_bare, call_ours, target=0.1, rounds=rounds)


def _adapt(ensemble: converser.Ensemble) -> Call:
    def call(name: str, arguments: dict[str, Any]) -> Coroutine[Any, Any, Any]:
        return ensemble.invokers[name](arguments)

    return call


def _repeat(call: Call, tool: str, count: int) -> Work:
    async def work() -> None:
        arguments = _ARGUMENTS[tool]
        for _ in range(count):
            await call(tool, arguments)

    return work


def _crowd(call: Call, tool: str) -> Work:
    async def work() -> None:
        async with anyio.create_task_group() as group:
            for _ in range(CROWD):
                group.start_soon(call, tool, _ARGUMENTS[tool])

    return work
