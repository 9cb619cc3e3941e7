# SPDX-License-Identifier: Apache-2.0
"""What all clients share: a connection with an owner, a listing of every tool, and a call with a deadline."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import anyio
import mcp_types as wire
from mcp.client.session import ClientSession
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from ..exceptions import MCPExecutionFailure, MCPFailure
from ..hygiene import clean_text
from ..invokers import Context, InvocationResult, Tool
from .calls import list_every_page, request_call
from .connection import Connection
from .failures import (
    MESSAGE_LIMIT,
    Site,
    Stage,
    is_connection_lost,
    report_lost,
    report_timeout,
    translate_failure,
)
from .handlers import ElicitationHandler, adapt_elicitation
from .results import interpret_result
from .salvage import Salvager
from .sessions import SessionSetup, Way, open_session
from .states import ConnectionState
from .tools import OutputChecks, interpret_tools

_NO_CONTEXT = Context()
_WITHOUT_DEADLINE = frozenset({"http", "sse"})
"""Transports whose own clock starts only after the write; the others keep a deadline themselves."""
_log = logging.getLogger(__name__)


class SessionClient(ABC):
    """A client on a session of the SDK; its subclasses say only what the transport is."""

    transport: str

    def __init__(
        self, name: str, connect_timeout: float, elicit: ElicitationHandler | None
    ) -> None:
        self.name = name
        self._elicit = elicit
        self._patience = connect_timeout
        self._connection = Connection(name, self._open_session, connect_timeout)
        self._salvager = Salvager()
        self._checks = OutputChecks()
        self._calls: set[anyio.CancelScope] = set()
        self._remarks: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(name={self.name!r}, state={self.state.value!r})"

    @abstractmethod
    def open_transport(self) -> Way:
        """What the SDK's client is to speak through."""

    def quote_last_words(self) -> str:
        """What the server said before it died, where that can be known."""
        return ""

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
        return clean_text(session.instructions) if session and session.instructions else None

    @property
    def remarks(self) -> tuple[str, ...]:
        """What was left out of the last listing, and why."""
        return self._remarks

    async def connect(self) -> None:
        """Connects, in the era that the server speaks; does nothing where there is a connection."""
        await self._reach(self._site("connect"))

    async def disconnect(self) -> None:
        """Ends the connection, its calls, and the server's process where there is one."""
        for scope in tuple(self._calls):
            scope.cancel()
        await self._connection.disconnect()

    async def list_tools(self) -> tuple[Tool, ...]:
        """All tools of all pages; a server without tools has none, which is no failure."""
        site = self._site("list", timeout=self._patience)
        session = await self._reach(site)
        remarks: list[str] = []
        self._salvager.remarks = []

        async def fetch(cursor: str | None) -> wire.ListToolsResult:
            return await self._fetch_page(session, cursor)

        try:
            listed = await list_every_page(fetch, remarks.append)
        except MCPError as failure:
            if failure.code != wire.METHOD_NOT_FOUND:
                raise self._translate(failure, site, session) from failure
            listed = []
        except Exception as failure:
            raise self._translate(failure, site, session) from failure
        tools = interpret_tools(listed, remarks.append)
        self._checks = OutputChecks(tools)
        self._remarks = (*self._salvager.remarks, *remarks)
        return tools

    async def call_tool(
        self, name: str, arguments: Mapping[str, Any], *, context: Context = _NO_CONTEXT
    ) -> InvocationResult:
        """Calls a tool; a cancelled or timed-out call is cancelled on the server too."""
        site = self._site("call", name, context.timeout)
        session = self._connection.session or await self._reach(site)
        try:
            result = await self._request(session, site, dict(arguments), context)
        except MCPFailure:
            raise
        except Exception as failure:
            raise self._translate(failure, site, session) from failure
        if result is None:
            raise report_lost(site) if self.transport == "in-process" else report_timeout(site)
        outcome = interpret_result(result)
        if result.is_error:
            raise self._report_tool_error(outcome, site)
        return self._checks.check(name, outcome)

    async def _reach(self, site: Site) -> ClientSession:
        try:
            return await self._connection.connect()
        except Exception as failure:
            site = self._site("connect", site.tool, self._patience)
            raise self._translate(failure, site) from failure

    async def _fetch_page(self, session: ClientSession, cursor: str | None) -> wire.ListToolsResult:
        """One page; where one bad tool spoils it, it is asked for again and the good ones are saved."""
        params = wire.PaginatedRequestParams(cursor=cursor)
        with anyio.fail_after(self._patience):
            try:
                return await session.list_tools(params=params)
            except ValidationError:
                if self._salvager.salvages_listings:
                    raise
                self._salvager.salvages_listings = True
                return await session.list_tools(params=params)

    @asynccontextmanager
    async def _open_session(self, era: str) -> AsyncGenerator[ClientSession, None]:
        """A session of the SDK; where there is a wire, its end is noticed and bad answers salvaged."""
        salvager = self._salvager = Salvager()
        callback = adapt_elicitation(self.name, self._elicit) if self._elicit else None
        async with open_session(
            self.open_transport(),
            era,
            SessionSetup(
                salvager=salvager,
                on_lost=lambda: self._notice_end(salvager),
                elicitation_callback=callback,
            ),
        ) as session:
            salvager.version = session.protocol_version or salvager.version
            yield session

    def _notice_end(self, salvager: Salvager) -> None:
        if self._salvager is salvager:
            self._connection.mark_lost(self._connection.session)

    async def _request(
        self, session: ClientSession, site: Site, arguments: dict[str, Any], context: Context
    ) -> wire.CallToolResult | None:
        """The call, within our own deadline from before the write; None where that has passed."""
        listener = _adapt_progress(context)
        if self.transport == "in-process":
            with self._end_with_connection():
                return await request_call(session, site, arguments, listener)
            return None
        if context.timeout is None or self.transport not in _WITHOUT_DEADLINE:
            return await request_call(session, site, arguments, listener)
        with anyio.CancelScope(deadline=anyio.current_time() + context.timeout):
            return await request_call(session, site, arguments, listener)
        return None

    @contextmanager
    def _end_with_connection(self) -> Generator[None, None, bool | None]:
        """For a call that runs in its caller's own task: no stream ends that could end it."""
        with anyio.CancelScope() as scope:
            self._calls.add(scope)
            try:
                yield
            finally:
                self._calls.discard(scope)

    def _translate(
        self, failure: Exception, site: Site, session: ClientSession | None = None
    ) -> Exception:
        """One of our family; the failure of a call on an old session does not end the new one."""
        if is_connection_lost(failure):
            self._connection.mark_lost(session)
        return translate_failure(failure, site)

    def _site(self, stage: Stage, tool: str = "", timeout: float | None = None) -> Site:
        return Site(
            server=self.name,
            transport=self.transport,
            stage=stage,
            tool=tool,
            timeout=timeout,
            quote=self.quote_last_words,
        )

    def _report_tool_error(self, outcome: InvocationResult, site: Site) -> MCPExecutionFailure:
        words = clean_text(outcome.text, limit=MESSAGE_LIMIT) or "It gave no reason."
        return MCPExecutionFailure(
            f"{site.describe()} reported an error: {words}",
            contents=outcome.contents,
            structured=outcome.structured,
            **site.at(),
        )


def _adapt_progress(context: Context) -> ProgressFnT | None:
    """The SDK's callback for a listener of ours; a listener that raises harms no call."""
    if (listener := context.on_progress) is None:
        return None

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        try:
            await listener(progress, total, clean_text(message) if message else None)
        except Exception:
            _log.exception("A listener for progress raised")

    return hear
