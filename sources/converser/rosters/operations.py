# SPDX-License-Identifier: Apache-2.0
"""What a roster does with its servers: connects them side by side, hears of them, and tells one observer."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Iterable
from contextvars import ContextVar
from typing import Any

import anyio

from ..events import Announce, Event, Observer, ServerStateChanged, ToolsChanged, observe
from ..exceptions import ConverserFailure
from ..mcp.states import ConnectionState
from ..tasks import spawn
from .chores import Chores
from .keeping import CatalogueKeeper
from .members import Member
from .revisions import Plan, adapt

_BUSY = 3.0
"""Seconds for which a server that starts counts as one that does; then it only lets wait for itself."""
_log = logging.getLogger(__name__)
_S = ConnectionState

Work = Callable[[], Coroutine[Any, Any, None]]
_telling: ContextVar[object] = ContextVar("converser telling", default=None)


class Operations:
    """Works on the members that it is given, from `start` to `stop`."""

    def __init__(self, keeper: CatalogueKeeper, observer: Observer | None, parallel: int) -> None:
        self.chores = Chores()
        self.is_running = False
        self._keeper = keeper
        self._observer = observer
        self._parallel = parallel
        self._announce: Announce = _ignore
        self._closing = self._closed = anyio.Event()
        self._beginnings: set[anyio.CancelScope] = set()

    @property
    def is_telling(self) -> bool:
        """Whether it is the observer who asks: whoever waits for it must not be waited for by it."""
        return _telling.get() is self

    async def start(self) -> None:
        """Begins to bring events to the observer."""
        self.is_running = True
        ready, closing, closed = anyio.Event(), anyio.Event(), anyio.Event()
        self._closing, self._closed = closing, closed

        async def run(announce: Announce) -> None:
            self._announce = announce
            ready.set()
            await closing.wait()

        async def relay() -> None:
            _telling.set(self)
            try:
                await observe(self._observer, run)
            finally:
                closed.set()

        spawn(relay, "converser: observer of a roster")
        await ready.wait()

    async def stop(self) -> None:
        """Waits until the observer has heard everything, or was given its time to."""
        self.is_running = False
        self._closing.set()
        await self._closed.wait()
        self._announce = _ignore

    def introduce(self, members: Iterable[Member]) -> None:
        """Opens servers to calls, and tells of those that are disabled: no step would tell it."""
        for member in members:
            member.lease.is_retired = False
            if not member.is_enabled:
                self.tell_state(member)

    async def begin(self, members: Iterable[Member], *, strict: bool = False) -> None:
        """Connects those that want it; with `strict`, gives up as soon as a required one fails."""
        eager: list[Member] = []
        for member in members:
            member.recall(self._keeper)
            if member.wants_connection:
                eager.append(member)
        scope = anyio.CancelScope()
        if not self.is_running:  # all is about to end
            scope.cancel()
        self._beginnings.add(scope)
        try:
            with scope:
                await self._connect_all(eager, scope if strict else None)
        finally:
            self._beginnings.discard(scope)
        await self._keeper.save()

    async def _connect_all(self, members: list[Member], end: anyio.CancelScope | None) -> None:
        """Connects so many at a time; those who have nothing but silence to show keep no place from others."""
        places = anyio.Semaphore(self._parallel)

        async def hold_place(busy: anyio.CancelScope) -> None:
            with busy:
                await anyio.sleep(_BUSY)
            places.release()

        async def connect(member: Member) -> None:
            await places.acquire()
            busy = anyio.CancelScope()
            group.start_soon(hold_place, busy)
            await self.connect(member)
            busy.cancel()
            if end is not None and member.failure is not None and member.server.required:
                end.cancel()

        async with anyio.create_task_group() as group:
            for member in members:
                group.start_soon(connect, member)

    def interrupt(self) -> None:
        """Ends what has begun and is still on its way."""
        self.is_running = False
        for scope in self._beginnings:
            scope.cancel()

    async def connect(self, member: Member, anew: bool = False) -> None:
        """Connects a server and compares its tools; a failure stays with the server."""
        try:
            await member.connect(anew=anew)
        except ConverserFailure as failure:
            _log.info("%s", failure)
        else:
            member.note_tools(self._keeper)

    async def feel_pulses(self, members: Iterable[Member]) -> None:
        """Asks those that work for a sign of life."""
        async with anyio.create_task_group() as group:
            for member in members:
                if member.state is _S.CONNECTED and not member.failure:
                    group.start_soon(member.check)

    async def retry(self, members: Iterable[Member]) -> None:
        """Tries those again that failed, or failed to list; no more at once than at the start."""
        failed = [
            m for m in members if m.state is _S.FAILED or (m.state is _S.CONNECTED and m.failure)
        ]
        await self._connect_all(failed, None)
        await self._keeper.save()

    async def leave(self, members: Iterable[Member]) -> None:
        """Leaves the connections of servers, side by side."""
        async with anyio.create_task_group() as group:
            for member in members:
                group.start_soon(member.leave)

    async def dismiss(self, members: Iterable[Member]) -> None:
        """Leaves the connections of servers that are no longer wanted, and hides their tools."""
        members = tuple(members)
        try:
            await self.leave(members)
        finally:
            for member in members:
                if not member.is_enabled:
                    state = _S.DISCONNECTED.value
                    self._announce(ServerStateChanged(server=member.name, state=state))
                member.ensemble.enabled = False

    def adapt(self, plan: Plan) -> dict[str, ConverserFailure]:
        """Changes what needs no other connection; gives what failed."""
        errors: dict[str, ConverserFailure] = {}
        for member, server in plan.adaptable:
            state = member.state
            try:
                change = adapt(member, server)
            except ConverserFailure as failure:
                errors[member.name] = failure
                continue
            if change is not None:
                self.tell(member, change)
            if member.state is not state:
                self.tell_state(member)
        return errors

    def start_chore(self, work: Work, subject: str) -> None:
        """Has something done beside everything else, unless all is about to end."""
        if self.is_running:
            self.chores.start(work, f"converser: {subject}")

    def note(self, member: Member) -> None:
        """Compares tools that were listed again, also those that are not exposed, and keeps what is new."""
        member.note_tools(self._keeper)
        self.start_chore(self._keeper.save, "catalogue")

    def hear(self, member: Member, event: ServerStateChanged | ToolsChanged) -> None:
        """Reacts to what happened to a server, and passes it on."""
        if isinstance(event, ServerStateChanged) and event.state == _S.CONNECTED.value:
            member.failure = None
            member.pulse.trouble = ""
            if not member.is_listed:
                self.start_chore(lambda: self._catch_up(member), f"tools of {member.name}")
        self.tell(member, event)

    def tell(self, member: Member, event: ServerStateChanged | ToolsChanged) -> None:
        """Tells the observer, unless the server is disabled: then nothing is heard of it."""
        if member.is_enabled:
            self._announce(event)

    def tell_state(self, member: Member) -> None:
        """Tells where a server stands, which it could not tell by itself; before it is introduced, nothing."""
        if member.lease.is_retired:
            return
        error = member.find_error()
        self._announce(
            ServerStateChanged(
                server=member.name,
                state=member.state.value,
                reason=str(error) if error and member.state is _S.FAILED else "",
            )
        )

    async def _catch_up(self, member: Member) -> None:
        """A call connected the server: its tools are no longer a memory."""
        await self.connect(member)
        await self._keeper.save()


def _ignore(_: Event) -> None:
    """Nobody listens."""
