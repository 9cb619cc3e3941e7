# SPDX-License-Identifier: Apache-2.0
"""`converser lock`: writes down the tools of all servers, or tells how they differ from what is written."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import anyio
from cyclopts import Parameter

from ..configuration import Configuration, MCPServer
from ..configuration.mistakes import printable
from ..exceptions import ConfigurationFailure, ConverserFailure
from ..hygiene import clean_text
from .exits import ExitCode
from .judging import judge
from .options import DEFAULTS, Options
from .rosters import create_roster
from .screen import complain, count, print_lines

if TYPE_CHECKING:
    from ..invokers import Tool
    from ..rosters.catalogue import CatalogueEntry

_Entries = Mapping[str, "CatalogueEntry"]


def lock(
    *,
    check: Annotated[
        bool,
        Parameter(help="Write nothing; print the difference, and exit with 11 if there is one."),
    ] = False,
    options: Options = DEFAULTS,
) -> int:
    """Writes converser.lock: every tool of every enabled server, as it is now."""
    from ..rosters.catalogue import FILE_NAME, Catalogue, read_catalogue, write_catalogue

    configuration = options.load()
    servers = _choose(configuration)
    path = configuration.files[0].path.with_name(FILE_NAME)
    before = read_catalogue(path).servers
    seen, failures = anyio.run(_look, [server for server in servers if server.enabled])
    # Of servers that could not be asked, what was known stays.
    after = {
        server.name: entry
        for server in servers
        if (entry := seen.get(server.name) or before.get(server.name)) is not None
    }
    for failure in failures:
        complain(failure)
    differences = list(_compare(before, after))
    print_lines(differences)
    if not check and (differences or not path.exists()):
        _write(path, lambda: write_catalogue(path, Catalogue(servers=after)))
        complain(f"Wrote {printable(str(path))}.", style="green")
    if failures:
        return judge(failures[0])
    return ExitCode.DRIFTED if check and differences else ExitCode.SUCCESS


def _write(path: Path, write: Any) -> None:
    try:
        write()
    except OSError as failure:
        raise ConfigurationFailure(
            f"{printable(str(path))} cannot be written: {failure.strerror}.",
            remedy="Look at the permissions of its folder.",
        ) from None


def _choose(configuration: Configuration) -> list[MCPServer]:
    """The servers of the file beside which the lock is: others may have no servers of your own."""
    chosen = (
        [
            server
            for server in configuration.servers.values()
            if server.origin == configuration.files[0].path
        ]
        if configuration.files
        else []
    )
    if not chosen:
        raise ConfigurationFailure(
            "There are no servers whose tools could be written down.",
            remedy="Write a table [mcp.NAME] into converser.toml, or name a file with --config.",
        )
    return chosen


async def _look(
    servers: Sequence[MCPServer],
) -> tuple[dict[str, CatalogueEntry], list[ConverserFailure]]:
    from ..rosters.catalogue import describe_server

    async with create_roster(servers) as roster:
        ensembles = {server.name: roster.access_ensemble(server.name) for server in servers}
        errors = {
            name: error
            for name, each in roster.survey().items()
            if (error := each.error or ensembles[name].interruption)
        }
        seen = {
            server.name: describe_server(server, ensembles[server.name].tools)
            for server in servers
            if server.name not in errors
        }
    return seen, list(errors.values())


def _compare(before: _Entries, after: _Entries) -> Iterator[str]:
    """The difference in lines, each marked as in a patch."""
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name), after.get(name)
        if old is None or new is None:
            entry = old or new
            number = len(entry.tools) if entry else 0
            yield f"{'+' if old is None else '-'} {name}: {count(number, 'tool')}"
            continue
        if old.reach != new.reach:
            yield f"~ {name}: is reached in another way than before"
        yield from _compare_tools(name, old.tools, new.tools)


def _compare_tools(server: str, old: Sequence[Tool], new: Sequence[Tool]) -> Iterator[str]:
    from ..rosters.catalogue import find_drift

    drift = find_drift(old, new)
    yield from (f"- {server}.{clean_text(name)}" for name in drift.removed)
    yield from (f"+ {server}.{clean_text(name)}" for name in drift.added)
    before, after = ({tool.name: tool for tool in tools} for tools in (old, new))
    for name, fields in drift.changed.items():
        yield f"~ {server}.{clean_text(name)}: {', '.join(fields)}"
        for field in fields:
            yield from _compare_field(before[name], after[name], field)


def _compare_field(old: Tool, new: Tool, field: str) -> Iterator[str]:
    before, after = (_write_field(tool, field).splitlines() for tool in (old, new))
    lines = difflib.unified_diff(before, after, n=1, lineterm="")
    yield from (f"    {line}" for line in lines if not line.startswith(("---", "+++", "@@")))


def _write_field(tool: Tool, field: str) -> str:
    value = getattr(tool, field)
    if isinstance(value, str):
        return clean_text(value)
    data = asdict(value) if field == "annotations" else value
    return clean_text(json.dumps(data, indent=2, sort_keys=True, ensure_ascii=False))
