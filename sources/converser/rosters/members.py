# SPDX-License-Identifier: Apache-2.0
"""One server in a roster: its configuration, its ensemble, and all that is known of how it does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from ..configuration import MCPServer
from ..ensembles import Ensemble
from ..events import ServerStateChanged, ToolsChanged
from ..exceptions import ConverserFailure, MCPProtocolFailure, NameConflict
from ..hygiene import clean_text
from ..immutables import freeze
from ..mcp.settings import configure_ensemble
from ..mcp.sharing import Lease, identify_connection
from ..mcp.states import ConnectionState
from .catalogue import Drift
from .health import Pulse
from .surveys import ServerSurvey, ToolSurvey

if TYPE_CHECKING:
    from ..mcp.handlers import ElicitationHandler
    from .keeping import CatalogueKeeper

_S = ConnectionState
_CHECK_TIME_MAX = 10.0

Hear = Callable[["Member", "ServerStateChanged | ToolsChanged"], None]


class Member:
    """A server, from its place in the configuration to its tools."""

    def __init__(
        self,
        server: MCPServer,
        *,
        hear: Hear,
        note: Callable[[Member], None],
        elicit: ElicitationHandler | None,
        lazy: bool,
    ) -> None:
        """Takes a server, and who hears of its events, and of its tools when they were listed again."""
        self.server = server
        self.lease = Lease(server, elicit=elicit)
        self.lease.is_retired = True  # until the roster is open
        self.ensemble = Ensemble(
            server.name, connection=self.lease, configuration=configure_ensemble(server)
        )
        self.ensemble.enabled = server.enabled
        self.ensemble.observe(lambda event: self._pass_on(event, hear))
        self.lease.on_tools = partial(self._relist, self.lease.on_tools, note)
        self.failure: ConverserFailure | None = None
        self.drift = Drift()
        self.pulse = Pulse()
        self.is_listed = False
        """Whether the tools are as the server itself listed them."""
        self._acquaintance: dict[str, str | None] = {}
        self._lazy = lazy
        self._elicit = elicit

    @property
    def name(self) -> str:
        """What the configuration calls the server."""
        return self.server.name

    @property
    def is_enabled(self) -> bool:
        """Whether its tools are exposed."""
        return self.ensemble.enabled

    @property
    def is_lazy(self) -> bool:
        """Whether it is connected only at the first call."""
        return self._lazy or self.server.lazy

    @property
    def state(self) -> ConnectionState:
        """Where it stands for people; below, a disabled server keeps its connection."""
        return self.lease.state if self.is_enabled else _S.DISABLED

    @property
    def is_usable(self) -> bool:
        """Whether a conversation can use its tools: now, or after the connection that a call makes.

        A server that failed at the start is left out until it is connected. One that was lost stays,
        and so does a lazy one that nobody has tried yet.
        """
        if not self.is_enabled or self.state is _S.NEEDS_AUTH:
            return False
        if self.state in (_S.CONNECTED, _S.RECONNECTING):
            return True
        if not self.ensemble.is_known:
            return self.is_lazy and self.find_error() is None
        return bool(self.ensemble.invokers) and (self.is_lazy or self.is_listed)

    @property
    def wants_connection(self) -> bool:
        """Whether it is to be connected and listed without waiting for a call."""
        idle = self.lease.state in (_S.DISCONNECTED, _S.FAILED, _S.NEEDS_AUTH)
        unlisted = self.lease.state is _S.CONNECTED and not self.is_listed
        return (idle or unlisted) and self.is_enabled and not self.is_lazy

    @property
    def is_left_out(self) -> bool:
        """Whether nobody has come to connect and list it yet, though it wants that."""
        return self.wants_connection and self.find_error() is None

    async def connect(self, *, anew: bool = False) -> None:
        """Connects and lists the tools; the failure, of our family in any case, is also kept."""
        was_listed, self.is_listed = self.is_listed, True
        try:
            if anew:
                await self.lease.reconnect()
            await self.ensemble.connect()
        except BaseException as failure:
            self.is_listed = was_listed
            if not isinstance(failure, Exception):
                raise
            self.failure = _adapt_failure(self.server, failure)
            if self.failure is failure:
                raise
            raise self.failure from failure
        self.failure = None
        self.pulse.trouble = ""

    async def check(self) -> None:
        """Asks a connected server for a sign of life."""
        if (client := self.lease.client) is None or self.lease.state is not _S.CONNECTED:
            return
        try:
            seconds = await client.check(min(_CHECK_TIME_MAX, self.server.connect_timeout))
        except ConverserFailure as failure:
            self.pulse.note_failure(str(failure))
        else:
            self.pulse.note(seconds)

    async def leave(self) -> None:
        """Leaves the connection for good; tools that somebody still holds refuse to be called."""
        self.lease.is_retired = True
        await self.ensemble.disconnect()

    def recall(self, keeper: CatalogueKeeper) -> None:
        """Takes the tools over as they were last seen, until the server itself can be asked."""
        if self.is_listed or (tools := keeper.recall(self.server)) is None:
            return
        try:
            self.ensemble.remember(tools)
        except NameConflict as failure:  # of names that the server chose
            self.failure = failure

    def note_tools(self, keeper: CatalogueKeeper) -> None:
        """Compares the tools with those that were last seen."""
        is_whole = self.ensemble.interruption is None
        drift = keeper.note(self.server, self.ensemble.tools, is_whole=is_whole)
        if drift or not keeper.renews:
            self.drift = drift

    def forget_drift(self) -> None:
        """The tools are accepted as they are."""
        self.drift = Drift()

    def can_become(self, server: MCPServer) -> bool:
        """Whether another configuration needs no other connection."""
        return identify_connection(server, self._elicit) == self.lease.key

    def become(self, server: MCPServer) -> None:
        """Takes over another configuration of the same connection."""
        self.ensemble.reconfigure(configure_ensemble(server))
        self.server = server

    def follow(self, before: Member) -> None:
        """Takes the place of another one; what people have toggled stays, unless the configuration toggles it."""
        if self.server.enabled is before.server.enabled:
            self.ensemble.enabled = before.is_enabled

    def survey(self) -> ServerSurvey:
        """All that people may want to know."""
        server, ensemble = self.server, self.ensemble
        return ServerSurvey(
            name=server.name,
            state=self.state,
            transport=server.transport,
            scope=server.scope,
            configuration=freeze(server.describe()),
            error=self.find_error(),
            tools=self._survey_tools(),
            disabled_tools=freeze(ensemble.disabled),
            is_remembered=bool(ensemble.tools) and not self.is_listed,
            drift=self.drift,
            pulse=self.pulse.latency,
            trouble=self.pulse.trouble,
            remarks=(*ensemble.remarks, *self._remark()),
            **self._survey_client(),
        )

    def _survey_tools(self) -> tuple[ToolSurvey, ...]:
        costs = self.ensemble.cost()
        return tuple(
            ToolSurvey(
                name=invoker.name,
                own_name=invoker.tool.name,
                description=invoker.description,
                annotations=invoker.annotations,
                tokens=costs[invoker.name],
            )
            for invoker in self.ensemble.invokers.values()
        )

    def _survey_client(self) -> dict[str, Any]:
        if (client := self.lease.client) is None:
            return {}
        self._make_acquaintance()
        return {
            **self._acquaintance,
            "last_seen": client.caller.last_seen,
            "reconnects": client.reconnects,
            "calls": client.caller.calls,
            "failures": client.caller.failures,
            "latency": client.caller.latency,
        }

    def _make_acquaintance(self) -> None:
        """Keeps what a server says of itself, so that it is known also of one that was lost."""
        if (client := self.lease.client) is None or client.protocol_version is None:
            return
        name, version = client.server_info or (None, None)
        self._acquaintance = {
            "server_name": name,
            "server_version": version,
            "protocol_version": client.protocol_version,
            "instructions": client.instructions,
        }

    def find_error(self) -> ConverserFailure | None:
        """Why there is no connection, or no listing of its tools."""
        if (client := self.lease.client) is not None and self.lease.state in (
            _S.FAILED,
            _S.NEEDS_AUTH,
            _S.RECONNECTING,
        ):
            return client.failure or self.failure
        return self.failure

    def _remark(self) -> list[str]:
        remarks: list[str] = []
        if self.is_lazy and not self.is_listed and not self.ensemble.tools:
            remarks.append(
                f"Server {self.name!r} is lazy, and its tools are not known before it is connected"
                f" once: by a conversation, or await roster.reconnect({self.name!r})."
            )
        if self.drift:
            remarks.append(f"The tools are not as they were last seen. {self.drift}.")
        return remarks

    async def _relist(
        self, reload: Callable[[], Awaitable[None]], note: Callable[[Member], None]
    ) -> None:
        await reload()
        self.is_listed, self.failure = True, None
        note(self)

    def _pass_on(self, event: Any, hear: Hear) -> None:
        self._make_acquaintance()
        if isinstance(event, (ServerStateChanged, ToolsChanged)):
            hear(self, event)


def _adapt_failure(server: MCPServer, failure: Exception) -> ConverserFailure:
    """One of our family, whatever a server made happen: one bad server must not spoil the others."""
    if isinstance(failure, ConverserFailure):
        return failure
    words = clean_text(f"{type(failure).__name__}: {failure}", limit=500)
    return MCPProtocolFailure(
        f"Server {server.name!r} ({server.transport}) cannot be used: {words}.",
        remedy="Report this, with the server's name and version.",
        server=server.name,
        transport=server.transport,
    )
