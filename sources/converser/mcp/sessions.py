# SPDX-License-Identifier: Apache-2.0
"""Opens a session of the SDK over whatever way leads to the server."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Union

import mcp_types as wire
from mcp import Client
from mcp.client.session import ClientSession, ElicitationFnT, MessageHandlerFnT
from mcp.shared.dispatcher import Dispatcher
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher

from .. import __version__
from .http.direct import DirectDispatcher, HttpStreams
from .logs import moderate_logs
from .salvage import Salvager
from .stdio.session import negotiate, open_process
from .tap import Tap
from .transports import Launch, OpenedTransport, Streams, open_sdk_stdio

if TYPE_CHECKING:
    from mcp.server import Server
    from mcp.server.mcpserver import MCPServer

Way = Union[Launch, OpenedTransport, "Server[Any]", "MCPServer"]
"""A process to start, a transport of the SDK, or a server in this very process."""

_QUESTION_TIME_MAX = 3.0
"""Seconds after which a process is offered the handshake, too; a slow one goes by what it was asked first."""
_ABOUT_US = wire.Implementation(name="converser", version=__version__)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSetup:
    """What a session is to do beside calls."""

    salvager: Salvager
    on_lost: Callable[[], None]
    message_handler: MessageHandlerFnT
    elicitation_callback: ElicitationFnT | None
    connect_timeout: float


@asynccontextmanager
async def open_session(
    way: Way, era: str, setup: SessionSetup
) -> AsyncGenerator[ClientSession, None]:
    """A negotiated session; must be entered and left by one task."""
    moderate_logs()
    if isinstance(way, Launch) and _can_keep_processes():
        async with _open_own(way, era, setup) as session:
            yield session
        return
    patience = setup.connect_timeout / 2
    if isinstance(way, Launch):
        way, patience = open_sdk_stdio(way), min(patience, _QUESTION_TIME_MAX)
    if isinstance(way, AbstractAsyncContextManager):
        async with (
            way as streams,
            _negotiated(era, setup, _create_dispatcher(streams, setup), patience) as session,
        ):
            yield session
        return
    client = Client(
        way,
        mode=era,
        client_info=_ABOUT_US,
        message_handler=setup.message_handler,
        elicitation_callback=setup.elicitation_callback,
        cache=None,
    )
    async with client:
        yield client.session


@asynccontextmanager
async def _open_own(
    launch: Launch, era: str, setup: SessionSetup
) -> AsyncGenerator[ClientSession, None]:
    patience = min(setup.connect_timeout / 2, _QUESTION_TIME_MAX)
    async with (
        open_process(launch, setup.on_lost, setup.salvager.treat) as dispatcher,
        _negotiated(era, setup, dispatcher, patience) as session,
    ):
        yield session


def _create_dispatcher(streams: Streams, setup: SessionSetup) -> Dispatcher[Any]:
    """The SDK's dispatcher, with a tap between it and the transport; over HTTP, most calls pass by both."""
    read, write = Tap(setup.salvager, setup.on_lost).put_on(*streams[:2])
    if isinstance(streams, HttpStreams):
        streams = HttpStreams(read, write, streams.direct)
        return DirectDispatcher(streams, setup.salvager.treat)
    return JSONRPCDispatcher(read, write)


@asynccontextmanager
async def _negotiated(
    era: str, setup: SessionSetup, dispatcher: Dispatcher[Any], patience: float
) -> AsyncGenerator[ClientSession, None]:
    """A session in the era that the server speaks."""
    session = ClientSession(
        dispatcher=dispatcher,
        client_info=_ABOUT_US,
        message_handler=setup.message_handler,
        elicitation_callback=setup.elicitation_callback,
    )
    async with session:
        await negotiate(session, era, patience)
        yield session


def _can_keep_processes() -> bool:
    """Whether our own transport works here: it needs asyncio, and a POSIX system."""
    if sys.platform == "win32" or not sys.executable:
        return False
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
