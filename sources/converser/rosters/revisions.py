# SPDX-License-Identifier: Apache-2.0
"""Compares the servers that run with those that shall run, so that only what changed is changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ..configuration import MCPServer
from ..ensembles import compare_tools
from ..events import ToolsChanged
from ..exceptions import ConfigurationFailure, ConverserFailure
from ..immutables import FrozenDictionary
from .members import Member
from .surveys import Revision


class Plan:
    """What has to be done so that these servers run."""

    def __init__(self, members: Mapping[str, Member], servers: Sequence[MCPServer]) -> None:
        self.order = tuple(server.name for server in servers)
        self.added = tuple(server for server in servers if server.name not in members)
        self.removed = tuple(name for name in members if name not in self.order)
        changed = [
            (members[server.name], server)
            for server in servers
            if server.name in members and members[server.name].server != server
        ]
        self.adaptable = tuple(pair for pair in changed if pair[0].can_become(pair[1]))
        """Those that keep their connection, and the ensemble that conversations have."""
        self.replaced = tuple(server for member, server in changed if not member.can_become(server))
        self._changed = tuple(server.name for _, server in changed)

    def report(self, errors: Mapping[str, ConverserFailure]) -> Revision:
        """What was done."""
        added = tuple(server.name for server in self.added)
        return Revision(
            added=added,
            removed=self.removed,
            changed=self._changed,
            kept=tuple(n for n in self.order if n not in added and n not in self._changed),
            errors=FrozenDictionary(errors),
        )


def adapt(member: Member, server: MCPServer) -> ToolsChanged | None:
    """Gives a member another configuration of the same connection; tells what that does to its tools."""
    before = member.ensemble.invokers
    was_enabled = member.server.enabled
    member.become(server)
    if server.enabled is not was_enabled:
        member.ensemble.enabled = server.enabled
        return None  # the new state says it
    return compare_tools(member.name, before, member.ensemble.invokers)


def check_servers(servers: Iterable[MCPServer]) -> tuple[MCPServer, ...]:
    """The same servers; two of one name are refused."""
    servers = tuple(servers)
    names = [server.name for server in servers]
    for name in names:
        if names.count(name) > 1:
            raise ConfigurationFailure(
                f"There are two servers of the name {name!r}.",
                remedy="Give one of them another name, or use `revise` to change it.",
            )
    return servers
