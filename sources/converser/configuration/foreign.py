# SPDX-License-Identifier: Apache-2.0
"""Reads what other hosts keep: `mcpServers` (Claude, Cursor) and `servers` (VS Code) in JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .jsonc import Fault, locate_json_keys, read_json
from .kinds import is_list, is_table, name_kind
from .mistakes import (
    KeyPath,
    Mistake,
    Problem,
    nearest,
    place_problems,
    printable,
    render_key,
)
from .names import NAME_PATTERN, normalise_name
from .readings import Reading, Source, build_server
from .servers import MCPServer
from .translations import translate

_PLACES: tuple[tuple[str, ...], ...] = (("mcpServers",), ("servers",), ("mcp", "servers"))
_KEYS = {
    "type": "transport",
    "transport": "transport",
    "command": "command",
    "args": "args",
    "env": "environment",
    "cwd": "cwd",
    "url": "url",
    "serverUrl": "url",
    "headers": "headers",
    "description": "description",
    "disabled": "enabled",
    "enabled": "enabled",
}
_ALIASES = {
    "arguments": "args",
    "cmd": "command",
    "env_vars": "env",
    "environment": "env",
    "envvars": "env",
    "working_directory": "cwd",
    "workingdirectory": "cwd",
}
_TRANSPORTS = {"streamable-http": "http", "streamablehttp": "http", "streamable_http": "http"}
_UNUSED_KEYS = {
    "envFile": 'put its variables into "env"',
    "timeout": "hosts disagree about its unit",
}


def read_foreign(text: str, source: Source) -> Reading:
    """Servers of one file of another host, and all mistakes in it."""
    data = read_json(text)
    if isinstance(data, Fault):
        mistake = Mistake(key="", message=data.message, path=source.path, line=data.line)
        return Reading(source=source, mistakes=(mistake,))
    place, tables = _find_servers(data)
    lines, doubled = locate_json_keys(text)
    if not is_table(tables):
        mistakes = place_problems([_explain_lack(data, place)], path=source.path, lines=lines)
        return Reading(source=source, mistakes=mistakes)
    reader = _Reader(source, place, lines)
    for name, table in tables.items():
        reader.read_server(name, table)
    reader.problems.extend(
        Problem(key, "is there more than once. Keep one of them.")
        for key in doubled
        if key[: len(place)] == place and key[:-1] not in doubled
    )
    return Reading(
        source=source,
        servers=reader.servers,
        remarks=tuple(reader.remarks),
        mistakes=place_problems(reader.problems, path=source.path, lines=lines),
    )


def _find_servers(data: Any) -> tuple[KeyPath, Any]:
    for place in _PLACES:
        found = data
        for key in place:
            found = found.get(key) if is_table(found) else None
        if found is not None:
            return place, found
    return (), None


def _explain_lack(data: Any, place: KeyPath) -> Problem:
    """Why there are no servers: perhaps their key is misspelt."""
    for key in data if is_table(data) and not place else ():
        for meant in ("mcpServers", "servers"):
            if _are_near(key.lower(), meant.lower()):
                return Problem((key,), "unknown key.", meant)
    return Problem(place, 'expected an object with servers under "mcpServers" or "servers".')


class _Reader:
    """Takes one server after the other, and gathers what is to be said about them."""

    def __init__(self, source: Source, place: KeyPath, lines: Mapping[KeyPath, int]) -> None:
        self.servers: dict[str, MCPServer] = {}
        self.problems: list[Problem] = []
        self.remarks: list[str] = []
        self._source = source
        self._place = place
        self._lines = lines

    def read_server(self, title: str, table: Any) -> None:
        where = (*self._place, title)
        name = title if NAME_PATTERN.fullmatch(title) else normalise_name(title)
        if name != title:
            self._remark(where, f'is called "{name}" here.')
        if name in self.servers:
            message = f'would be called "{name}", as another server is. Rename one of them.'
            self.problems.append(Problem(where, message))
        if not is_table(table):
            message = f"expected an object with the settings of a server, not {name_kind(table)}."
            self.problems.append(Problem(where, message))
            return
        misspelt = [problem for key in table if (problem := _find_misspelling(key)) is not None]
        self.problems.extend(problem.under(where) for problem in misspelt)
        settings, origins = self._convert(where, table)
        server = build_server(name, settings, self._source)
        if isinstance(server, MCPServer):
            self.servers.setdefault(name, server)
            return
        # What is missing is probably there, under the misspelt key.
        problems = [problem for problem in server if problem.where or not misspelt]
        self.problems.extend(_rename(problem, origins).under(where) for problem in problems)

    def _convert(
        self, where: KeyPath, table: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, str]]:
        """Settings in our words, and which key of the file each of them came from."""
        settings: dict[str, Any] = {}
        origins: dict[str, str] = {}
        for key, value in table.items():
            if key not in _KEYS:
                if _find_misspelling(key) is None:
                    self._remark_unused((*where, key))
                continue
            origins[_KEYS[key]] = key
            settings[_KEYS[key]] = self._convert_value((*where, key), key, value)
        return settings, origins

    def _convert_value(self, where: KeyPath, key: str, value: Any) -> Any:
        if key in ("type", "transport") and isinstance(value, str):
            return _TRANSPORTS.get(value.lower(), value)
        if key == "disabled" and isinstance(value, bool):
            return not value
        if key == "env" and is_table(value):
            value = self._convert_variables(where, value)
        return value if key == "description" else self._translate(where, value, key)

    def _convert_variables(self, where: KeyPath, table: Mapping[str, Any]) -> dict[str, Any]:
        """VS Code allows numbers, which a process gets as text, and null, which means absence."""
        texts: dict[str, Any] = {}
        for name, value in table.items():
            if value is None:
                self._remark((*where, name), "is null, and left out.")
                continue
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            texts[name] = str(value) if number else value
        return texts

    def _translate(self, where: KeyPath, value: Any, key: str) -> Any:
        if is_table(value):
            pairs = value.items()
            return {name: self._translate((*where, name), item, key) for name, item in pairs}
        if is_list(value):
            items = enumerate(value)
            return [self._translate((*where, place), item, key) for place, item in items]
        if not isinstance(value, str):
            return value
        complaints: list[str] = []
        text = translate(
            value,
            path=self._source.path,
            complaints=complaints,
            whole_counts=key not in ("command", "args"),
        )
        self.problems.extend(Problem(where, complaint) for complaint in complaints)
        return text

    def _remark_unused(self, where: KeyPath) -> None:
        reason = _UNUSED_KEYS.get(str(where[-1]), "")
        self._remark(where, f"is not used here{': ' if reason else ''}{reason}.")

    def _remark(self, where: KeyPath, text: str) -> None:
        place = f"{printable(str(self._source.path))}:{self._lines.get(where, 1)}"
        self.remarks.append(f"{place}: {render_key(where)} {text}")


def _find_misspelling(key: str) -> Problem | None:
    """A key that is nearly one of ours; others may be what another host wants to know."""
    if key in _KEYS or key in _UNUSED_KEYS:
        return None
    meant = _ALIASES.get(key.lower()) or nearest(key, _KEYS)
    is_near = meant and (key.lower() in _ALIASES or _are_near(key.lower(), meant.lower()))
    return Problem((key,), "unknown key.", meant) if is_near else None


def _are_near(one: str, other: str) -> bool:
    """Whether one text becomes the other by one letter more, less or other, or two exchanged."""
    if abs(len(one) - len(other)) > 1:
        return False
    start = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), None)
    if start is None:
        return True
    rest, left = one[start:], other[start:]
    exchanged = rest[:2] == left[1::-1] and rest[2:] == left[2:]
    return exchanged or rest[1:] == left[1:] or rest[1:] == left or rest == left[1:]


def _rename(problem: Problem, origins: dict[str, str]) -> Problem:
    """The same problem, at the key that the file has for it."""
    if not problem.where:
        return problem
    first = str(problem.where[0])
    return problem._replace(where=(origins.get(first, first), *problem.where[1:]))
