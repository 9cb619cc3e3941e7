# SPDX-License-Identifier: Apache-2.0
"""The roster behind a command: every server that is asked for is connected at once, and nothing is written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ..configuration import Configuration, MCPServer
from ..events import Event, ServerStateChanged, ToolsChanged
from ..exceptions import ConfigurationFailure
from .options import find_server
from .screen import whisper

if TYPE_CHECKING:
    from ..rosters.roster import Roster


def choose_servers(configuration: Configuration, names: Sequence[str]) -> list[MCPServer]:
    """The servers of these names, enabled or not; without names all of them as they are."""
    if names:
        return [replace(find_server(configuration, name), enabled=True) for name in names]
    if not configuration.servers:
        raise ConfigurationFailure(
            "No servers are configured.",
            remedy="Begin with `converser init`, write a table [mcp.NAME] into converser.toml, or"
            " name a file with --config.",
        )
    return list(configuration.servers.values())


def create_roster(servers: Iterable[MCPServer]) -> Roster:
    """A roster for one command; it is not opened yet. A server that fails does not spoil the others."""
    from ..rosters.roster import Roster

    eager = [replace(server, lazy=False, required=False) for server in servers]
    return Roster(eager, observer=whisper_event)


def whisper_event(event: Event) -> None:
    """Tells of the states of servers, where somebody wants to know."""
    if isinstance(event, ServerStateChanged):
        reason = f": {event.reason}" if event.reason else ""
        whisper(f"{event.server} is {event.state}{reason}")
    elif isinstance(event, ToolsChanged):
        whisper(f"{event.server} has other tools")
