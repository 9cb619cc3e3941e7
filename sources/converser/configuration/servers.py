# SPDX-License-Identifier: Apache-2.0
"""One MCP server as a value: how to reach it, and how its tools are offered; secrets are never shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from converser.immutables import EMPTY, FrozenDictionary, freeze

from .checks import CHECKS, check_combination, check_field, check_program
from .mistakes import Problem, create_failure, place_problems, printable
from .names import check_name
from .references import HIDDEN, hide_references, show_url

if TYPE_CHECKING:
    from typing_extensions import Unpack

Transport = Literal["stdio", "http", "sse", "in-process"]
ToolNames = Literal["prefix", "mcp"]
Scope = Literal["project", "user", "application"]


class ServerSettings(TypedDict, total=False):
    """What the factories take for every transport."""

    enabled: bool
    required: bool
    lazy: bool
    timeout: float
    idle_timeout: float | None
    timeout_maximum: float | None
    tool_timeouts: Mapping[str, float]
    connect_timeout: float
    reconnect_attempts: int
    result_limit: int
    replay_tools: Sequence[str]
    tool_prefix: str | None
    tool_names: ToolNames
    enabled_tools: Sequence[str] | None
    disabled_tools: Sequence[str]
    description: str
    scope: Scope
    origin: Path | None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class MCPServer:
    """A server, and what people decided about it; texts with references are kept unresolved."""

    name: str
    transport: Transport
    command: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=FrozenDictionary)
    cwd: str | None = None
    url: str | None = None
    headers: Mapping[str, str] = field(default_factory=FrozenDictionary)
    server: Any = None
    """For the transport "in-process": the server itself, or "package.module:attribute"."""
    enabled: bool = True
    required: bool = False
    lazy: bool = False
    """Whether it is connected only when one of its tools is called."""
    timeout: float = 60.0
    """Seconds for one call, until its result or a sign of progress."""
    idle_timeout: float | None = None
    """Seconds between two signs of progress; None: as `timeout`."""
    timeout_maximum: float | None = None
    """Seconds after which a call is stopped, whatever progress it makes."""
    tool_timeouts: Mapping[str, float] = field(default_factory=FrozenDictionary)
    """Seconds for a call of single tools."""
    connect_timeout: float = 30.0
    """Seconds until the server must be ready."""
    reconnect_attempts: int = 3
    """How often a lost connection is tried again by itself."""
    result_limit: int = 16_777_216
    """Bytes of a result that are taken into memory; what is over it goes into a file."""
    replay_tools: tuple[str, ...] = ()
    """Tools that may be called again when the outcome of a call is unknown; may hold patterns."""
    tool_prefix: str | None = None
    """None: the name of the server. Empty: no prefix."""
    tool_names: ToolNames = "prefix"
    """`{prefix}_{tool}`, or `mcp__{server}__{tool}`."""
    enabled_tools: tuple[str, ...] | None = None
    """None: all of them. May hold glob patterns."""
    disabled_tools: tuple[str, ...] = ()
    """Applied after `enabled_tools`."""
    description: str = ""
    scope: Scope = "application"
    origin: Path | None = None
    """The file that gave this server."""

    def __post_init__(self) -> None:
        _refuse(self.name, self._find_problems())
        tools = self.enabled_tools
        for key, value in (
            ("command", (self.command,) if isinstance(self.command, str) else tuple(self.command)),
            ("environment", freeze(self.environment)),
            ("headers", freeze(self.headers)),
            ("enabled_tools", None if tools is None else tuple(tools)),
            ("disabled_tools", tuple(self.disabled_tools)),
            ("tool_timeouts", freeze(self.tool_timeouts)),
            ("replay_tools", tuple(self.replay_tools)),
        ):
            object.__setattr__(self, key, value)

    def _find_problems(self) -> list[Problem]:
        problems = check_name(self.name)
        present: list[str] = []
        for spec in fields(self):
            value = getattr(self, spec.name)
            if spec.name in CHECKS and value is not spec.default:
                problems.extend(check_field(spec.name, value))
                if not (isinstance(value, (Mapping, tuple, list)) and not value):
                    present.append(spec.name)
        return problems or check_combination(self.transport, present)

    def __repr__(self) -> str:
        reach = {"stdio": self._show_program, "in-process": self._show_server}
        target = reach.get(self.transport, self._show_url)()
        state = "" if self.enabled else ", disabled"
        return f"<MCPServer {self.name}: {self.transport} {target}, {self.scope}{state}>"

    def describe(self) -> dict[str, Any]:
        """All that may be shown or logged, as JSON data; values that may be secret are hidden.

        The command is shown whole, since people must see what they approve: secrets belong
        into `environment`, or into references.
        """
        shown = {spec.name: getattr(self, spec.name) for spec in fields(self)}
        shown["command"] = list(self.command)
        shown["environment"] = dict.fromkeys(self.environment, HIDDEN)
        shown["headers"] = dict.fromkeys(self.headers, HIDDEN)
        shown["url"] = None if self.url is None else self._show_url()
        shown["server"] = None if self.server is None else self._show_server()
        shown["enabled_tools"] = None if self.enabled_tools is None else list(self.enabled_tools)
        shown["disabled_tools"] = list(self.disabled_tools)
        shown["replay_tools"] = list(self.replay_tools)
        shown["tool_timeouts"] = dict(self.tool_timeouts)
        shown["origin"] = None if self.origin is None else str(self.origin)
        return shown

    def _show_program(self) -> str:
        # Arguments are left out: a representation ends up in logs, and people do put tokens there.
        program = next(iter(self.command), "")
        more = f" ({len(self.command) - 1} arguments)" if len(self.command) > 1 else ""
        return f"{printable(hide_references(program))}{more}"

    def _show_server(self) -> str:
        return self.server if isinstance(self.server, str) else type(self.server).__name__

    def _show_url(self) -> str:
        return show_url(self.url or "")

    @classmethod
    def stdio(
        cls,
        name: str,
        command: str | Sequence[str],
        args: Sequence[str] = (),
        *,
        environment: Mapping[str, str] = EMPTY,
        cwd: str | Path | None = None,
        **settings: Unpack[ServerSettings],
    ) -> MCPServer:
        """A server that is a program of its own, spoken to over its standard streams."""
        problems = [*check_field("command", command), *check_field("args", args)]
        _refuse(name, problems or ([] if args else check_program(command)))
        program = (command,) if isinstance(command, str) else tuple(command)
        return cls(
            name=name,
            transport="stdio",
            command=(*program, *args),
            environment=environment,
            cwd=None if cwd is None else str(cwd),
            **_settle(settings),
        )

    @classmethod
    def npm(
        cls,
        name: str,
        package: str,
        args: Sequence[str] = (),
        *,
        environment: Mapping[str, str] = EMPTY,
        cwd: str | Path | None = None,
        **settings: Unpack[ServerSettings],
    ) -> MCPServer:
        """A server that `npx` fetches from npm and runs."""
        command = ("npx", "-y", package)
        return cls.stdio(name, command, args, environment=environment, cwd=cwd, **settings)

    @classmethod
    def uvx(
        cls,
        name: str,
        package: str,
        args: Sequence[str] = (),
        *,
        environment: Mapping[str, str] = EMPTY,
        cwd: str | Path | None = None,
        **settings: Unpack[ServerSettings],
    ) -> MCPServer:
        """A server that `uvx` fetches from PyPI and runs."""
        command = ("uvx", package)
        return cls.stdio(name, command, args, environment=environment, cwd=cwd, **settings)

    @classmethod
    def http(
        cls,
        name: str,
        url: str,
        *,
        headers: Mapping[str, str] = EMPTY,
        **settings: Unpack[ServerSettings],
    ) -> MCPServer:
        """A server behind a URL, over streamable HTTP."""
        return cls(name=name, transport="http", url=url, headers=headers, **_settle(settings))

    @classmethod
    def sse(
        cls,
        name: str,
        url: str,
        *,
        headers: Mapping[str, str] = EMPTY,
        **settings: Unpack[ServerSettings],
    ) -> MCPServer:
        """A server behind a URL, over the older transport of server-sent events."""
        return cls(name=name, transport="sse", url=url, headers=headers, **_settle(settings))

    @classmethod
    def in_process(cls, name: str, server: object, **settings: Unpack[ServerSettings]) -> MCPServer:
        """A server object in this very process, or the import path of one."""
        return cls(name=name, transport="in-process", server=server, **_settle(settings))


def _settle(settings: ServerSettings) -> dict[str, Any]:
    return {**settings}


def _refuse(name: Any, problems: list[Problem]) -> None:
    if problems:
        title = name if isinstance(name, str) else "?"
        placed = place_problems((problem.under(("mcp", title)) for problem in problems), lines={})
        raise create_failure(placed)
