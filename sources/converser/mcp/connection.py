# SPDX-License-Identifier: Apache-2.0
"""The living part of a client: one task owns one session, and is the only one to enter and leave it.

Calls, `connect` and `disconnect` come from any task, in any order, at once; they only send the
owner a word and wait for its answer, so that no cancel scope of the SDK ever crosses tasks.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import anyio
from mcp.client.session import ClientSession
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from ..exceptions import MCPConnectionFailure
from ..tasks import find_loop, is_closed, is_of_loop, run_aside, spawn
from .calls import answers_question
from .deadlines import Deadlines
from .eras import EraMemory
from .failures import needs_authorization, unwrap_group
from .states import ConnectionState, is_legal

Open = Callable[[str], AbstractAsyncContextManager[ClientSession]]
"""Opens a session in an era: `auto` asks the server, `legacy` does the handshake at once."""
Settle = Callable[[], Awaitable[None]]
"""Waits until the calls are over that are under way."""
Attend = Callable[[ClientSession, bool], Coroutine[Any, Any, None]]
"""Runs beside a session for as long as it lasts; told whether it stands in for a lost one."""

_CLOSING_TIME_MAX = 10.0
_SETTLING_TIME_MAX = 0.15
_RETIREMENT_MAX = 60.0
_LASTING = 30.0
_COSTLY = 1.0
"""Seconds that a connection may take before it is worth remembering why."""
_QUESTION_TIME_MAX = 1.0
_ERAS = {"auto": ("auto", "legacy"), "legacy": ("legacy", "auto")}
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long to wait for a connection, and how often and how soon to try for a lost one."""

    connect_timeout: float = 30.0
    attempts: int = 3
    delay: float = 0.25
    delay_max: float = 30.0

    def pause(self, attempt: int) -> float:
        """Seconds before an attempt: doubled each time, capped, and never the same for two of us."""
        return min(self.delay_max, self.delay * 2.0**attempt) * random.uniform(0.5, 1.5)


class Connection:
    """Keeps a session with one server: opens it, owns it, notices its loss, and opens it again."""

    def __init__(
        self,
        name: str,
        open_session: Open,
        attend: Attend,
        patience: Patience,
        find_memory: Callable[[], EraMemory | None],
    ) -> None:
        self._name = name
        self._open = open_session
        self._attend = attend
        self._patience = patience
        self._state = ConnectionState.DISCONNECTED
        self._session: ClientSession | None = None
        self._life: _Life | None = None
        self._past: _Life | None = None
        self._retired: set[_Life] = set()
        self._home: Any = None
        """The event loop in which all of these live."""
        self._healing: object = None
        self._strikes = 0
        self._era: str | None = None
        self._find_memory = find_memory
        self.reconnects = 0
        self.failure: BaseException | None = None
        """Why the last attempt failed, or the last session was lost."""
        self.on_turn: Callable[[ConnectionState], None] = _ignore

    @property
    def state(self) -> ConnectionState:
        """Where this connection stands."""
        return self._state

    @property
    def session(self) -> ClientSession | None:
        """The session, while there is one."""
        return self._session

    def find_session(self) -> ClientSession | None:
        """The session, for those who will use it in the event loop that runs now."""
        if self._home is not None and self._home is not find_loop():
            self._move()
        return self._session

    async def connect(self, limit: float | None = None) -> ClientSession:
        """The session, opened where there is none; the raw failure where it cannot be opened.

        Who waits is free in time, also where the owner is still busy with ending what it began.
        """
        if (session := self.find_session()) is not None:
            return session
        life = self._life or self._begin()
        seconds = self._patience.connect_timeout + _SETTLING_TIME_MAX
        with life.deadlines.within(seconds if limit is None else min(limit, seconds)):
            await life.settled.wait()
        if not life.settled.is_set():
            self._give_up(life, is_over=limit is None or limit >= seconds)
            raise TimeoutError
        if self._session is not None:
            return self._session
        raise life.failure or ConnectionAbortedError("it was closed while it was being opened")

    async def disconnect(self) -> None:
        """Ends the session and waits until everything behind it has ended; repeated, does nothing."""
        self._healing = None
        self._strikes = 0
        self._part(ConnectionState.DISCONNECTED)
        for life in self._retired:
            life.end()
        for past in (self._past, *self._retired):
            if past is not None and not past.ended.is_set():
                await past.ended.wait()

    @contextmanager
    def hold(self) -> Generator[None]:
        """Lets nobody's time run out in the block, in which a person logs in."""
        if self._life is None:
            yield
            return
        with self._life.deadlines.hold():
            yield

    def retire(self, session: ClientSession | None, failure: BaseException, settle: Settle) -> None:
        """The server knows us no longer: the next call opens a new session, and those under way end in this one."""
        if session is None or self._session is not session:
            return
        self.failure = failure
        self._healing = None
        self._part(ConnectionState.NEEDS_AUTH, settle)

    async def _see_out(self, life: _Life, settle: Settle) -> None:
        with anyio.move_on_after(_RETIREMENT_MAX):
            await settle()
        life.end()
        await life.ended.wait()
        self._retired.discard(life)

    def mark_lost(self, session: ClientSession | None, settle: Settle | None = None) -> None:
        """This session is of no more use: its stream has ended; or, with calls to settle, the server forgot it."""
        if session is None or self._session is not session or self._life is None:
            return
        if time.monotonic() - self._life.since > _LASTING:
            self._strikes = 0
        self.failure = self._life.failure or MCPError(CONNECTION_CLOSED, "Connection closed")
        if self._strikes >= self._patience.attempts:
            self._part(ConnectionState.FAILED, settle)
            return
        self._healing = token = object()
        self._part(ConnectionState.RECONNECTING, settle)
        spawn(lambda: self._heal(token), f"converser: healing {self._name}")

    async def _heal(self, token: object) -> None:
        """Tries for a new session, ever more patiently, until one is there or hope is lost."""
        while self._healing is token and self._strikes < self._patience.attempts:
            pause = self._patience.pause(self._strikes)
            self._strikes += 1
            try:
                await anyio.sleep(pause)
            except anyio.get_cancelled_exc_class():
                if self._healing is token:
                    self._despair()
                raise
            if self._healing is not token or self._session is not None:
                return
            try:
                await self.connect()
            except Exception as failure:
                _log.debug("%s is not back yet: %s", self._name, type(failure).__name__)
            else:
                return
        if self._healing is token and self._session is None and self._life is None:
            self._healing = None
            self._turn(ConnectionState.FAILED)

    def _move(self) -> None:
        """Forgets what was in another event loop, and is lost with it; while that lives, nobody else can use it."""
        lives = (self._life, self._past, *self._retired)
        if any(life is not None and not life.ended.is_set() for life in lives):
            if not is_closed(self._home):
                raise MCPConnectionFailure(
                    f"Server {self._name!r} is connected in another event loop.",
                    remedy="Use it there, disconnect it there first, or make another client.",
                    server=self._name,
                )
            self._life = self._past = self._session = self._healing = None
            self._retired.clear()
            self._turn(ConnectionState.DISCONNECTED)
        self._home = None

    def _begin(self) -> _Life:
        self._home = find_loop()
        life = self._life = _Life()
        past, self._past = self._past, None
        if self._state is not ConnectionState.RECONNECTING:
            self._turn(ConnectionState.PENDING)
        spawn(lambda: self._own(life, past), f"converser: {self._name}")
        return life

    def _part(self, state: ConnectionState, settle: Settle | None = None) -> None:
        """Leaves the session to its owner, who ends it alone: at once, or when its calls are settled."""
        life, self._life, self._session = self._life, None, None
        if life is not None and settle is not None:
            self._retired.add(life)
            spawn(lambda: self._see_out(life, settle), f"converser: {self._name}, retired")
        elif life is not None:
            life.end()
            self._past = life
        self._turn(state)

    async def _own(self, life: _Life, past: _Life | None) -> None:
        """The whole life of a session, in one task; the one before it ends first."""
        try:
            if past is not None and not past.ended.is_set():
                await past.ended.wait()
            for era in _ERAS[await self._recall_era()]:
                if life.stop.is_set():  # perhaps before the owner took its first step
                    break
                await self._live(life, era)
                if life.connected or not isinstance(life.failure, MCPError):
                    break  # only a server that answered, or died, may have died of the question
                if needs_authorization(life.failure):
                    break  # which it does in either era
        except anyio.get_cancelled_exc_class():
            self._despair(life)
            raise
        finally:
            self._bury(life)
            life.settled.set()
            life.ended.set()

    def _despair(self, life: _Life | None = None) -> None:
        """Opens nothing any more: the event loop ends, and this may be used in another one."""
        self._healing = None
        if life is not None and self._life is life:
            self._part(ConnectionState.DISCONNECTED)
        elif self._life is None and self._state is ConnectionState.RECONNECTING:
            self._turn(ConnectionState.DISCONNECTED)

    def _give_up(self, life: _Life, *, is_over: bool) -> None:
        """Tells that an attempt has failed whose time is up, also while its owner still ends what it began.

        Its time is up for those who have waited for all of it, though the owner began later.
        """
        is_over = is_over or life.scope.cancel_called
        if is_over and not life.stop.is_set() and not life.connected:
            life.failure = life.failure or TimeoutError()
            self._bury(life)

    def _bury(self, life: _Life) -> None:
        """The owner's last word on a session that ended by itself."""
        if self._life is not life:
            return
        self.failure = life.failure
        if self._session is not None:
            self.mark_lost(self._session)
        elif needs_authorization(life.failure):
            self._healing = None
            self._part(ConnectionState.NEEDS_AUTH)
        else:
            healing = self._healing is not None and self._strikes < self._patience.attempts
            self._part(ConnectionState.RECONNECTING if healing else ConnectionState.FAILED)

    async def _live(self, life: _Life, era: str) -> None:
        life.failure = None
        life.attempts += 1
        life.begun = time.monotonic()
        scope = life.scope
        try:
            with life.deadlines.within(self._patience.connect_timeout) as scope:
                life.scope = scope
                async with self._open(era) as session:
                    life.deadlines.lift(scope)
                    await self._dwell(life, session)
                    scope.deadline = anyio.current_time() + _CLOSING_TIME_MAX
        except Exception as failure:
            life.failure = unwrap_group(failure)
            _log.debug("The connection to %s ended with %s", self._name, type(failure).__name__)
        else:
            if scope.cancelled_caught and not life.connected and not life.stop.is_set():
                life.failure = TimeoutError()

    async def _dwell(self, life: _Life, session: ClientSession) -> None:
        """Publishes a session, and stays in it until somebody says to leave."""
        life.connected = True
        life.since = time.monotonic()
        await self._note_era(life, session)
        if self._life is not life:
            return
        renewed = self._healing is not None or self.reconnects > 0
        async with anyio.create_task_group() as group:
            group.start_soon(self._attend, session, renewed)
            self._session = session
            self._healing = self.failure = None
            self.reconnects += 1
            self._turn(ConnectionState.CONNECTED)
            life.settled.set()
            try:
                await life.stop.wait()
            except anyio.get_cancelled_exc_class() as order:
                # At once: it may take long to end the session.
                if is_of_loop(order):
                    self._despair(life)
                else:
                    self.mark_lost(session)
                raise
            group.cancel_scope.cancel()

    async def _recall_era(self) -> str:
        """The era to try first, as this object or an earlier process has found it out."""
        if self._era is None:
            memory = self._find_memory()
            is_old = memory is not None and await run_aside(memory.recall)
            self._era = "legacy" if is_old else "auto"
        return self._era

    async def _note_era(self, life: _Life, session: ClientSession) -> None:
        """Remembers the era; also for later processes, where it was costly to find out."""
        before, legacy = self._era, session.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS
        self._era = "legacy" if legacy else "auto"
        if self._era == before or not (memory := self._find_memory()):
            return
        spent = time.monotonic() - life.begun
        if legacy and life.attempts == 1:
            limit = min(_QUESTION_TIME_MAX, (self._patience.connect_timeout - spent) / 2)
            if spent <= _COSTLY or await answers_question(session, limit):
                return  # it does well when asked, and at most was slow to start
        await run_aside(partial(memory.note, legacy=legacy))

    def _turn(self, state: ConnectionState) -> None:
        assert is_legal(self._state, state), f"{self._state} cannot become {state}"
        changed, self._state = self._state is not state, state
        if changed:
            self.on_turn(state)


class _Life:
    """What the owner of one session and its visitors tell each other."""

    def __init__(self) -> None:
        self.stop = anyio.Event()
        self.settled = anyio.Event()
        self.ended = anyio.Event()
        self.scope = anyio.CancelScope()
        self.deadlines = Deadlines()
        self.failure: BaseException | None = None
        self.connected = False
        self.attempts = 0
        self.begun = self.since = 0.0

    def end(self) -> None:
        """Asks the owner to leave; where it is still on its way in, it turns round at once."""
        self.stop.set()
        if not self.connected:
            self.scope.cancel()


def _ignore(_: ConnectionState) -> None:
    pass
