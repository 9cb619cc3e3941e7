# SPDX-License-Identifier: Apache-2.0
"""The options that commands share, and the configuration behind them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ..configuration import Configuration, MCPServer, load_configuration
from ..configuration.mistakes import nearest
from ..exceptions import ConfigurationFailure
from .completing import complete_servers, offer
from .screen import complain
from .trust import check_trust

ServerName = Annotated[str, offer(complete_servers)]
AsJSON = Annotated[bool, Parameter(name="--json", negative=(), help="Write JSON, for programs.")]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Options:
    """What every command that reads the configuration takes."""

    config: Annotated[
        Path | None,
        Parameter(help="Read this file. Else: converser.toml here or in a parent, and the user's."),
    ] = None

    trust: Annotated[
        bool,
        Parameter(negative=(), help="Obey the project's file in this run without being asked."),
    ] = False

    def load(self) -> Configuration:
        """Reads the configuration, if the user approves what it would do; the way for all commands."""
        configuration = self.read()
        check_trust(configuration, given=self.trust)
        return configuration

    def read(self) -> Configuration:
        """Reads the configuration, and tells what is odd about it; none of it may be obeyed yet."""
        path = self.config
        configuration = load_configuration() if path is None else load_configuration(path)
        for words in configuration.remarks:
            complain(words)
        return configuration


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class TalkOptions(Options):
    """Which model, which servers, and what may be done without asking."""

    model: Annotated[
        str | None,
        Parameter(
            alias="-m",
            help="Such as anthropic:claude-sonnet-5, ollama:qwen3 or embedded. Else: the one of"
            " [model] in converser.toml, or what is at hand on this machine.",
        ),
    ] = None
    server: Annotated[
        tuple[str, ...],
        Parameter(
            alias="-s",
            negative=(),
            help="Use only this server of converser.toml; may be given again.",
        ),
    ] = ()
    no_tools: Annotated[bool, Parameter(negative=(), help="Use no servers at all.")] = False
    yes: Annotated[
        bool,
        Parameter(
            alias="-y",
            negative=(),
            help="Approve every call, and the download of the embedded model.",
        ),
    ] = False
    allow: Annotated[
        tuple[str, ...],
        Parameter(
            negative=(),
            help="Approve calls of tools like this, as in files.read_* or weather.*; may be given"
            " again. Tools that say that they only read need no approval.",
        ),
    ] = ()


DEFAULTS = Options()
TALK_DEFAULTS = TalkOptions()


def find_server(configuration: Configuration, name: str) -> MCPServer:
    """A server by its name; a name that is not there is told with those that are."""
    if (server := configuration.servers.get(name)) is not None:
        return server
    known = ", ".join(configuration.servers) or "none"
    files = ", ".join(str(source.path) for source in configuration.files)
    guess = nearest(name, configuration.servers)
    add = f"Add [mcp.{name}] to {files or 'converser.toml'}."
    raise ConfigurationFailure(
        f"No server {name!r} is configured; known: {known}.",
        remedy=f"Did you mean {guess!r}? Or {add[0].lower()}{add[1:]}" if guess else add,
    )
