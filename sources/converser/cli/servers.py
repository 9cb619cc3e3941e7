# SPDX-License-Identifier: Apache-2.0
"""`converser servers`: where each server stands, once or live, and the commands that change which there are."""

from __future__ import annotations

import json as json_format
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import anyio
from cyclopts import App, Parameter

from .exits import ExitCode
from .judging import judge
from .options import DEFAULTS, AsJSON, Options, ServerName
from .rosters import choose_servers, create_roster
from .screen import build_table, complain, is_terminal, print_rows, say, squeeze

if TYPE_CHECKING:
    from ..configuration import MCPServer
    from ..rosters.roster import Roster
    from ..rosters.surveys import ServerSurvey

_TITLES = ("server", "state", "protocol", "tools", "tokens", "latency", "from")
_REFRESH = 0.25
_EXAMPLES = """Examples:
  converser servers --watch
  converser servers add time -- uvx mcp-server-time
  converser servers import"""

app = App(name="servers", help_epilogue=_EXAMPLES)


def _register(room: str, name: str, words: str, *examples: str) -> None:
    lines = [f"  converser servers {name} {example}".rstrip() for example in examples]
    epilogue = "\n".join(("Examples:", *lines))
    app.command(
        f"converser.cli.{room}",
        name=name,
        help=words,
        help_epilogue=epilogue,
        sort_key=len([*app]),
    )


_register(
    "editing:add",
    "add",
    "Add a server to converser.toml.",
    "time -- uvx mcp-server-time",
    "git --env TOKEN=env:GIT_TOKEN -- npx -y some-server",
    "search --url https://example.org/mcp --header Key=env:KEY",
)
_register("editing:remove", "remove", "Remove a server from the file that holds it.", "time")
_register("editing:enable", "enable", "Have a server used again.", "time")
_register("editing:disable", "disable", "Keep a server, but do not use it.", "time")
_register("servers:try_", "test", "Connect to servers; exits with 0 if all is well.", "", "time")
_register(
    "importing:import_",
    "import",
    "Take over the servers of Claude Desktop, Claude Code, Cursor and VS Code.",
    "",
    ".vscode/mcp.json --user",
)


@app.default
def servers(
    *,
    watch: Annotated[
        bool, Parameter(negative=(), help="Stay, and show every change; Ctrl-C ends it.")
    ] = False,
    every: Annotated[float, Parameter(help="With --watch: seconds between two checks.")] = 2.0,
    json: AsJSON = False,
    options: Options = DEFAULTS,
) -> None:
    """Connects to all servers that are enabled, and shows where each stands."""
    chosen = choose_servers(options.load(), ())
    if watch:
        anyio.run(_watch, chosen, max(every, 0.1), json)
        return
    surveys = anyio.run(_survey, chosen)
    if json:
        say(json_format.dumps([dump_survey(each) for each in surveys.values()], indent=2))
        return
    print_rows(_TITLES, map(_describe, surveys.values()))
    _complain_of(surveys.values())


def try_(*names: ServerName, options: Options = DEFAULTS) -> int:
    """Connects to servers, and tells what comes of it; the exit code says whether all is well.

    Parameters
    ----------
    names
        The servers, also disabled ones; all that are enabled, if none is named.
    """
    chosen = [each for each in choose_servers(options.load(), names) if each.enabled]
    surveys = anyio.run(_survey, chosen)
    print_rows(_TITLES, map(_describe, surveys.values()))
    _complain_of(surveys.values())
    failures = [each.error for each in surveys.values() if each.error]
    return judge(failures[0]) if failures else ExitCode.SUCCESS


async def _survey(servers: list[MCPServer]) -> Mapping[str, ServerSurvey]:
    async with create_roster(servers) as roster:
        return await roster.check()


def _complain_of(surveys: Iterable[ServerSurvey]) -> None:
    for survey in surveys:
        if survey.error:
            complain(survey.error)
        for words in (survey.trouble, *survey.remarks):
            if words:
                complain(f"{survey.name}: {words}")
        for tool, reason in survey.disabled_tools.items():
            complain(f"{survey.name}.{tool} is disabled: {reason}")


def _describe(survey: ServerSurvey) -> tuple[str, ...]:
    is_known = survey.protocol_version is not None
    return (
        survey.name,
        str(survey.state),
        survey.protocol_version or "",
        str(len(survey.tools)) if is_known else "",
        str(survey.tokens) if is_known else "",
        "" if survey.pulse is None else f"{1000 * survey.pulse:.0f} ms",
        survey.scope,
    )


def dump_survey(survey: ServerSurvey) -> dict[str, Any]:
    """What is known of a server, as JSON data."""
    return {
        "name": survey.name,
        "state": str(survey.state),
        "error": None if survey.error is None else str(survey.error),
        "transport": survey.transport,
        "scope": survey.scope,
        "origin": survey.configuration["origin"],
        "protocol": survey.protocol_version,
        "server": {"name": survey.server_name, "version": survey.server_version},
        "tools": len(survey.tools),
        "disabled_tools": dict(survey.disabled_tools),
        "tokens": survey.tokens,
        "latency_seconds": survey.pulse,
        "remarks": list(survey.remarks),
    }


async def _watch(servers: list[MCPServer], period: float, json: bool) -> None:
    roster = create_roster(servers)
    async with anyio.create_task_group() as group:
        group.start_soon(_keep_checking, roster, period)
        show = _show_lines if json or not is_terminal() else _show_live
        await show(roster, json)


async def _keep_checking(roster: Roster, period: float) -> None:
    async with roster:
        while True:
            await roster.check()
            await anyio.sleep(period)


async def _show_live(roster: Roster, _: bool) -> None:
    """A table that is always new, with what is wrong below it."""
    from rich.console import Group
    from rich.live import Live
    from rich.text import Text

    with Live(auto_refresh=False) as live:
        while True:
            surveys = list(roster.survey().values())
            errors = [Text(squeeze(str(each.error)), "yellow") for each in surveys if each.error]
            live.update(Group(build_table(_TITLES, map(_describe, surveys)), *errors), refresh=True)
            await anyio.sleep(_REFRESH)


async def _show_lines(roster: Roster, json: bool) -> None:
    """A line for a server whenever something but its latency changed; what programs can follow."""
    shown: dict[str, tuple[str, ...]] = {}
    while True:
        for survey in roster.survey().values():
            described = _describe(survey)
            state = (*described[:-2], str(survey.error))
            if shown.get(survey.name) == state:
                continue
            shown[survey.name] = state
            if json:
                say(json_format.dumps(dump_survey(survey)))
            else:
                print_rows(_TITLES, [described])
            sys.stdout.flush()
        await anyio.sleep(_REFRESH)
