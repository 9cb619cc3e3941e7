# SPDX-License-Identifier: Apache-2.0
"""Reading thousands of tools in pages of a hundred, until each can be called."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from tests.benchmarks.rounds import Row, compare
from tests.benchmarks.sides import list_all, open_sides


async def measure(*, quick: bool) -> AsyncGenerator[Row, None]:
    """All rows, as they come."""
    for transport, target in (("stdio", 0.6), ("http", 1.0)):
        for count in (200,) if quick else (1_000, 10_000):
            rounds = 1 if quick else max(3, 21 - 2 * count // 1_000)
            yield await _measure_one(transport, count, target, rounds)
    yield await _measure_one("stdio", 200 if quick else 1_000, 1.0, 1 if quick else 19, looks=True)


async def _measure_one(
    transport: str, count: int, target: float, rounds: int, *, looks: bool = False
) -> Row:
    """One row; a schema is made immutable when somebody `looks` at it, so one row does that too."""
    async with open_sides(transport, "--tools", str(count)) as (bare, ensemble):

        async def list_bare() -> None:
            assert len(await list_all(bare)) == count

        async def list_ours() -> None:
            ensemble.remember(())  # so that none of the last round is left to be found again
            await ensemble.refresh()
            assert len(ensemble.invokers) == count
            assert not looks or all(i.arguments_schema for i in ensemble.invokers.values())

        title = f"listing of {count:,} tools, {transport}{', all read' if looks else ''}"
        return await compare(title, list_bare, list_ours, target=target, rounds=rounds)
