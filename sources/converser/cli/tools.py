# SPDX-License-Identifier: Apache-2.0
"""`converser tools`: what the configured servers can do, as a table, or one tool in full."""

from __future__ import annotations

import json as json_format
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import anyio

from ..configuration import MCPServer
from ..exceptions import ConverserFailure
from .completing import complete_tools, offer
from .exits import ExitCode
from .judging import judge
from .options import DEFAULTS, AsJSON, Options
from .rosters import choose_servers, create_roster
from .screen import complain, print_rows, remark, say

if TYPE_CHECKING:
    from ..ensembles import Ensemble
    from ..invokers import Invoker


@dataclass(frozen=True)
class _Findings:
    """What looking at servers gave: those that could be reached, and why others could not."""

    ensembles: Sequence[Ensemble]
    failures: Sequence[ConverserFailure]

    def list_invokers(self) -> list[Invoker]:
        return [invoker for each in self.ensembles for invoker in each.invokers.values()]


def tools(
    server: Annotated[str | None, offer(complete_tools)] = None,
    tool: str | None = None,
    /,
    *,
    json: AsJSON = False,
    options: Options = DEFAULTS,
) -> int:
    """Lists the tools of one server, or of all that are enabled; or shows one tool in full.

    Parameters
    ----------
    server
        SERVER, or SERVER.TOOL.
    tool
        One of its tools, if not written as SERVER.TOOL.
    """
    configuration = options.load()
    if server is not None and tool is None and server not in configuration.servers:
        server, _, tool = server.partition(".")
    names = [server] if server else []
    chosen = [each for each in choose_servers(configuration, names) if each.enabled]
    findings = anyio.run(_look, chosen)
    if tool:
        return _show_one(findings, chosen[0], tool, json=json)
    for each in findings.ensembles:
        remark(each)
    if json:
        _print_json([describe_tool(invoker) for invoker in findings.list_invokers()])
    else:
        rows = map(_summarize, findings.list_invokers())
        print_rows(("tool", "arguments", "description"), rows)
    return _complain_of(findings)


def _show_one(findings: _Findings, server: MCPServer, tool: str, *, json: bool) -> int:
    from .portraits import print_portrait

    if not findings.ensembles:
        return _complain_of(findings)
    invoker = findings.ensembles[0].access_invoker(tool)
    if json:
        _print_json(describe_tool(invoker))
    else:
        print_portrait(invoker, server)
    return ExitCode.SUCCESS


def _complain_of(findings: _Findings) -> int:
    for failure in findings.failures:
        complain(failure)
    return judge(findings.failures[0]) if findings.failures else ExitCode.SUCCESS


async def _look(servers: Sequence[MCPServer]) -> _Findings:
    """Connects to all at once; one that cannot be reached does not spoil the others."""
    async with create_roster(servers) as roster:
        errors = [survey.error for survey in roster.survey().values() if survey.error]
        return _Findings(roster.ensembles, errors)


def _summarize(invoker: Invoker) -> tuple[str, str, str]:
    """What to call it, what it takes (an argument with a `?` may be left out), and what it does."""
    schema = invoker.arguments_schema
    required = schema.get("required", ())
    names = [name if name in required else f"{name}?" for name in schema.get("properties", ())]
    return name_fully(invoker), " ".join(names), invoker.description


def name_fully(invoker: Invoker) -> str:
    """A tool as people write it: SERVER.TOOL."""
    owner = invoker.ensemble.name if invoker.ensemble else ""
    return f"{owner}.{invoker.tool.name}"


def describe_tool(invoker: Invoker) -> dict[str, Any]:
    """All that is known of a tool, as JSON data."""
    from ..costs import estimate_tokens

    hints = asdict(invoker.annotations).items()
    return {
        "server": invoker.ensemble.name if invoker.ensemble else "",
        "name": invoker.tool.name,
        "wire_name": invoker.name,
        "description": invoker.description,
        "arguments_schema": invoker.arguments_schema,
        "output_schema": invoker.output_schema,
        "annotations": {key: hint for key, hint in hints if hint is not None},
        "tokens": estimate_tokens(invoker),
    }


def _print_json(data: Any) -> None:
    say(json_format.dumps(data, indent=2))
