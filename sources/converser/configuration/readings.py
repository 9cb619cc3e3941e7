# SPDX-License-Identifier: Apache-2.0
"""What one file gave: its servers, its other tables, remarks and mistakes; and how a table becomes a server."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from converser.immutables import FrozenDictionary

from .checks import CHECKS, check_combination, check_field, check_program
from .kinds import is_table, name_kind
from .mistakes import Mistake, Problem, nearest
from .servers import MCPServer, Scope

SERVER_KEYS = tuple(key for key in CHECKS if key != "scope")
"""What the table of a server may hold."""

_ALIASES = {
    "arguments": "args",
    "directory": "cwd",
    "disabled": "enabled",
    "env": "environment",
    "prefix": "tool_prefix",
    "type": "transport",
    "working_directory": "cwd",
}
_TRANSPORT_CLUES = {"command": "stdio", "url": "http", "server": "in-process"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The file that is read."""

    path: Path
    scope: Scope
    digest: str = ""
    """A hash over the bytes that were read, once they were."""
    tables: Mapping[str, Any] = field(default_factory=FrozenDictionary, repr=False)
    """The tables of this file alone that are not of servers; may hold secrets."""


def hash_content(content: bytes) -> str:
    """The hash by which the content of a file is known."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Reading:
    """All that one file gave."""

    source: Source
    servers: Mapping[str, MCPServer] = field(default_factory=FrozenDictionary)
    tables: Mapping[str, Any] = field(default_factory=FrozenDictionary)
    remarks: tuple[str, ...] = ()
    mistakes: tuple[Mistake, ...] = ()


def build_server(name: str, table: Any, source: Source) -> MCPServer | list[Problem]:
    """A server from its table, or all that is wrong with the table, seen from the table."""
    if not is_table(table):
        return [
            Problem((), f"expected a table with the settings of a server, not {name_kind(table)}.")
        ]
    settings = dict(table)
    problems: list[Problem] = []
    for key, value in settings.items():
        if key in SERVER_KEYS:
            problems.extend(check_field(key, value))
        else:
            problems.append(Problem((key,), "unknown key.", nearest(key, SERVER_KEYS, _ALIASES)))
    if not isinstance(settings.get("server", ""), str):
        problems.append(Problem(("server",), "expected text with an import path."))
    problems.extend(_check_together(settings, problems, source.path.parent))
    if problems:
        return problems
    return _create(name, settings, source)


def _check_together(
    settings: Mapping[str, Any], problems: list[Problem], folder: Path
) -> list[Problem]:
    """What does not go together; silent where a misspelt key already says it."""
    transport = settings.get("transport", _guess_transport(settings))
    if transport is None:
        if problems:
            return []
        choices = '"command" (stdio), "url" (http) or "server" (in-process)'
        return [
            Problem((), f'has no transport. Give it one of the keys {choices}, or "transport".')
        ]
    faulty = {problem.where[:1] for problem in problems}
    found: list[Problem] = []
    if ("transport",) not in faulty:
        meant = {problem.suggestion for problem in problems}
        found = [
            problem
            for problem in check_combination(transport, {*settings, *meant})
            if not problem.where or problem.where[0] in settings
        ]
    if "args" in settings and not isinstance(settings.get("command"), (str, list)):
        found.append(Problem(("args",), 'belongs to "command", which is not there.'))
    elif ("command",) not in faulty and not settings.get("args"):
        found.extend(check_program(settings.get("command"), folder=folder))
    return [problem for problem in found if not problem.where or problem.where[:1] not in faulty]


def _guess_transport(settings: Mapping[str, Any]) -> str | None:
    return next((kind for key, kind in _TRANSPORT_CLUES.items() if key in settings), None)


def _create(name: str, settings: dict[str, Any], source: Source) -> MCPServer:
    settings = {"transport": _guess_transport(settings), **settings}
    command = settings.pop("command", ())
    command = (command,) if isinstance(command, str) else command
    settings["command"] = (*command, *settings.pop("args", ()))
    return MCPServer(name=name, scope=source.scope, origin=source.path, **settings)
