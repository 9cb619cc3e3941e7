# SPDX-License-Identifier: Apache-2.0
"""The living part of a client: one task owns one server, and is the only one to enter and leave it.

Calls, `connect` and `disconnect` come from any task, in any order, at once; they only send the
owner a word and wait for its answer, so that no cancel scope of the SDK ever crosses tasks.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import anyio
from mcp.client.session import ClientSession
from mcp.shared.exceptions import MCPError
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from ..tasks import spawn
from .failures import unwrap_group
from .states import ConnectionState, is_legal

Open = Callable[[str], AbstractAsyncContextManager[ClientSession]]
"""Opens a session in an era: `auto` asks the server, `legacy` does the handshake at once."""

_CLOSING_TIME_MAX = 10.0
_ERAS = {"auto": ("auto", "legacy"), "legacy": ("legacy", "auto")}
_log = logging.getLogger(__name__)


class Connection:
    """Owns the session with one server, for as long as it lasts."""

    def __init__(self, name: str, open_session: Open, connect_timeout: float) -> None:
        self._name = name
        self._open = open_session
        self._connect_timeout = connect_timeout
        self._state = ConnectionState.DISCONNECTED
        self._session: ClientSession | None = None
        self._life: _Life | None = None
        self._past: _Life | None = None
        self._era = "auto"

    @property
    def state(self) -> ConnectionState:
        """Where this connection stands."""
        return self._state

    @property
    def session(self) -> ClientSession | None:
        """The session, while there is one."""
        return self._session

    async def connect(self) -> ClientSession:
        """The session, opened where there is none; the raw failure where it cannot be opened."""
        if self._session is not None:
            return self._session
        life = self._life or self._begin()
        await life.settled.wait()
        if self._session is not None:
            return self._session
        raise life.failure or ConnectionAbortedError("it was closed while it was being opened")

    async def disconnect(self) -> None:
        """Ends the session and waits until everything behind it has ended; repeated, does nothing."""
        self._part(ConnectionState.DISCONNECTED)
        if self._past is not None:
            await self._past.ended.wait()

    def mark_lost(self, session: ClientSession | None) -> None:
        """The stream has ended, or the server has forgotten us: this session is of no more use."""
        if session is not None and self._session is session:
            self._part(ConnectionState.FAILED)

    def _begin(self) -> _Life:
        life = self._life = _Life()
        past, self._past = self._past, None
        self._turn(ConnectionState.PENDING)
        spawn(lambda: self._own(life, past), f"converser: {self._name}")
        return life

    def _part(self, state: ConnectionState) -> None:
        """Leaves the session to its owner, who ends it alone."""
        if self._life is not None:
            self._life.end()
            self._past, self._life, self._session = self._life, None, None
        self._turn(state)

    async def _own(self, life: _Life, past: _Life | None) -> None:
        """The whole life of a session, in one task; the one before it ends first."""
        try:
            if past is not None:
                await past.ended.wait()
            for era in _ERAS[self._era]:
                if life.stop.is_set():
                    break
                await self._live(life, era)
                if life.connected or not isinstance(life.failure, MCPError):
                    break  # only a server that answered, or died, may have died of the question
        finally:
            if self._life is life:
                self._part(ConnectionState.FAILED)
            life.settled.set()
            life.ended.set()

    async def _live(self, life: _Life, era: str) -> None:
        life.failure = None
        life.scope = anyio.CancelScope()
        try:
            with life.scope as scope:
                scope.deadline = anyio.current_time() + self._connect_timeout
                async with self._open(era) as session:
                    scope.deadline = math.inf
                    self._publish(life, session)
                    await life.stop.wait()
                    scope.deadline = anyio.current_time() + _CLOSING_TIME_MAX
        except Exception as failure:
            life.failure = unwrap_group(failure)
            _log.debug("The connection to %s ended with %s", self._name, type(failure).__name__)
        else:
            if scope.cancelled_caught and not life.connected and not life.stop.is_set():
                life.failure = TimeoutError()

    def _publish(self, life: _Life, session: ClientSession) -> None:
        life.connected = True
        legacy = session.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS
        self._era = "legacy" if legacy else "auto"
        if self._life is life:
            self._session = session
            self._turn(ConnectionState.CONNECTED)
            life.settled.set()

    def _turn(self, state: ConnectionState) -> None:
        assert is_legal(self._state, state), f"{self._state} cannot become {state}"
        self._state = state


class _Life:
    """What the owner of one session and its visitors tell each other."""

    def __init__(self) -> None:
        self.stop = anyio.Event()
        self.settled = anyio.Event()
        self.ended = anyio.Event()
        self.scope = anyio.CancelScope()
        self.failure: BaseException | None = None
        self.connected = False

    def end(self) -> None:
        """Asks the owner to leave; where it is still on its way in, it turns round at once."""
        self.stop.set()
        if not self.connected:
            self.scope.cancel()
