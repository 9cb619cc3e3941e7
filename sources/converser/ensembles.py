# SPDX-License-Identifier: Apache-2.0
"""A named group of tools with one life and one configuration; it owns the connection behind them."""

from __future__ import annotations

import asyncio
import difflib
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import partial
from types import TracebackType
from typing import Any, Protocol

import anyio
import frigid
from typing_extensions import Self

from .arguments import Strictness
from .collecting import ease_collector
from .conflicts import index_tools, refuse_conflicts
from .costs import estimate_tokens
from .events import Announce, ServerStateChanged, ToolsChanged
from .exceptions import InvokerAbsence, MCPFailure, NameConflict, SchemaInvalidity
from .gates import GateMaker
from .hygiene import clean_text
from .immutables import EMPTY, FrozenDictionary
from .invokers import Context, Invocable, InvocationResult, Invoker, Tool, keep_known
from .naming import Naming, assign_names, suggest_name
from .selection import Selection

_ABANDONING_TIME_MAX = 0.1
_log = logging.getLogger(__name__)
_NO_INVOKERS: Mapping[str, Invoker] = frigid.Dictionary[str, Invoker]()


class Connection(Protocol):
    """What an ensemble needs of the thing that its tools live behind."""

    @property
    def remarks(self) -> Sequence[str]:
        """What people should know of the last listing: what was left out, and why."""
        ...

    @property
    def interruption(self) -> MCPFailure | None:
        """Why the last listing broke off before its last page, if it did."""
        ...

    async def connect(self) -> None:
        """Establishes the connection; does nothing where there is one."""
        ...

    async def disconnect(self) -> None:
        """Ends the connection; does nothing where there is none."""
        ...

    async def list_tools(self) -> Sequence[Tool]:
        """All tools, of all pages that came."""
        ...

    async def call_tool(
        self, name: str, arguments: Mapping[str, Any], *, context: Context = ...
    ) -> InvocationResult:
        """Calls one tool with arguments that fit its schema."""
        ...

    def watch(
        self, *, on_tools: Callable[[], Awaitable[None]], on_state: Callable[[str, str], None]
    ) -> None:
        """Has the listeners told when the tools may have changed, and when the state has."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class EnsembleConfiguration:
    """How an ensemble treats its tools."""

    selection: Selection = Selection()
    naming: Naming = Naming()
    repair: bool = True
    strictness: Strictness = Strictness.STANDARD
    timeout: float | None = 60.0
    """Seconds for a call, until its result or a sign of progress; None: no limit."""
    idle_timeout: float | None = None
    """Seconds between two signs of progress; None: as `timeout`."""
    timeout_maximum: float | None = None
    """Seconds after which a call is stopped, whatever progress it makes."""
    tool_timeouts: Mapping[str, float] = field(default_factory=FrozenDictionary)
    """Seconds for a call of single tools, by their own names."""
    replay: tuple[str, ...] = ()
    """Names or patterns of tools that may be called again when the outcome of a call is unknown."""
    sequential: tuple[str, ...] = ()
    """Names or patterns of tools whose calls of one turn are made one by one, as the model ordered."""
    pinned: tuple[str, ...] = ()
    """Names or patterns of tools that a model always sees, also where it must search for the others."""


class Ensemble:
    """Tools that share a life: `async with ensemble: await ensemble.access_invoker("echo")({…})`."""

    def __init__(
        self,
        name: str,
        *,
        connection: Connection | None = None,
        tools: Iterable[tuple[Tool, Invocable]] = (),
        configuration: EnsembleConfiguration = EnsembleConfiguration(),
    ) -> None:
        self.name = name
        self.configuration = configuration
        self.connection = connection
        self.enabled = True
        """Whether it exposes its tools; it knows them, and keeps its connection, in either case."""
        self.interruption: MCPFailure | None = None
        """Why its tools may not be all: the last listing broke off before its last page."""
        self._pairs: tuple[tuple[Tool, Invocable], ...] = ()
        self._costs: Mapping[str, int] | None = None
        self._invokers = _NO_INVOKERS
        self._disabled: Mapping[str, str] = frigid.Dictionary[str, str]()
        self._remarks: tuple[str, ...] = ()
        self._observers: list[Announce] = []
        self._adopt(tuple(tools))
        self._is_known = connection is None or bool(self._pairs)
        if connection is not None:
            connection.watch(on_tools=self.refresh, on_state=self._tell_state)

    def __repr__(self) -> str:
        return f"Ensemble(name={self.name!r}, invokers={list(self._invokers)!r})"

    @property
    def invokers(self) -> Mapping[str, Invoker]:
        """The tools by their names on the wire, in a deterministic order."""
        return self._invokers if self.enabled else _NO_INVOKERS

    @property
    def tools(self) -> tuple[Tool, ...]:
        """All tools that are known, also those that it does not expose."""
        return tuple(tool for tool, _ in self._pairs)

    @property
    def is_known(self) -> bool:
        """Whether its tools are known: they are local, or were listed or remembered once."""
        return self._is_known

    @property
    def disabled(self) -> Mapping[str, str]:
        """The tools that cannot be used, by their own names, each with the reason."""
        return self._disabled

    @property
    def remarks(self) -> tuple[str, ...]:
        """What people should know of the tools: what was left out or altered, and why."""
        listing = self.connection.remarks if self.connection else ()
        return (*listing, *self._remarks)

    async def connect(self) -> None:
        """Connects, lists every tool, and exposes them; repeated, it lists again."""
        if self.connection is None:
            return
        await self.connection.connect()
        await self._relist(tells=self._is_known)

    async def disconnect(self) -> None:
        """Ends the connection; the invokers stay known, and the next call connects again."""
        if self.connection is not None:
            await self.connection.disconnect()

    async def abandon(self) -> None:
        """Ends a connection that failed, but does not wait long for a server that will not end."""
        with anyio.move_on_after(_ABANDONING_TIME_MAX, shield=True):
            await self.disconnect()

    async def refresh(self) -> None:
        """Lists the tools again and swaps the invokers at once, so that nobody sees half a set; tells what changed."""
        await self._relist(tells=True)

    async def _relist(self, *, tells: bool) -> None:
        if (connection := self.connection) is None:
            return
        with ease_collector():
            tools = listed = await connection.list_tools()
            self.interruption = connection.interruption
            if self.interruption is not None:
                tools = keep_known(listed, self.tools)
            maker = self._create_maker()
            await maker.prepare(filter(self.configuration.selection.admits, tools))
            before = self._invokers
            self._expose(tools, maker)
        if kept := [tool.name for tool in tools[len(listed) :]]:
            words = clean_text(", ".join(kept), limit=1_000)
            self._remarks += (f"These tools are kept as they were known: {words}.",)
        if tells and self._observers:
            change = compare_tools(self.name, before, self._invokers)
            if change is not None:
                self._announce(change)

    def remember(self, tools: Iterable[Tool]) -> None:
        """Exposes tools as they were seen earlier; the first call connects."""
        self._expose(tools)

    def _create_maker(self) -> GateMaker:
        settings = self.configuration
        return GateMaker(repair=settings.repair, strictness=settings.strictness)

    def _expose(self, tools: Iterable[Tool], maker: GateMaker | None = None) -> None:
        if (connection := self.connection) is not None:
            pairs = [(tool, partial(_call_tool, connection, tool.name)) for tool in tools]
            self._adopt(pairs, maker)
            self._is_known = True

    def reconfigure(self, configuration: EnsembleConfiguration) -> None:
        """Treats the tools that are known in another way from now on; the connection stays."""
        before, self.configuration = self.configuration, configuration
        try:
            self._adopt(self._pairs)
        except NameConflict:
            self.configuration = before
            raise

    def cost(self) -> Mapping[str, int]:
        """About how many tokens each tool takes in a request to a model, by its name on the wire."""
        if self._costs is None:
            self._costs = frigid.Dictionary(
                (name, estimate_tokens(invoker)) for name, invoker in self._invokers.items()
            )
        return self._costs

    def observe(self, observer: Announce) -> Callable[[], None]:
        """Has an observer told of states and changed tools; gives a way to end that."""
        self._observers.append(observer)
        return lambda: self._observers.remove(observer)

    def _tell_state(self, state: str, reason: str) -> None:
        self._announce(ServerStateChanged(server=self.name, state=state, reason=reason))

    def _announce(self, event: ServerStateChanged | ToolsChanged) -> None:
        for observer in tuple(self._observers):
            try:
                observer(event)
            except (Exception, asyncio.CancelledError):
                _log.exception("An observer of ensemble %r raised", self.name)

    async def __aenter__(self) -> Self:
        try:
            if not self._invokers:
                await self.connect()
            elif self.connection is not None:
                await self.connection.connect()
        except BaseException:
            await self.abandon()  # nobody else will: there is no exit without an entry
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.disconnect()

    def access_invoker(self, name: str) -> Invoker:
        """The tool of that name, on the wire or as its server calls it."""
        if not self.enabled:
            raise InvokerAbsence(
                f"Ensemble {self.name!r} is disabled, and so are its tools.",
                remedy="Enable it first.",
            )
        if (invoker := self._invokers.get(name)) is not None:
            return invoker
        for invoker in self._invokers.values():
            if invoker.tool.name == name:
                return invoker
        if (reason := self._disabled.get(name)) is not None:
            raise InvokerAbsence(f"Tool {name!r} of ensemble {self.name!r} is disabled: {reason}")
        raise InvokerAbsence(
            f"Ensemble {self.name!r} has no tool {name!r}.",
            remedy=suggest_name(name, self._list_names(name)),
        )

    def _list_names(self, sought: str) -> list[str]:
        """The names that somebody may have meant: those on the wire, or those of the server."""
        own = [invoker.tool.name for invoker in self._invokers.values()]
        return own if difflib.get_close_matches(sought, own, n=1) else list(self._invokers)

    def _decide_usual(self, tool: Tool, common: Context) -> Context:
        """What holds for a tool where a caller says nothing; most have that in common."""
        settings = self.configuration
        replay = bool(settings.replay) and any(fnmatchcase(tool.name, p) for p in settings.replay)
        if not replay and tool.name not in settings.tool_timeouts:
            return common
        timeout = settings.tool_timeouts.get(tool.name, settings.timeout)
        return replace(common, timeout=timeout, replay=replay)

    def _decide_common(self) -> Context:
        settings = self.configuration
        return Context(
            timeout=settings.timeout,
            idle_timeout=settings.idle_timeout,
            timeout_maximum=settings.timeout_maximum,
        )

    def _adopt(
        self, pairs: Sequence[tuple[Tool, Invocable]], maker: GateMaker | None = None
    ) -> None:
        """Makes invokers of the selected tools and publishes them, all at once."""
        maker = maker or self._create_maker()
        selection = self.configuration.selection
        remarks = [
            f"The pattern {pattern!r} in the selection of ensemble {self.name!r} matches no tool."
            for pattern in (selection.find_idle_patterns(t.name for t, _ in pairs) if pairs else ())
        ]
        chosen = index_tools(self.name, (p for p in pairs if selection.admits(p[0])))
        names = assign_names(self.configuration.naming, self.name, chosen)
        refuse_conflicts(self.name, names)
        common = self._decide_common()
        invokers: dict[str, Invoker] = {}
        disabled: dict[str, str] = {}
        for listed, invocable in chosen.values():
            try:
                tool, gate = maker.make(listed)
            except SchemaInvalidity as failure:
                disabled[listed.name] = str(failure)
                continue
            if gate.remarks:
                remarks.extend(f"Tool {tool.name!r}: {remark}" for remark in gate.remarks)
            name = names[tool.name]
            invokers[name] = Invoker(
                name=name,
                tool=tool,
                invocable=invocable,
                gate=gate,
                ensemble=self,
                usual=self._decide_usual(tool, common),
            )
        self._pairs = tuple(pairs)
        self._costs = None
        self._invokers = frigid.Dictionary(sorted(invokers.items()))
        self._disabled = frigid.Dictionary(sorted(disabled.items()))
        self._remarks = tuple(remarks)


def _call_tool(
    connection: Connection, name: str, context: Context, arguments: dict[str, Any]
) -> Awaitable[InvocationResult]:
    """The invocable of a tool that lives behind a connection, once that and its name are given."""
    return connection.call_tool(name, arguments, context=context)


def compare_tools(
    server: str, before: Mapping[str, Invoker], after: Mapping[str, Invoker]
) -> ToolsChanged | None:
    """The difference between two sets of tools, if there is one."""
    added = tuple(name for name in after if name not in before)
    removed = tuple(name for name in before if name not in after)
    changed = tuple(
        name for name in after if name in before and _differ(after[name].tool, before[name].tool)
    )
    if not (added or removed or changed):
        return None
    return ToolsChanged(server=server, added=added, removed=removed, changed=changed)


def _differ(one: Tool, other: Tool) -> bool:
    """Whether two tools are not the same to a model; what is beside the definition is not compared."""
    return one is not other and replace(one, extras=EMPTY) != replace(other, extras=EMPTY)
