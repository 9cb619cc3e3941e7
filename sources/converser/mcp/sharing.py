# SPDX-License-Identifier: Apache-2.0
"""Whoever names the same server shares one connection to it, which closes with the last of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from anyio.lowlevel import RunVar

from ..configuration import MCPServer
from ..exceptions import MCPConnectionFailure, MCPFailure
from ..invokers import NO_CONTEXT, Context, InvocationResult, Tool
from .states import ConnectionState, is_legal

if TYPE_CHECKING:
    from .base import SessionClient
    from .handlers import ElicitationHandler

_S = ConnectionState
_TROUBLES = frozenset({_S.FAILED, _S.NEEDS_AUTH, _S.RECONNECTING})


class Share:
    """One client of one event loop, and those who hold it now."""

    def __init__(self, client: SessionClient) -> None:
        self.client = client
        self.holders: dict[Lease, None] = {}
        client.watch(on_tools=self._tell_tools, on_state=self._tell_state)

    async def _tell_tools(self) -> None:
        """Tells all holders, whatever becomes of one; who could not list again raises in the end."""
        failures: list[Exception] = []
        for lease in tuple(self.holders):
            if lease not in self.holders:  # it has left meanwhile: to list would make it join again
                continue
            try:
                await lease.on_tools()
            except Exception as failure:
                failures.append(failure)
        if failures:
            raise failures[0]

    def _tell_state(self, state: str, reason: str) -> None:
        for lease in tuple(self.holders):
            lease.turn(_S(state), reason)


_shares: RunVar[WeakValueDictionary[Hashable, Share]] = RunVar("converser shares")


class Lease:
    """A connection for an ensemble; it is disconnected until it is used, whatever others do.

    The client is made when it is first held, so that knowing a server costs no import of the SDK.
    """

    def __init__(self, server: MCPServer, *, elicit: ElicitationHandler | None = None) -> None:
        self.server = server
        self.state = _S.DISCONNECTED
        self.is_retired = False
        """Whether calls are refused: nobody would end a connection that they opened."""
        self.key = identify_connection(server, elicit)
        self.on_tools: Callable[[], Awaitable[None]] = _ignore_tools
        self._on_state: Callable[[str, str], None] = _ignore_state
        self._elicit = elicit
        self._share: Share | None = None

    @property
    def client(self) -> SessionClient | None:
        """The client behind this, once it was used."""
        return self._share.client if self._share else None

    @property
    def remarks(self) -> Sequence[str]:
        """What people should know of the last listing."""
        return self._share.client.remarks if self._share else ()

    @property
    def interruption(self) -> MCPFailure | None:
        """Why the last listing broke off before its last page, if it did."""
        return self._share.client.interruption if self._share else None

    async def connect(self) -> None:
        """Establishes the connection, or joins the one that others have."""
        await self._hold().connect()

    async def reconnect(self) -> None:
        """Establishes the connection anew, for all who share it."""
        await self._hold().reconnect()
        self._hold()  # refuses where all was closed meanwhile

    async def disconnect(self) -> None:
        """Leaves the connection; the last one to leave ends it."""
        if (share := self._share) is None or self not in share.holders:
            return
        del share.holders[self]
        self.turn(_S.DISCONNECTED)
        if not share.holders:
            await share.client.disconnect()

    async def list_tools(self) -> Sequence[Tool]:
        """All tools, of all pages."""
        return await self._hold().list_tools()

    async def call_tool(
        self, name: str, arguments: Mapping[str, Any], *, context: Context = NO_CONTEXT
    ) -> InvocationResult:
        """Calls one tool with arguments that fit its schema."""
        return await self._hold().call_tool(name, arguments, context=context)

    def watch(
        self, *, on_tools: Callable[[], Awaitable[None]], on_state: Callable[[str, str], None]
    ) -> None:
        """Has the listeners told when the tools may have changed, and when the state has."""
        self.on_tools, self._on_state = on_tools, on_state

    def turn(self, state: ConnectionState, reason: str = "") -> None:
        """Follows the shared connection, as far as that is a legal step from where this one stands."""
        if state is not self.state and is_legal(self.state, state):
            self.state = state
            self._on_state(state.value, reason if state in _TROUBLES else "")

    def _hold(self) -> SessionClient:
        share = self._share
        if share is not None and self in share.holders:
            return share.client
        if self.is_retired:
            raise MCPConnectionFailure(
                f"Server {self.server.name!r} was taken out of its roster, or the roster is closed.",
                remedy="Use it inside of `async with open_roster(…)`, or add it again.",
                server=self.server.name,
                transport=self.server.transport,
            )
        share = self._share = _find_share(self.key, self.server, self._elicit)
        share.holders[self] = None
        if share.client.state in (_S.PENDING, _S.CONNECTED, _S.RECONNECTING):
            self.turn(_S.PENDING)
            self.turn(share.client.state)
        return share.client


def identify_connection(server: MCPServer, elicit: ElicitationHandler | None) -> Hashable:
    """What two servers must have in common to be served by one connection."""
    target = server.server if isinstance(server.server, str) else id(server.server)
    return (
        (server.name, server.transport, server.origin),
        (server.command, server.environment, server.cwd),
        (server.url, server.headers, target),
        (server.connect_timeout, server.reconnect_attempts, server.result_limit),
        elicit if isinstance(elicit, Hashable) else id(elicit),
    )


def _find_share(key: Hashable, server: MCPServer, elicit: ElicitationHandler | None) -> Share:
    from .configured import ConfiguredMCPClient

    shares = _shares.get(None)
    if shares is None:
        shares = WeakValueDictionary[Hashable, Share]()
        _shares.set(shares)
    if (share := shares.get(key)) is None:
        share = shares[key] = Share(ConfiguredMCPClient(server, elicit=elicit))
    return share


async def _ignore_tools() -> None:
    """Nobody listens."""


def _ignore_state(_: str, __: str) -> None:
    """Nobody listens."""
