# SPDX-License-Identifier: Apache-2.0
"""`converser servers add|remove|enable|disable`: edits of `converser.toml` that keep its comments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from ..configuration import find_sources, find_user_file
from ..configuration.discovery import FILE_NAME
from ..configuration.mistakes import nearest, printable
from ..configuration.references import has_reference
from ..exceptions import ConfigurationFailure
from .documents import Document
from .judging import Misuse
from .options import ServerName
from .screen import complain


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Place:
    """Which file is edited."""

    user: Annotated[
        bool, Parameter(negative=(), help="Edit your own file, which holds for all projects.")
    ] = False
    config: Annotated[Path | None, Parameter(help="Edit this file.")] = None

    def open(self) -> Document:
        """The file that was meant, which may not be there yet."""
        return Document(self._list_files()[0])

    def find(self, name: str) -> Document:
        """The file that holds a server: the project's, else the user's."""
        documents = [Document(path) for path in self._list_files()]
        for document in documents:
            if name in document.servers:
                return document
        known = [each for document in documents for each in document.servers]
        files = ", ".join(printable(str(document.path)) for document in documents)
        guess = nearest(name, known)
        raise ConfigurationFailure(
            f"No server {name!r} is in {files}.",
            remedy=f"Did you mean {guess!r}?" if guess else f"Known: {', '.join(known) or 'none'}.",
        )

    def _list_files(self) -> list[Path]:
        if self.config is not None:
            return [self.config.expanduser().absolute()]
        if self.user:
            return [find_user_file()]
        sources = [source.path for source in find_sources(Path.cwd())]
        projects = [path for path in sources if path != find_user_file()]
        return [*(projects or [Path.cwd() / FILE_NAME]), find_user_file()]


HERE = Place()


def add(
    name: str,
    /,
    *command: str,
    url: Annotated[str | None, Parameter(help="For a remote server: its address.")] = None,
    header: Annotated[
        tuple[str, ...], Parameter(help="NAME=VALUE; a secret as NAME=env:VARIABLE.")
    ] = (),
    env: Annotated[
        tuple[str, ...], Parameter(help="NAME=VALUE; a secret as NAME=env:VARIABLE.")
    ] = (),
    cwd: Annotated[str | None, Parameter(help="The folder to run the command in.")] = None,
    sse: Annotated[
        bool, Parameter(negative=(), help="The address speaks the older transport.")
    ] = False,
    force: Annotated[
        bool, Parameter(negative=(), help="Write over a server of that name.")
    ] = False,
    place: Place = HERE,
) -> None:
    """Adds a server to converser.toml: `converser servers add time -- uvx mcp-server-time`.

    Parameters
    ----------
    name
        What it is called from now on: small letters, digits, - and _.
    command
        After --, the program and its arguments.
    """
    if bool(command) is (url is not None):
        raise Misuse(
            "A server is either a command or an address.",
            remedy="Write: converser servers add NAME -- COMMAND…, or: … add NAME --url URL",
        )
    settings: dict[str, Any] = {
        "transport": "sse" if sse else None,
        "command": list(command),
        "cwd": cwd,
        "environment": _read_pairs(env, "--env"),
        "url": url,
        "headers": _read_pairs(header, "--header"),
    }
    document = place.open()
    if name in document.servers and not force:
        raise Misuse(
            f"{printable(str(document.path))} has a server {name!r} already.",
            remedy="Choose another name, or write over it with --force.",
        )
    document.put(name, {key: value for key, value in settings.items() if value})
    document.save()
    complain(f"Added {name} to {printable(str(document.path))}.", style="green")


def _read_pairs(words: Sequence[str], option: str) -> dict[str, str]:
    pairs = [word.partition("=") for word in words]
    for key, separator, value in pairs:
        if not separator:
            raise Misuse(f"What follows {option} is no NAME=VALUE.")
        if not has_reference(value):
            complain(f"{option} {key}: the value is written into the file as it is.")
    return {key: value for key, _, value in pairs}


def remove(name: ServerName, /, *, place: Place = HERE) -> None:
    """Removes a server from the file that holds it.

    Parameters
    ----------
    name
        Its name in converser.toml.
    """
    document = place.find(name)
    document.remove(name)
    document.save()
    complain(f"Removed {name} from {printable(str(document.path))}.", style="green")


def enable(name: ServerName, /, *, place: Place = HERE) -> None:
    """Has a server used again.

    Parameters
    ----------
    name
        Its name in converser.toml.
    """
    _switch(name, True, place)


def disable(name: ServerName, /, *, place: Place = HERE) -> None:
    """Keeps a server in the file, but does not use it.

    Parameters
    ----------
    name
        Its name in converser.toml.
    """
    _switch(name, False, place)


def _switch(name: str, enabled: bool, place: Place) -> None:
    document = place.find(name)
    word = "enabled" if enabled else "disabled"
    if document.servers[name].get("enabled", True) is not enabled:
        document.set(name, "enabled", enabled)
        document.save()
    complain(f"{name} is {word} in {printable(str(document.path))}.", style="green")
