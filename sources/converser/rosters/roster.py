# SPDX-License-Identifier: Apache-2.0
"""All servers of an application: opened at once, surveyed, toggled and revised while conversations run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import anyio
import frigid
from typing_extensions import Self

from ..configuration import MCPServer
from ..configuration.mistakes import nearest
from ..ensembles import Ensemble
from ..events import Observer
from ..exceptions import ConfigurationFailure
from ..tasks import run_aside
from .chores import finish, repeat
from .keeping import CatalogueKeeper
from .members import Member
from .operations import Operations
from .revisions import Plan, check_servers
from .surveys import Revision, ServerSurvey
from .watching import ConfigurationFiles

if TYPE_CHECKING:
    from ..mcp.handlers import ElicitationHandler

PARALLEL = 8


class Roster:
    """Servers that live and are looked after together: `async with Roster([…]) as roster: …`."""

    def __init__(
        self,
        servers: Iterable[MCPServer],
        *,
        elicit: ElicitationHandler | None = None,
        observer: Observer | None = None,
        lock: str | Path | None = None,
        renew_lock: bool = True,
        lazy: bool = False,
        parallel: int = PARALLEL,
        health: float | None = None,
        watch: float | None = None,
        files: ConfigurationFiles | None = None,
    ) -> None:
        """Takes servers; nothing is connected yet.

        `lock` is the catalogue of tools, `converser.lock`; it is renewed when tools have drifted,
        unless `renew_lock` is false. With `lazy`, every server is. `health` and `watch` are the
        seconds between two checks of all servers, and between two looks at the `files`.
        """
        self._elicit = elicit
        self._lazy = lazy
        self._health, self._watch, self._files = health, watch, files
        self._keeper = CatalogueKeeper(None if lock is None else Path(lock), renews=renew_lock)
        self._operations = Operations(self._keeper, observer, parallel)
        self._members = {server.name: self._enlist(server) for server in check_servers(servers)}
        self._guests: set[str] = set()
        self._order = anyio.Lock()

    def __repr__(self) -> str:
        return f"Roster(servers={list(self._members)!r})"

    @property
    def ensembles(self) -> tuple[Ensemble, ...]:
        """What `converse` takes: the ensembles whose tools can be used, in the order of configuration."""
        return tuple(m.ensemble for m in self._members.values() if m.is_usable)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What went wrong with the files: those that are read, and the catalogue."""
        complaint = self._files.complaint if self._files else ""
        return tuple(remark for remark in (complaint, self._keeper.remark) if remark)

    def access_ensemble(self, name: str) -> Ensemble:
        """The ensemble of a server, whether its tools can be used or not."""
        return self._find(name).ensemble

    def survey(self) -> Mapping[str, ServerSurvey]:
        """Where each server stands, by name, in the order of configuration."""
        return frigid.Dictionary((name, m.survey()) for name, m in self._members.items())

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def open(self) -> None:
        """Connects all that are enabled and not lazy; raises only where a required one fails."""
        async with self._order:
            if self._operations.is_running:
                return
            try:
                await self._operations.start()
                await self._start()
            except BaseException:
                await finish(self._end, "converser: end of a roster")
                raise

    async def close(self) -> None:
        """Leaves all connections; those that nobody else shares end. Repeated, it does nothing.

        The roster's own `async` observer, for whose last word it waits, has it only begin.
        """
        self._operations.interrupt()
        waits = not self._operations.is_telling
        await finish(self._close, "converser: end of a roster", waits=waits)

    async def _close(self) -> None:
        async with self._order:
            await self._end()

    async def reconnect(self, name: str) -> ServerSurvey:
        """Connects a server anew, for all who share it; raises where it fails."""
        self._check_running()
        member = self._find(name)
        await self._operations.connect(member, anew=True)
        await self._keeper.save()
        if member.failure is not None:
            raise member.failure
        return member.survey()

    async def toggle(self, name: str, enabled: bool) -> ServerSurvey:
        """Exposes the tools of a server, or hides them; a hidden one keeps its connection."""
        self._check_running()
        member = self._find(name)
        if member.is_enabled is not enabled:
            member.ensemble.enabled = enabled
            self._operations.tell_state(member)
        await self._operations.begin([member])
        return member.survey()

    async def add(self, server: MCPServer) -> ServerSurvey:
        """Takes in one more server; where it fails, the survey says why, unless it is required."""
        async with self._order:
            self._check_running()
            check_servers([*(m.server for m in self._members.values()), server])
            member = self._members[server.name] = self._enlist(server)
            self._guests.add(server.name)
            self._operations.introduce([member])
        try:  # out of the order: one that hangs keeps no other from coming and going
            await self._operations.begin([member])
            self._check_running()
            if member.failure is not None and server.required:
                raise member.failure
        except BaseException:
            with anyio.CancelScope(shield=True):  # which nobody who closes the roster waits for
                await self._discard(member)
            raise
        return member.survey()

    async def remove(self, name: str) -> None:
        """Takes a server out; conversations that have its ensemble see no tools of it any more."""
        async with self._order:
            await self._discard(self._find(name))

    async def _discard(self, member: Member) -> None:
        if self._members.get(member.name) is not member:
            return  # somebody else has taken it out meanwhile
        del self._members[member.name]
        self._guests.discard(member.name)
        await self._operations.dismiss([member])

    async def revise(self, servers: Iterable[MCPServer]) -> Revision:
        """Makes these the servers, in this order; what did not change goes on undisturbed.

        What one that was cancelled left undone, the next one does.
        """
        async with self._order:
            self._check_running()
            plan = Plan(self._members, check_servers(servers))
            errors = self._operations.adapt(plan)
            members = await self._exchange(plan)
        await self._operations.begin(members)
        present = [m for m in members if self._members.get(m.name) is m]
        errors.update((m.name, m.failure) for m in present if m.failure is not None)
        return plan.report(errors)

    async def _exchange(self, plan: Plan) -> list[Member]:
        """Takes members in and out; gives those that are to be connected, if they want that."""
        fresh = {s.name: self._enlist(s) for s in (*plan.added, *plan.replaced)}
        for server in plan.replaced:
            fresh[server.name].follow(self._members[server.name])
        gone = [m for n, m in self._members.items() if n in fresh or n in plan.removed]
        self._members = {n: fresh.get(n) or self._members[n] for n in plan.order}
        self._guests &= self._members.keys()
        try:
            await self._operations.dismiss(gone)
        finally:
            self._operations.introduce(fresh.values())
        changed = {*fresh.values(), *(member for member, _ in plan.adaptable)}
        return [m for m in self._members.values() if m in changed or m.is_left_out]

    async def reload(self) -> Revision:
        """Reads the configuration files again and revises; servers that were added by hand stay."""
        if self._files is None:
            raise ConfigurationFailure(
                "This roster was not made from a file, so there is none to read again.",
                remedy="Use `open_roster` with a path, or `revise` with servers.",
            )
        configuration = await run_aside(self._files.load)
        servers = dict(configuration.servers)
        for name, member in self._members.items():
            if name in self._guests:
                servers.setdefault(name, member.server)
        return await self.revise(servers.values())

    async def check(self) -> Mapping[str, ServerSurvey]:
        """Asks every connected server for a sign of life, and tries those again that failed."""
        self._check_running()
        await self._feel_pulses()
        await self._retry()
        return self.survey()

    async def write_lock(self) -> None:
        """Writes the tools as they are now into the catalogue, and so accepts what has drifted."""
        self._keeper.accept()
        await self._keeper.save()
        for member in self._members.values():
            member.forget_drift()

    def _enlist(self, server: MCPServer) -> Member:
        hear, note = self._operations.hear, self._operations.note
        return Member(server, hear=hear, note=note, elicit=self._elicit, lazy=self._lazy)

    def _find(self, name: str) -> Member:
        if (member := self._members.get(name)) is not None:
            return member
        guess = nearest(name, self._members)
        raise ConfigurationFailure(
            f"The roster has no server {name!r}.",
            remedy=f"Did you mean {guess!r}?"
            if guess
            else f"There are: {', '.join(self._members) or 'none'}.",
        )

    def _check_running(self) -> None:
        if not self._operations.is_running:
            raise ConfigurationFailure(
                "The roster is not open, or not any more.", remedy="Use it inside of `async with`."
            )

    async def _feel_pulses(self) -> None:
        await self._operations.feel_pulses(tuple(self._members.values()))

    async def _retry(self) -> None:
        await self._operations.retry(tuple(self._members.values()))

    async def _start(self) -> None:
        await self._keeper.load()
        members = tuple(self._members.values())
        self._operations.introduce(members)
        await self._operations.begin(members, strict=True)
        for member in members:
            if member.server.required and member.failure is not None:
                raise member.failure
        self._check_running()
        if (health := self._health) is not None:
            self._operations.start_chore(lambda: repeat(health, self._feel_pulses), "health")
            self._operations.start_chore(lambda: repeat(health, self._retry), "recovery")
        if (watch := self._watch) is not None and (files := self._files) is not None:
            self._operations.start_chore(lambda: files.watch(watch, self.reload), "configuration")

    async def _end(self) -> None:
        with anyio.CancelScope(shield=True):
            await self._operations.chores.end()
            await self._operations.leave(self._members.values())
            await self._keeper.save()
            await self._operations.stop()
