# SPDX-License-Identifier: Apache-2.0
"""`converser servers import`: takes over the servers of Claude Desktop, Claude Code, Cursor and VS Code."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from ..configuration import MCPServer
from ..configuration.mistakes import printable
from ..configuration.readings import Reading
from ..configuration.references import has_reference
from ..configuration.translations import suggest_variable
from ..exceptions import ConfigurationFailure
from .conversing.terminals import is_interactive
from .documents import Document
from .editing import HERE, Place
from .hosts import list_places, read_host_file
from .judging import Distrust
from .screen import complain, confirm, count
from .trust import describe_server, is_given


def import_(
    *paths: Path,
    values: Annotated[
        bool | None,
        Parameter(
            negative="--no-values",
            help="Write the values of variables and headers as they are; or write env:NAME, and"
            " set the variables yourself. At a terminal you are asked.",
        ),
    ] = None,
    force: Annotated[
        bool, Parameter(negative=(), help="Write over servers of the same name.")
    ] = False,
    trust: Annotated[
        bool, Parameter(negative=(), help="Approve what these servers do without being asked.")
    ] = False,
    place: Place = HERE,
) -> None:
    """Takes over the servers of Claude Desktop, Claude Code, Cursor and VS Code.

    Parameters
    ----------
    paths
        Their files; if none is named, they are looked for where these programs keep them.
    """
    document = place.open()
    found = _choose(_read(paths), document, force=force)
    if not found:
        complain("There is nothing to take over.")
        return
    approved = _ask(found, document, given=trust)
    texts = _find_plain_texts(found)
    is_plain = _decide(texts, document.path, values)
    if is_plain:
        texts = {key: text for key, text in texts.items() if text.is_set}
    for server in found:
        document.put(server.name, _dump(server, texts))
    document.save(private=is_plain, approved=approved)
    names = ", ".join(server.name for server in found)
    complain(f"Added to {printable(str(document.path))}: {names}.", style="green")


def _ask(servers: Sequence[MCPServer], document: Document, *, given: bool) -> bool:
    """Shows what these servers would do, since a project's file may be among those that were found.

    Where nobody can be asked, the project's file is edited, but not approved; and the user's own
    file, which needs no approval, is not edited.
    """
    complain("These servers want to:")
    for server in servers:
        complain(f"  {describe_server(server)}", style="bold")
    if is_given(given):
        return True
    if is_interactive():
        if confirm(f"Add them to {printable(str(document.path))}?"):
            return True
        raise Distrust("Nothing was added.")
    if document.is_users:
        raise Distrust(
            "Nothing was added: here is no terminal to ask whether these servers may be used.",
            remedy="Approve them with --trust, once you have read what they do.",
        )
    return False


def _read(paths: Sequence[Path]) -> list[Reading]:
    """The files that were named, which must be good, or those that are found, if they are."""
    folder = Path.cwd()
    if paths:
        return [read_host_file(path.expanduser().absolute(), folder) for path in paths]
    readings: list[Reading] = []
    for host, path in list_places(folder):
        if not path.is_file():
            continue
        try:
            reading = read_host_file(path, folder)
        except ConfigurationFailure as failure:
            complain(failure)
            continue
        number = count(len(reading.servers), "server")
        complain(f"{host}: {number} in {printable(str(path))}", style="dim")
        readings.append(reading)
    return readings


def _choose(readings: Sequence[Reading], document: Document, *, force: bool) -> list[MCPServer]:
    """The servers that are new; of two with one name the first counts, and the other is told."""
    chosen: dict[str, MCPServer] = {}
    for reading in readings:
        for words in reading.remarks:
            complain(words)
        source = printable(str(reading.source.path))
        for name, server in reading.servers.items():
            if name in chosen:
                complain(f"{name} of {source} is left out: another file has one of that name.")
            elif name in document.servers and not force:
                complain(f"{name} of {source} is left out: it is there already (--force).")
            else:
                chosen[name] = server
    return list(chosen.values())


@dataclass(frozen=True)
class _PlainText:
    """The value of a variable or header that stands in the file itself, and may be a secret."""

    name: str
    variable: str
    is_set: bool
    """Whether the variable has just that value here."""


_PlainTexts = Mapping[tuple[str, str], _PlainText]


def _find_plain_texts(servers: Sequence[MCPServer]) -> dict[tuple[str, str], _PlainText]:
    """By server and name of the variable or header."""
    found: dict[tuple[str, str], _PlainText] = {}
    for server in servers:
        for name, value in (*server.environment.items(), *server.headers.items()):
            if has_reference(value):
                continue
            variable = name if name in server.environment else f"{server.name} {name}"
            variable = variable if variable.isidentifier() else suggest_variable(variable)
            found[server.name, name] = _PlainText(
                name=f"{server.name}: {name}",
                variable=variable,
                is_set=os.environ.get(variable) == value,
            )
    return found


def _decide(texts: _PlainTexts, target: Path, values: bool | None) -> bool:
    """Whether values are written as they are; those that the environment has too never need to be."""
    unset = [text for text in texts.values() if not text.is_set]
    if not unset:
        return False
    names = printable(", ".join(text.name for text in unset))
    complain(f"These values, which may be secrets, stand in the files themselves: {names}.")
    if values is None and is_interactive():
        values = confirm(f"Write them into {printable(str(target))} as they are?")
    if not values:
        variables = ", ".join(dict.fromkeys(text.variable for text in unset))
        complain(f"They are not written (--values does that). Set the variables: {variables}.")
    return bool(values)


def _dump(server: MCPServer, texts: _PlainTexts) -> dict[str, Any]:
    """The table of a server, with references in the place of these texts."""

    def settle(values: Mapping[str, str]) -> dict[str, str]:
        return {
            name: f"env:{texts[server.name, name].variable}"
            if (server.name, name) in texts
            else value
            for name, value in values.items()
        }

    settings: dict[str, Any] = {
        "transport": "sse" if server.transport == "sse" else None,
        "command": list(server.command),
        "cwd": _anchor(server),
        "environment": settle(server.environment),
        "url": server.url,
        "headers": settle(server.headers),
        "description": server.description,
    }
    kept = {key: value for key, value in settings.items() if value}
    return kept if server.enabled else {**kept, "enabled": False}


def _anchor(server: MCPServer) -> str | None:
    """The folder to run in, which was relative to another file."""
    if server.cwd is None or server.origin is None or has_reference(server.cwd):
        return server.cwd
    return str(server.origin.parent / Path(server.cwd).expanduser())
