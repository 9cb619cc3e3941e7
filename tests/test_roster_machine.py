# SPDX-License-Identifier: Apache-2.0
"""Whatever order servers come, go, change and are toggled in, a roster is where a simple model says."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import anyio
from anyio.from_thread import start_blocking_portal
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import converser
from converser.canisters import user
from converser.testing import ScriptedModel
from tests.places import LIMIT
from tests.rosters import Ears, State, make_broken, make_server

NAMES = ("a", "b", "c", "d")
KINDS = ("sound", "other", "broken", "lazy", "off", "narrow")


@dataclass
class Expectation:
    """What the model knows of one server."""

    server: converser.MCPServer
    is_enabled: bool
    is_connected: bool

    @property
    def state(self) -> State:
        """Where it should stand."""
        if not self.is_enabled:
            return State.DISABLED
        if self.is_connected:
            return State.CONNECTED
        return State.FAILED if self.server.transport == "stdio" else State.DISCONNECTED

    @property
    def is_offered(self) -> bool:
        """Whether a conversation gets it: lazy ones too, which it connects."""
        return self.state in (State.CONNECTED, State.DISCONNECTED)

    def settle(self) -> None:
        """What is enabled and eager is connected, if that is possible."""
        if self.is_enabled and not self.server.lazy and self.server.transport != "stdio":
            self.is_connected = True


class RosterMachine(RuleBasedStateMachine):
    """A roster of servers in this process, and a model of it."""

    def __init__(self) -> None:
        super().__init__()
        self._portal_context = start_blocking_portal()
        self._portal = self._portal_context.__enter__()
        self.ears = Ears()
        sound = {name: make_server(name) for name in NAMES}
        self.servers = {
            (name, kind): {
                "sound": sound[name],
                "other": make_server(name),
                "broken": make_broken(name),
                "lazy": replace(sound[name], lazy=True),
                "off": replace(sound[name], enabled=False),
                "narrow": replace(sound[name], enabled_tools=("echo",)),
            }[kind]
            for name in NAMES
            for kind in KINDS
        }
        self.model: dict[str, Expectation] = {}
        self.roster = converser.Roster([], observer=self.ears)

    def run(self, work: Callable[..., Coroutine[Any, Any, Any]], *arguments: Any) -> Any:
        async def within_limit() -> Any:
            with anyio.fail_after(LIMIT):
                return await work(*arguments)

        return self._portal.call(within_limit)

    def teardown(self) -> None:
        self.run(self.roster.close)
        self._portal_context.__exit__(None, None, None)
        for name in NAMES:
            self.ears.assert_legal(name)
            assert self.ears.states(name)[-1:] in ([], ["disconnected"], ["disabled"])

    @initialize()
    def open(self) -> None:
        self.run(self.roster.open)

    def expect(self, server: converser.MCPServer) -> Expectation:
        expectation = Expectation(server, server.enabled, is_connected=False)
        expectation.settle()
        return expectation

    @rule(name=st.sampled_from(NAMES), kind=st.sampled_from(KINDS))
    def add(self, name: str, kind: str) -> None:
        server = self.servers[name, kind]
        if name not in self.model:
            self.run(self.roster.add, server)
            self.model[name] = self.expect(server)
            return
        try:
            self.run(self.roster.add, server)
        except converser.ConfigurationFailure:
            return
        raise AssertionError("A second server of one name was taken in.")

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.model)))
        ensemble = self.roster.access_ensemble(name)
        self.run(self.roster.remove, name)
        del self.model[name]
        assert not ensemble.invokers

    @precondition(lambda self: self.model)
    @rule(data=st.data(), enabled=st.booleans())
    def toggle(self, data: st.DataObject, enabled: bool) -> None:
        name = data.draw(st.sampled_from(sorted(self.model)))
        self.run(self.roster.toggle, name, enabled)
        self.model[name].is_enabled = enabled
        self.model[name].settle()

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def reconnect(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.model)))
        expectation = self.model[name]
        is_broken = expectation.server.transport == "stdio"
        try:
            self.run(self.roster.reconnect, name)
        except converser.MCPConnectionFailure:
            assert is_broken
        else:
            assert not is_broken
            expectation.is_connected = True

    @rule()
    def converse(self) -> None:
        ensembles = self.roster.ensembles
        self.run(partial(ScriptedModel(["Hello."]).converse, ensembles=ensembles), [user("Hi")])
        for expectation in self.model.values():
            expectation.is_connected |= expectation.is_offered

    @rule()
    def check(self) -> None:
        self.run(self.roster.check)

    @rule(
        names=st.lists(st.sampled_from(NAMES), unique=True),
        kinds=st.lists(st.sampled_from(KINDS), min_size=len(NAMES), max_size=len(NAMES)),
    )
    def revise(self, names: list[str], kinds: list[str]) -> None:
        servers = [self.servers[name, kind] for name, kind in zip(names, kinds, strict=False)]
        before = {name: self.roster.access_ensemble(name) for name in self.model}
        revision = self.run(self.roster.revise, servers)
        self.check_revision(revision, servers)
        model = {server.name: self.foresee(server) for server in servers}
        for name in revision.kept:
            assert self.roster.access_ensemble(name) is before[name]
        self.model = model

    def check_revision(
        self, revision: converser.Revision, servers: list[converser.MCPServer]
    ) -> None:
        known = {name: expectation.server for name, expectation in self.model.items()}
        names = [server.name for server in servers]
        assert revision.added == tuple(name for name in names if name not in known)
        assert revision.removed == tuple(name for name in known if name not in names)
        assert revision.kept == tuple(s.name for s in servers if known.get(s.name) == s)
        assert {*revision.added, *revision.changed, *revision.kept} == {*names}

    def foresee(self, server: converser.MCPServer) -> Expectation:
        """What a revision makes of a server."""
        known = self.model.get(server.name)
        if known is None:
            return self.expect(server)
        if known.server == server:
            return known
        is_connected = known.is_connected
        if known.server.transport != server.transport or known.server.server is not server.server:
            is_connected = False
        is_enabled = known.is_enabled if known.server.enabled == server.enabled else server.enabled
        expectation = Expectation(server, is_enabled, is_connected)
        expectation.settle()
        return expectation

    @invariant()
    def is_as_the_model_says(self) -> None:
        surveys = self.roster.survey()
        assert list(surveys) == list(self.model)
        assert {name: survey.state for name, survey in surveys.items()} == {
            name: expectation.state for name, expectation in self.model.items()
        }
        assert [ensemble.name for ensemble in self.roster.ensembles] == [
            name for name, e in self.model.items() if e.is_offered
        ]

    @invariant()
    def exposes_what_is_configured(self) -> None:
        for ensemble in self.roster.ensembles:
            server = self.model[ensemble.name].server
            if self.model[ensemble.name].state is State.DISCONNECTED:
                assert not ensemble.is_known
            elif server.enabled_tools is not None:
                assert list(ensemble.invokers) == [f"{server.name}_echo"]
            else:
                assert len(ensemble.invokers) > 1


TestRosterMachine = RosterMachine.TestCase
TestRosterMachine.settings = settings(max_examples=40, stateful_step_count=15, deadline=None)
