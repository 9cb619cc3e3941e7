# SPDX-License-Identifier: Apache-2.0
"""What a roster tells of its servers, as values that may be shown: no secret is in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..configuration import Scope, Transport
from ..exceptions import ConverserFailure
from ..immutables import FrozenDictionary
from ..invokers import Annotations
from ..mcp.states import ConnectionState
from .catalogue import Drift


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSurvey:
    """One tool that a model can use."""

    name: str
    """On the wire."""
    own_name: str
    """As its server calls it."""
    description: str
    annotations: Annotations
    tokens: int
    """About what it costs in each request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSurvey:
    """Where one server stands. Texts that come from the server are its own word, made harmless to print."""

    name: str
    state: ConnectionState
    transport: Transport
    scope: Scope
    configuration: Mapping[str, Any]
    """As `MCPServer.describe` has it."""
    error: ConverserFailure | None = None
    server_name: str | None = None
    """What it last said of itself, this and the next three."""
    server_version: str | None = None
    protocol_version: str | None = None
    instructions: str | None = None
    tools: tuple[ToolSurvey, ...] = ()
    """Those that are exposed; a disabled server exposes none."""
    disabled_tools: Mapping[str, str] = field(default_factory=FrozenDictionary)
    """Tools that cannot be used, each with the reason."""
    is_remembered: bool = False
    """Whether the tools are from `converser.lock`, and were not yet compared with the server's."""
    drift: Drift = Drift()
    """How the tools differ from those in `converser.lock` when they were last compared."""
    last_seen: float | None = None
    """When the server last answered, as `time.time` has it."""
    reconnects: int = 0
    calls: int = 0
    failures: int = 0
    """How many of the calls failed."""
    latency: float | None = None
    """Seconds that a call takes, smoothed."""
    pulse: float | None = None
    """Seconds that the last check took."""
    trouble: str = ""
    """Why it is degraded, in words."""
    remarks: tuple[str, ...] = ()

    @property
    def remedy(self) -> str:
        """What to do about the error."""
        return self.error.remedy if self.error else ""

    @property
    def tokens(self) -> int:
        """About what its tools cost in each request, all together."""
        return sum(tool.tokens for tool in self.tools)

    @property
    def is_degraded(self) -> bool:
        """Whether it works far worse than usual, as the last check has shown."""
        return bool(self.trouble)


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """What a revision of a roster did, by the names of servers."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    errors: Mapping[str, ConverserFailure] = field(default_factory=FrozenDictionary)
    """The servers, among the added and changed ones, that failed."""
