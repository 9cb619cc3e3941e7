# SPDX-License-Identifier: Apache-2.0
"""`converser tools`: what the configured servers can do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import anyio

from ..configuration import MCPServer
from ..exceptions import ConfigurationFailure, ConverserFailure
from .exits import ExitCode
from .judging import judge
from .options import DEFAULTS, Options, find_server
from .screen import complain, print_rows, remark

if TYPE_CHECKING:
    from ..ensembles import Ensemble
    from ..invokers import Invoker


def tools(server: str | None = None, /, *, options: Options = DEFAULTS) -> int:
    """Lists the tools of one server, or of all that are enabled.

    Parameters
    ----------
    server
        Its name in converser.toml.
    """
    configuration = options.load()
    if server is not None:
        chosen = [find_server(configuration, server)]
    else:
        chosen = [each for each in configuration.servers.values() if each.enabled]
    if not chosen:
        raise ConfigurationFailure(
            "No servers are configured.",
            remedy="Write a table [mcp.NAME] into converser.toml, or name a file with --config.",
        )
    failures = anyio.run(_list_tools, chosen)
    for failure in failures:
        complain(failure)
    return judge(failures[0]) if failures else ExitCode.SUCCESS


async def _list_tools(servers: Sequence[MCPServer]) -> list[ConverserFailure]:
    """Prints the tools of each server; one that cannot be reached does not spoil the others."""
    from ..mcp.configured import create_mcp_ensemble

    found: dict[str, Ensemble] = {}
    failures: dict[str, ConverserFailure] = {}

    async def look(server: MCPServer) -> None:
        try:
            async with create_mcp_ensemble(server) as ensemble:
                found[server.name] = ensemble
        except ConverserFailure as failure:
            failures[server.name] = failure

    async with anyio.create_task_group() as group:
        for server in servers:
            group.start_soon(look, server)
    names = [server.name for server in servers]
    _print_tools([found[name] for name in names if name in found])
    return [failures[name] for name in names if name in failures]


def _print_tools(ensembles: Sequence[Ensemble]) -> None:
    for ensemble in ensembles:
        remark(ensemble)
    rows = [_describe(invoker) for each in ensembles for invoker in each.invokers.values()]
    print_rows(("tool", "arguments", "description"), rows)


def _describe(invoker: Invoker) -> tuple[str, str, str]:
    """What to call it, what it takes (an argument with a `?` may be left out), and what it does."""
    schema = invoker.arguments_schema
    required = schema.get("required", ())
    names = [name if name in required else f"{name}?" for name in schema.get("properties", ())]
    owner = invoker.ensemble.name if invoker.ensemble else ""
    return f"{owner}.{invoker.tool.name}", " ".join(names), invoker.description
