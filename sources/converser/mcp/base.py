# SPDX-License-Identifier: Apache-2.0
"""What all clients share: a connection with an owner, a listing of every tool, and a call with a deadline."""

from __future__ import annotations

import asyncio
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar

import anyio
import mcp_types as wire
from mcp.client.session import ClientSession
from mcp.shared.exceptions import MCPError

from ..exceptions import MCPConnectionFailure, MCPFailure
from ..hygiene import clean_text
from ..invokers import NO_CONTEXT, Context, InvocationResult, Tool, keep_known
from ..outcomes import Outcome
from ..tasks import run_aside
from .attempts import Attempts
from .caller import Caller
from .calls import request_sign_of_life
from .changes import ChangeSignal
from .connection import Connection, Patience, Settle
from .deadlines import PatientTime
from .eras import EraMemory
from .failures import (
    TEXT_LIMIT,
    Site,
    Stage,
    is_connection_lost,
    is_unauthorized,
    may_log_in,
    translate_failure,
    was_not_executed,
)
from .handlers import Elicitation, ElicitationAnswer, ElicitationHandler, adapt_elicitation
from .http.guard import StreamWatch
from .results import interpret_result, is_large, report_tool_error
from .salvage import Salvager
from .secrecy import NO_SECRETS
from .sessions import SessionSetup, Way, open_session
from .states import ConnectionState
from .stderr import StderrRing
from .tools import Listing, OutputChecks

ToolsListener = Callable[[], Awaitable[None]]
StateListener = Callable[[str, str], None]
"""Hears the new state, and the reason where it is a failure."""

_SITES_MAX = 1_000
_Answer = TypeVar("_Answer")
_log = logging.getLogger(__name__)


class SessionClient(ABC):
    """A client on a session of the SDK; its subclasses say only what the transport is."""

    def __init__(
        self, name: str, transport: str, patience: Patience, elicit: ElicitationHandler | None
    ) -> None:
        self.name = name
        self.transport = transport
        self.caller = Caller(transport, asks_people=elicit is not None)
        self.ring: StderrRing | None = None
        self.secrets = NO_SECRETS
        """What a transport was given that nobody is to be shown."""
        self.stream_watch = StreamWatch()
        """What a transport is to tell of the stream of the session that it opens now."""
        self._elicit = elicit
        self._patience = patience
        self._time = PatientTime()
        self._connection = Connection(
            name, self._open_session, self._attend, patience, self.find_era_memory
        )
        self._connection.on_turn = self._tell_state
        self._salvager = self._create_salvager()
        self._signal = ChangeSignal()
        self._checks = OutputChecks()
        self._repeatable: frozenset[str] = frozenset()
        self._known: tuple[Tool, ...] = ()
        self.interruption: MCPFailure | None = None
        """Why the last listing broke off before its last page, if it did."""
        self._remarks: tuple[str, ...] = ()
        self._renewals = 0  # how many are about to open the connection anew
        self._sites: dict[tuple[Stage, str, float | None], Site] = {}
        self._tools_listeners: list[ToolsListener] = []
        self._state_listeners: list[StateListener] = []

    def __repr__(self) -> str:
        return f"{type(self).__name__}(name={self.name!r}, state={self.state.value!r})"

    @abstractmethod
    def open_transport(self) -> Way:
        """What the SDK's client is to speak through."""

    def find_era_memory(self) -> EraMemory | None:
        """Where the era of the server is remembered, if that is worth it."""
        return None

    @property
    def state(self) -> ConnectionState:
        """Where the connection stands."""
        return self._connection.state

    @property
    def protocol_version(self) -> str | None:
        """The protocol version that was negotiated, while connected."""
        session = self._connection.session
        return session.protocol_version if session else None

    @property
    def server_info(self) -> tuple[str, str] | None:
        """Name and version as the server states them, while connected."""
        session = self._connection.session
        if session is None or (info := session.server_info) is None:
            return None
        return clean_text(info.name, limit=200), clean_text(info.version, limit=200)

    @property
    def instructions(self) -> str | None:
        """What the server says of its use, while connected; untrusted, like all that it says."""
        session = self._connection.session
        words = session.instructions if session else None
        return clean_text(words, limit=TEXT_LIMIT) if words else None

    @property
    def failure(self) -> MCPFailure | None:
        """Why there is no connection, where an attempt failed or the last one was lost."""
        failure = self._connection.failure
        site = self._site("connect", timeout=self._patience.connect_timeout)
        return translate_failure(failure, site) if failure else None

    @property
    def reconnects(self) -> int:
        """How often the connection was opened again."""
        return max(0, self._connection.reconnects - 1)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What was left out of the last listing, and why."""
        return self._remarks

    async def connect(self) -> None:
        """Connects, in the era that the server speaks; does nothing where there is a connection."""
        await self._reach(self._site("connect"))

    async def disconnect(self) -> None:
        """Ends the connection, its calls, and the server's process where there is one."""
        self._renewals = 0
        await self._end()

    async def reconnect(self) -> None:
        """Ends the connection and opens another one, for which calls wait that have not left yet."""
        self._renewals += 1
        try:
            await self._end()
            if self._renewals:
                await self.connect()
        finally:
            self._renewals = max(0, self._renewals - 1)

    async def _end(self) -> None:
        self._connection.find_session()  # raises where that is for others to do
        self.caller.end_calls()
        await self._connection.disconnect()

    async def check(self, seconds: float) -> float:
        """Asks the server for a sign of life within so many seconds, and tells how many it took."""

        async def measure(session: ClientSession) -> float:
            begun = time.perf_counter()
            await request_sign_of_life(session)
            return time.perf_counter() - begun

        return await self._ask(measure, seconds)

    def watch(self, *, on_tools: ToolsListener, on_state: StateListener) -> None:
        """Has the listeners told when the tools may have changed, and when the state has."""
        self._tools_listeners.append(on_tools)
        self._state_listeners.append(on_state)

    async def list_tools(self) -> tuple[Tool, ...]:
        """All tools of all pages; where a page fails in a session that lasts, those of the pages before it."""
        listing, begun, interruption = Listing(), time.monotonic(), None

        async def read(session: ClientSession) -> None:
            nonlocal listing
            listing = Listing()
            self._salvager.report = listing.report
            await listing.read(session)

        try:
            await self._ask(read, self._patience.connect_timeout)
        except MCPFailure as failure:
            if not listing.has_begun or self.state is not ConnectionState.CONNECTED:
                raise
            interruption = failure
            listing.break_off(failure)
            self._signal.doubt(time.monotonic() - begun)
        else:
            self._signal.trust()
        self._remarks, self.interruption = listing.remarks, interruption
        self._learn(listing.tools)
        return listing.tools

    def _learn(self, tools: tuple[Tool, ...]) -> None:
        """Keeps what calls need to know of tools; of those that are missing in half a list, what was known."""
        self._known = tools if self.interruption is None else keep_known(tools, self._known)
        self._checks = OutputChecks(self._known)
        self._repeatable = frozenset(
            t.name for t in self._known if t.annotations.read_only or t.annotations.idempotent
        )

    async def _ask(
        self, request: Callable[[ClientSession], Awaitable[_Answer]], seconds: float
    ) -> _Answer:
        """Makes a request that changes nothing; once more where the connection breaks meanwhile."""
        may_repeat = True
        while True:
            session = await self._reach(self._site("list", timeout=seconds))
            site = self._site("list", timeout=seconds)  # quotes the process that there is now
            try:
                with anyio.fail_after(seconds):
                    answer = await request(session)
            except Exception as failure:
                translated = self._translate(failure, site, session)
                broke = isinstance(translated, MCPConnectionFailure) and translated.status is None
                may_repeat = may_repeat and self._is_wanted
                if not may_repeat or not (broke or may_log_in(failure)):
                    raise translated from failure
                may_repeat = False
            else:
                self.caller.last_seen = time.time()
                return answer

    async def call_tool(
        self, name: str, arguments: Mapping[str, Any], *, context: Context = NO_CONTEXT
    ) -> InvocationResult:
        """Calls a tool; a call that was lost is repeated only where that is surely harmless."""
        begun, attempts = self._time.now(), None
        while True:
            site = self._site("call", name, context.timeout)
            if (session := self._connection.find_session()) is None:
                attempts = attempts or Attempts(context, self._patience, self._time, begun)
                session = await self._reach(site, attempts)
                site = self._site("call", name, context.timeout)  # quotes the new process
            try:
                left = context if attempts is None else attempts.left
                result = await self.caller.call(session, site, dict(arguments), left)
                break
            except MCPFailure:
                raise
            except Exception as failure:
                translated = self._translate(failure, site, session)
                attempts = attempts or Attempts(context, self._patience, self._time, begun)
                if not await self._prepare_repeat(failure, translated, attempts):
                    raise attempts.judge(translated) from failure
                attempts.follow(translated)
        if is_large(result):  # others get their turn meanwhile
            return await run_aside(self._interpret, result, site)
        return self._interpret(result, site)

    def _interpret(self, result: dict[str, Any], site: Site) -> InvocationResult:
        outcome = interpret_result(result)
        if result.get("isError"):
            raise report_tool_error(outcome, site)
        return self._checks.check(site.tool, outcome)

    async def _prepare_repeat(
        self, failure: Exception, translated: MCPFailure, attempts: Attempts
    ) -> bool:
        """Whether a failed call is to be made once more, after what that needs."""
        if not self._is_wanted or attempts.are_over:
            return False
        if was_not_executed(failure):
            # Where the session is lost, a new one is opened; else the server may be restarting.
            return is_connection_lost(failure) or (await attempts.pause() and self._is_wanted)
        if attempts.count > 0:
            return False
        if is_unauthorized(failure):
            return may_log_in(failure)
        if isinstance(failure, MCPError) and failure.code == wire.HEADER_MISMATCH:
            with anyio.move_on_after(attempts.limit):
                await self.list_tools()  # the server wants headers that the listing tells
            return True
        harmless = attempts.left.replay or translated.tool in self._repeatable
        return harmless and translated.outcome is Outcome.UNKNOWN

    async def _reach(self, site: Site, attempts: Attempts | None = None) -> ClientSession:
        """The session; to a call, which has not left yet, one failed attempt at recovery is not the end."""
        while True:
            limit = attempts.limit if attempts else None
            try:
                return await self._connection.connect(limit)
            except Exception as failure:
                heals = self._renewals > 0 or self.state is ConnectionState.RECONNECTING
                if attempts and heals and await attempts.wait() and self._is_wanted:
                    continue
                seconds = self._patience.connect_timeout
                seconds = seconds if limit is None else min(seconds, limit)
                translated = self._translate(failure, self._site("connect", site.tool, seconds))
                raise (attempts.judge(translated) if attempts else translated) from failure

    @property
    def _is_wanted(self) -> bool:
        """Whether an attempt may be repeated: nobody has disconnected meanwhile, who would not end what it opens."""
        return self._renewals > 0 or self.state is not ConnectionState.DISCONNECTED

    def _create_salvager(self) -> Salvager:
        return Salvager(sends_headers=self.transport == "http")

    @asynccontextmanager
    async def _open_session(self, era: str) -> AsyncGenerator[ClientSession, None]:
        """A session of the SDK; where there is a wire, its end is noticed and bad answers salvaged."""
        salvager, signal = self._salvager, self._signal = self._create_salvager(), ChangeSignal()
        callback = adapt_elicitation(self.name, self._ask_person) if self._elicit else None
        setup = SessionSetup(
            salvager=salvager,
            on_lost=lambda: self._notice_end(salvager),
            message_handler=signal.take,
            elicitation_callback=callback,
            connect_timeout=self._patience.connect_timeout,
        )
        self.stream_watch = StreamWatch(
            on_forgotten=lambda: self._notice_end(salvager, self.caller.settle),
            on_reopened=signal.note_gap,
        )
        way = self.open_transport()
        self._sites.clear()  # they quote the last words of the process before
        async with open_session(way, era, setup) as session:
            salvager.version = session.protocol_version or salvager.version
            yield session

    async def _attend(self, session: ClientSession, renewed: bool) -> None:
        """Has the tools listed again when they change, and when the server has come back."""
        if renewed:
            self._signal.hint()
        await self._signal.follow(session, self._tell_tools)

    async def _tell_tools(self) -> None:
        for listener in self._tools_listeners:
            if self._connection.session is None:
                return  # it has just ended: to list now would open another one, which nobody ends
            await listener()

    def _tell_state(self, state: ConnectionState) -> None:
        reason = str(self.failure or "")
        for listener in self._state_listeners:
            try:
                listener(state.value, reason)
            except (Exception, asyncio.CancelledError):
                _log.exception("A listener for the states of server %r raised", self.name)

    @contextmanager
    def hold_clocks(self) -> Generator[None]:
        """Lets no time run out in the block, in which a person is waited for."""
        with self._connection.hold(), self.caller.hold_clocks(), self._time.hold():
            yield

    async def _ask_person(self, question: Elicitation) -> ElicitationAnswer:
        assert self._elicit is not None
        with self.hold_clocks():
            return await self._elicit(question)

    def _notice_end(self, salvager: Salvager, settle: Settle | None = None) -> None:
        if self._salvager is salvager:
            self._connection.mark_lost(self._connection.session, settle)

    def _translate(
        self, failure: Exception, site: Site, session: ClientSession | None = None
    ) -> MCPFailure:
        """One of our family; the failure of a call on an old session does not end the new one."""
        if is_connection_lost(failure):
            # Over HTTP only the session is gone: others may still be answered in it.
            settle = self.caller.settle if self.transport == "http" else None
            self._connection.mark_lost(session, settle)
        elif is_unauthorized(failure):
            self._connection.retire(session, failure, self.caller.settle)
        return translate_failure(failure, site)

    def _site(self, stage: Stage, tool: str = "", timeout: float | None = None) -> Site:
        key = (stage, tool, timeout)
        if (site := self._sites.get(key)) is None or site.server != self.name:
            if len(self._sites) >= _SITES_MAX:
                self._sites.clear()
            site = self._sites[key] = Site(
                server=self.name,
                transport=self.transport,
                stage=stage,
                tool=tool,
                timeout=timeout,
                ring=self.ring,
                secrets=self.secrets,
            )
        return site
