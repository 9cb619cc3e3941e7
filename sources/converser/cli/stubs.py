# SPDX-License-Identifier: Apache-2.0
"""`converser stubs`: a Python module with typed access to the tools of a server."""

from __future__ import annotations

import sys
from pathlib import Path

import anyio

from ..configuration import MCPServer
from .judging import Misuse
from .options import DEFAULTS, Options, ServerName, find_server
from .screen import remark


def stubs(
    server: ServerName, /, *, output: Path | None = None, options: Options = DEFAULTS
) -> None:
    """Writes a Python module with typed access to the tools of a server.

    Parameters
    ----------
    server
        Its name in converser.toml.
    output
        The file to write; standard output if not given.
    """
    text = anyio.run(_write_stubs, find_server(options.load(), server))
    if output is None:
        sys.stdout.write(text)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as failure:
        raise Misuse(
            f"The file {str(output)!r} cannot be written: {failure.strerror}.",
            remedy="Name another one.",
        ) from failure


async def _write_stubs(server: MCPServer) -> str:
    from ..mcp.configured import create_mcp_ensemble
    from ..stubs import write_stub_module

    async with create_mcp_ensemble(server) as ensemble:
        remark(ensemble)
        return write_stub_module(
            [invoker.tool for invoker in ensemble.invokers.values()], ensemble.name
        )
