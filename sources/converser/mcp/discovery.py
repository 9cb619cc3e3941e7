# SPDX-License-Identifier: Apache-2.0
"""An MCP server becomes an ensemble, and each of its tools an invoker."""

from __future__ import annotations

from typing import Any

from ..arguments import ArgumentsGate
from ..ensembles import Connection, Ensemble, EnsembleConfiguration
from ..exceptions import MCPSchemaFailure, SchemaInvalidity
from ..invokers import Context, InvocationResult, Invoker, Tool
from ..naming import fit_name
from .clients import MCPClient


async def discover_mcp_tools(
    client: MCPClient,
    ensemble_name: str,
    *,
    configuration: EnsembleConfiguration = EnsembleConfiguration(),
) -> Ensemble:
    """Connects, lists every page of tools, and gives a connected ensemble that owns the client."""
    client.name = ensemble_name
    ensemble = Ensemble(ensemble_name, connection=client, configuration=configuration)
    try:
        await ensemble.connect()
    except BaseException:
        await ensemble.abandon()
        raise
    return ensemble


def create_invoker_from_mcp_tool(
    tool: Tool, client: Connection, *, ensemble: Ensemble | None = None
) -> Invoker:
    """One tool of a client as an invoker, without an ensemble's configuration."""

    async def invoke(context: Context, arguments: dict[str, Any]) -> InvocationResult:
        return await client.call_tool(tool.name, arguments, context=context)

    try:
        gate = ArgumentsGate(tool.arguments_schema)
    except SchemaInvalidity as failure:
        raise MCPSchemaFailure(
            f"Tool {tool.name!r} cannot be used: its schema is unusable. {failure}",
            server=getattr(client, "name", ""),
            tool=tool.name,
            cause=failure,
        ) from failure
    return Invoker(
        name=fit_name(tool.name), tool=tool, invocable=invoke, gate=gate, ensemble=ensemble
    )
