# SPDX-License-Identifier: Apache-2.0
"""Finds the configuration of a project and of its user, and puts the two together."""

from __future__ import annotations

import os.path
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from absence import Absential, absent, is_absent

from converser.immutables import FrozenDictionary, freeze

from .foreign import read_foreign
from .mistakes import Mistake, create_failure, printable
from .readings import Reading, Source, hash_content
from .servers import MCPServer
from .toml import read_toml

FILE_NAME = "converser.toml"
_SIZE_LIMIT = 16_777_216


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """All servers that are known, and which files they came from."""

    servers: Mapping[str, MCPServer] = field(default_factory=FrozenDictionary)
    files: tuple[Source, ...] = ()
    """The files that were read, the one that wins first."""
    tables: Mapping[str, Any] = field(default_factory=FrozenDictionary, repr=False)
    """The other tables, as they are in the files; may hold secrets."""
    remarks: tuple[str, ...] = ()
    """What people may want to know, though it is no mistake."""


def load_configuration(
    path: Absential[str | Path] = absent, *, start: Absential[str | Path] = absent
) -> Configuration:
    """Reads one file, or, with no path, the project's `converser.toml` and the user's.

    The project's is the nearest one in the folder `start` (the working directory, if not given)
    and its parents; it wins over the user's. All mistakes of all files are told at once.
    """
    if is_absent(path):
        sources = find_sources(Path.cwd() if is_absent(start) else Path(start))
    else:
        sources = (_identify(Path(path)),)
    readings = [_read(source) for source in sources]
    mistakes = [mistake for reading in readings for mistake in reading.mistakes]
    if mistakes:
        raise create_failure(mistakes)
    return _merge(readings)


def find_sources(start: Path) -> tuple[Source, ...]:
    """The files that hold for a folder, the one that wins first."""
    user = find_user_file()
    start = start.absolute()
    found: list[Source] = []
    for folder in (start, *start.parents):
        candidate = folder / FILE_NAME
        if _is_file(candidate):
            if not _is_same(candidate, user):
                found.append(Source(path=candidate, scope="project"))
            break
    if _is_file(user):
        found.append(Source(path=user, scope="user"))
    return tuple(found)


def find_user_file() -> Path:
    """Where the user's own configuration is, if there is any."""
    from platformdirs import user_config_path

    return user_config_path("converser", appauthor=False) / FILE_NAME


def _identify(path: Path) -> Source:
    path = path.expanduser().absolute()
    return Source(path=path, scope="user" if _is_same(path, find_user_file()) else "project")


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # A parent that may not be looked into.
        return False


def _is_same(one: Path, other: Path) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def _read(source: Source) -> Reading:
    try:
        with source.path.open("rb") as stream:
            data = stream.read(_SIZE_LIMIT + 1)
    except OSError as failure:
        reason = failure.strerror or type(failure).__name__
        return _refuse(
            source, f"the file cannot be read: {reason}. Correct the path, or its permissions."
        )
    if len(data) > _SIZE_LIMIT:
        return _refuse(source, "the file is larger than 16 mebibytes.")
    source = replace(source, digest=hash_content(data))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as failure:
        line = data.count(b"\n", 0, failure.start) + 1
        return _refuse(source, "this is not text in UTF-8.", line)
    # No TOML begins with one of these, and all JSON of other hosts does.
    is_json = text.lstrip().startswith(("{", "[{", "//", "/*")) or source.path.suffix == ".json"
    return read_foreign(text, source) if is_json else read_toml(text, source)


def _refuse(source: Source, message: str, line: int | None = None) -> Reading:
    mistake = Mistake(key="", message=message, path=source.path, line=line)
    return Reading(source=source, mistakes=(mistake,))


def _merge(readings: Sequence[Reading]) -> Configuration:
    """Puts files together, the first one winning: whole servers, and single keys of other tables."""
    servers: dict[str, MCPServer] = {}
    tables: dict[str, dict[str, Any]] = {}
    remarks: list[str] = []
    for reading in readings:
        remarks.extend(reading.remarks)
        for name, server in reading.servers.items():
            if name in servers:
                winner, loser = servers[name].origin, reading.source.path
                remarks.append(printable(f"{loser}: mcp.{name} gives way to the one in {winner}."))
            servers.setdefault(name, server)
        for key, table in reading.tables.items():
            tables[key] = {**cast("dict[str, Any]", table), **tables.get(key, {})}
    return Configuration(
        servers=FrozenDictionary(servers),
        files=tuple(replace(reading.source, tables=reading.tables) for reading in readings),
        tables=freeze(tables),
        remarks=tuple(remarks),
    )
