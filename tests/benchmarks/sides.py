# SPDX-License-Identifier: Apache-2.0
"""The two sides: the bare SDK and an ensemble, each with a lean server of its own."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator
from pathlib import Path
from typing import Any

import mcp
import mcp_types as wire

import converser

_SERVER = Path(__file__).with_name("lean_server.py")


def lean_command(*options: str) -> list[str]:
    """How to start the lean server; it needs nothing that is installed."""
    return [sys.executable, "-I", "-S", str(_SERVER), *options]


@contextlib.contextmanager
def serve_http(*options: str) -> Generator[str]:
    """Run the lean server over HTTP; gives its URL."""
    command = lean_command("--http", *options)
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.stdin.close()
            process.wait(10)


@contextlib.asynccontextmanager
async def open_sides(
    transport: str, *options: str
) -> AsyncGenerator[tuple[mcp.Client, converser.Ensemble], None]:
    """A bare client and an ensemble, connected, both with all tools listed."""
    async with contextlib.AsyncExitStack() as stack:
        target: Any
        client: converser.MCPClient
        if transport == "http":
            target, url = (stack.enter_context(serve_http(*options)) for _ in range(2))
            client = converser.HttpMCPClient(url)
        else:
            target = create_parameters(*options)
            client = converser.StdioMCPClient(lean_command(*options))
        bare = await stack.enter_async_context(mcp.Client(target, cache=None))
        await list_all(
            bare
        )  # else the SDK lists again at each call of a tool that it does not know
        ensemble = await converser.discover_mcp_tools(client, "lean")
        await stack.enter_async_context(ensemble)
        yield bare, ensemble


def create_parameters(*options: str) -> mcp.StdioServerParameters:
    """The lean server as the SDK wants to be told of it."""
    command = lean_command(*options)
    return mcp.StdioServerParameters(command=command[0], args=command[1:])


async def list_all(client: mcp.Client) -> list[wire.Tool]:
    """Every page, as a user of the bare SDK would read them."""
    page = await client.list_tools()
    tools = page.tools
    while page.next_cursor is not None:
        page = await client.list_tools(cursor=page.next_cursor)
        tools += page.tools
    return tools
