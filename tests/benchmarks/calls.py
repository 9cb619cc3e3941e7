# SPDX-License-Identifier: Apache-2.0
"""One call through an invoker against the same call through the bare SDK client, in turns.

The measure is CPU time of this process for one call. Over stdio and HTTP that is the client alone;
in process the server is in it too, on both sides.
"""

from __future__ import annotations

import contextlib
import gc
import statistics
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import mcp

import converser
from tests.servers import processes
from tests.servers.awkward import create_awkward_server

Caller = Callable[[str, dict[str, Any]], Awaitable[Any]]

CALLS: Mapping[str, dict[str, Any]] = {"echo": {"text": "hello"}, "add": {"a": 2, "b": 3}}
"""A plain result; and a structured one, with an output schema to validate it against."""
TRANSPORTS: Mapping[str, int] = {"stdio": 50, "http": 50, "in-process": 50}
"""How many calls make one sample."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Microseconds of CPU for one call, and their ratios; `noise` is the SDK against itself."""

    transport: str
    tool: str
    bare: float
    ours: float
    ratio: float
    noise: float


@contextlib.asynccontextmanager
async def connect(transport: str) -> AsyncGenerator[tuple[Caller, Caller], None]:
    """Give a caller through the bare SDK and one through invokers, each with a server of its own."""
    async with contextlib.AsyncExitStack() as stack:
        bare_target, client = await _create_targets(transport, stack)
        bare = await stack.enter_async_context(mcp.Client(bare_target, cache=None))
        cursor = None
        while True:  # else the SDK lists again at each call of a tool that it does not know
            page = await bare.list_tools(cursor=cursor)
            if (cursor := page.next_cursor) is None:
                break
        ensemble = await converser.discover_mcp_tools(client, f"bench-{transport}")
        await stack.enter_async_context(ensemble)

        def call_ours(name: str, arguments: dict[str, Any]) -> Awaitable[Any]:
            return ensemble.invokers[name](arguments)

        yield bare.call_tool, call_ours


async def _create_targets(
    transport: str, stack: contextlib.AsyncExitStack
) -> tuple[Any, converser.MCPClient]:
    if transport == "stdio":
        command = processes.awkward_command()
        parameters = mcp.StdioServerParameters(command=command[0], args=command[1:])
        return parameters, converser.StdioMCPClient(command=command)
    if transport == "http":
        # One server for each, so that neither warms anything for the other.
        first, second = (stack.enter_context(processes.serve_awkward("http")) for _ in range(2))
        return first.url, converser.HttpMCPClient(url=second.url)
    return create_awkward_server(), converser.InProcessMCPClient(create_awkward_server())


async def measure(caller: Caller, tool: str, count: int) -> float:
    """Give the CPU seconds of one call, averaged over some."""
    arguments = CALLS[tool]
    started = time.process_time()
    for _ in range(count):
        await caller(tool, arguments)
    return (time.process_time() - started) / count


async def compare(transport: str, rounds: int, count: int) -> list[Comparison]:
    """Measure both sides in turns, the order changing, so that a busy machine is busy for both."""
    comparisons: list[Comparison] = []
    async with connect(transport) as (bare, ours):
        for tool in CALLS:
            for caller in (bare, ours):
                await measure(caller, tool, count)
            samples: list[tuple[float, float, float]] = []
            gc.collect()
            for number in range(rounds):
                sides = (bare, ours, bare) if number % 2 else (bare, bare, ours)
                taken = [await measure(side, tool, count) for side in sides]
                if number % 2:
                    taken[1], taken[2] = taken[2], taken[1]
                samples.append((taken[0], taken[1], taken[2]))
            comparisons.append(_summarise(transport, tool, samples))
    return comparisons


def _summarise(transport: str, tool: str, samples: list[tuple[float, float, float]]) -> Comparison:
    first, second, ours = (statistics.median(column) for column in zip(*samples, strict=True))
    bare = (first + second) / 2
    return Comparison(
        transport=transport,
        tool=tool,
        bare=bare * 1e6,
        ours=ours * 1e6,
        ratio=ours / bare,
        noise=second / first,
    )
