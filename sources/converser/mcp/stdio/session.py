# SPDX-License-Identifier: Apache-2.0
"""A session of the SDK on our own dispatcher, negotiated in the era that the server speaks."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import anyio
import mcp_types as wire
from mcp.client.session import ClientSession
from mcp.client.stdio import get_default_environment
from mcp.shared.exceptions import MCPError
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import ValidationError

from ..narrowing import as_dictionary, as_list
from ..transports import Launch
from .dispatcher import LeanDispatcher, Treat
from .process import ServerProcess

_REFUSED_HANDSHAKE = (wire.UNSUPPORTED_PROTOCOL_VERSION, wire.METHOD_NOT_FOUND)


@asynccontextmanager
async def open_process(
    launch: Launch, on_lost: Callable[[], None], treat: Treat
) -> AsyncGenerator[LeanDispatcher, None]:
    """Starts a server, and brings it surely to its end, whatever happens meanwhile."""
    dispatcher = LeanDispatcher(on_lost, treat, launch.bounds)
    process = ServerProcess(
        launch.ring, launch.bounds, dispatcher.take_line, dispatcher.lose, dispatcher.end
    )
    dispatcher.attach(process)
    try:
        environment = {**get_default_environment(), **launch.environment}
        await process.start(launch.command, environment, launch.cwd)
        yield dispatcher
    finally:
        with anyio.CancelScope(shield=True):
            await process.end()


async def negotiate(session: ClientSession, era: str, patience: float) -> None:
    """Agrees on a protocol version: asks a modern server, shakes hands with an older one.

    One that does not answer within so many seconds may be an older one, too.
    """
    if era == "legacy":
        await session.initialize()
        return
    try:
        with anyio.fail_after(patience):
            await session.discover()
    except MCPError as failure:
        if failure.code == wire.UNSUPPORTED_PROTOCOL_VERSION and not _knows_handshake(failure):
            raise
        await _shake_hands(session)
    except (TimeoutError, ValidationError, RuntimeError):
        await _shake_hands(session)


async def _shake_hands(session: ClientSession) -> None:
    """The handshake; a server that took our first question late is modern after all."""
    try:
        await session.initialize()
    except MCPError as failure:
        if failure.code not in _REFUSED_HANDSHAKE:
            raise
        await session.discover()


def _knows_handshake(failure: MCPError) -> bool:
    supported = as_list((as_dictionary(failure.data) or {}).get("supported"))
    return supported is None or any(v in HANDSHAKE_PROTOCOL_VERSIONS for v in supported)
