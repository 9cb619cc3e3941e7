# SPDX-License-Identifier: Apache-2.0
"""A long conversation with one call in each turn, against the loop that one would write by hand."""

from __future__ import annotations

import statistics
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import mcp

import converser
from converser.testing import ScriptedModel, Speech
from tests.benchmarks.rounds import CPU, Row, compare
from tests.benchmarks.sides import open_sides

_EDGE = 50
_ARGUMENTS = {"text": "hello"}


async def measure(*, quick: bool) -> AsyncGenerator[Row, None]:
    """All rows, as they come; the last says what the end of a long conversation costs beside its beginning."""
    async with open_sides("stdio") as (bare, ensemble):
        for turns in (5,) if quick else (200, 1_000):

            async def loop_bare(turns: int = turns) -> None:
                assert len(await converse_by_hand(bare, turns)) == 2 * turns + 2

            async def loop_ours(turns: int = turns) -> None:
                assert len(await converse(ensemble, turns)) == turns

            title = f"conversation of {turns:,} turns, a turn"
            rounds = 1 if quick else 3
            yield await compare(title, loop_bare, loop_ours, target=3, rounds=rounds, units=turns)
        yield await _compare_edges(ensemble, 5 if quick else 1_000, 1 if quick else 3)


async def _compare_edges(ensemble: converser.Ensemble, turns: int, rounds: int) -> Row:
    edge = min(_EDGE, turns // 2)
    beginnings, ends = list[float](), list[float]()
    for _ in range(rounds):
        ticks = await converse(ensemble, turns)
        beginnings.append((ticks[edge] - ticks[0]) / edge * 1e3)
        ends.append((ticks[-1] - ticks[-1 - edge]) / edge * 1e3)
    return Row(
        title=f"its last {edge} turns beside its first",
        clock="CPU",
        bare=statistics.median(beginnings),
        ours=statistics.median(ends),
        noise=1.0,
        target=1.5,
    )


async def converse_by_hand(client: mcp.Client, turns: int) -> list[dict[str, Any]]:
    """The least that a loop must do; its model only counts."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Go on."}]
    for number in range(turns):
        call = {"id": f"call-{number}", "name": "echo", "arguments": _ARGUMENTS}
        messages.append({"role": "assistant", "tool_calls": [call]})
        result = await client.call_tool(call["name"], call["arguments"])
        text = "\n".join(part.text for part in result.content if part.type == "text")
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": text})
    messages.append({"role": "assistant", "content": "Done."})
    return messages


async def converse(ensemble: converser.Ensemble, turns: int) -> list[float]:
    """The same with our loop; gives the times at which its model was asked to call."""
    ticks = list[float]()

    def speak(_: Sequence[converser.Canister]) -> Speech:
        ticks.append(CPU())
        return [("echo", _ARGUMENTS)]

    model = ScriptedModel([*[speak] * turns, "Done."])
    limits = converser.Limits(turns=None)
    reply = await model.converse([converser.user("Go on.")], ensembles=[ensemble], limits=limits)
    assert reply.text == "Done."
    return ticks
