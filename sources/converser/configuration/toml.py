# SPDX-License-Identifier: Apache-2.0
"""Reads `converser.toml`: the servers in `[mcp.NAME]`, and other tables as they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from converser.immutables import freeze

from .kinds import is_table, name_kind
from .locators import locate_keys
from .mistakes import Mistake, Problem, nearest, place_problems
from .names import check_name
from .readings import Reading, Source, build_server
from .servers import MCPServer

OTHER_TABLES = ("model", "provider")
"""Tables that are kept for the rooms that understand them."""

_TOP_ALIASES = {"mcpservers": "mcp", "servers": "mcp", "models": "model", "providers": "provider"}


def read_toml(text: str, source: Source) -> Reading:
    """Servers and tables of one file, and all mistakes in it."""
    data = _parse(text, source)
    if isinstance(data, Mistake):
        return Reading(source=source, mistakes=(data,))
    problems: list[Problem] = []
    tables: dict[str, Any] = {}
    servers: dict[str, MCPServer] = {}
    for key, value in data.items():
        if key != "mcp" and key not in OTHER_TABLES:
            suggestion = nearest(key, ("mcp", *OTHER_TABLES), _TOP_ALIASES)
            problems.append(Problem((key,), "unknown key at the top of the file.", suggestion))
        elif not is_table(value):
            problems.append(Problem((key,), f"expected a table, not {name_kind(value)}."))
        elif key == "mcp":
            servers, faults = _read_servers(value, source)
            problems.extend(problem.under(("mcp",)) for problem in faults)
        else:
            tables[key] = value
    lines = locate_keys(text) if problems else {}
    return Reading(
        source=source,
        servers=servers,
        tables=freeze(tables),
        mistakes=place_problems(problems, path=source.path, lines=lines),
    )


def _read_servers(
    tables: Mapping[str, Any], source: Source
) -> tuple[dict[str, MCPServer], list[Problem]]:
    servers: dict[str, MCPServer] = {}
    problems: list[Problem] = []
    for name, table in tables.items():
        faults = check_name(name)
        # A valid name stands in for a bad one, so that the rest of the table is looked at too.
        server = build_server("unnamed" if faults else name, table, source)
        if isinstance(server, MCPServer):
            servers[name] = server
        else:
            faults.extend(server)
        problems.extend(problem.under((name,)) for problem in faults)
    return servers, problems


def _parse(text: str, source: Source) -> dict[str, Any] | Mistake:
    import tomli

    # What tomli raises holds the whole text, so it is not kept as the cause of anything.
    try:
        return tomli.loads(text)
    except tomli.TOMLDecodeError as failure:
        last = text.rstrip("\n").count("\n") + 1
        return _tell_syntax(source, failure.msg, min(failure.lineno, last))
    except RecursionError:
        return _tell_syntax(source, "lists or tables are nested too deeply", None)
    except ValueError:
        return _tell_syntax(source, "a number has too many digits", None)


def _tell_syntax(source: Source, reason: str, line: int | None) -> Mistake:
    message = f"this is not valid TOML: {reason}."
    return Mistake(key="", message=message, path=source.path, line=line)
