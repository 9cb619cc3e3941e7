# SPDX-License-Identifier: Apache-2.0
"""What the suite starts: a host that connects an ensemble, uses every tool that it shows, and leaves.

The suite appends the URL of its server, and names the scenario, and what it gives along, in the
environment. Nothing here decides how to speak: that is for the ensemble to find out.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import Any

import anyio

import converser
from converser.schemas import example_for
from tests.conformance.logins import create_login

_SECONDS = 110.0
_CALLS_AT_ONCE = frozenset({"sep-2322-client-request-state"})
"""Scenarios in which the calls must not get in each other's way."""


async def converse(url: str, scenario: str, gift: Mapping[str, Any]) -> None:
    """Connect, call, and disconnect."""
    client = converser.HttpMCPClient(
        url, elicit=accept, auth=create_login(url, scenario, gift), reconnect_attempts=0
    )
    ensemble = await converser.discover_mcp_tools(client, "conformance")
    async with ensemble:
        print(f"{client.protocol_version}: {', '.join(ensemble.invokers)}; {ensemble.remarks}")
        calls = plan_calls(ensemble, gift)
        async with anyio.create_task_group() as group:
            for name, arguments in calls:
                if scenario in _CALLS_AT_ONCE:
                    group.start_soon(ensemble.access_invoker(name), arguments)
                else:
                    print(await ensemble.access_invoker(name)(arguments))


async def accept(question: converser.Elicitation) -> converser.ElicitationAnswer:
    """Answer as a person does who agrees and fills nothing in."""
    return converser.ElicitationAnswer(action="accept")


def plan_calls(
    ensemble: converser.Ensemble, gift: Mapping[str, Any]
) -> list[tuple[str, Mapping[str, Any]]]:
    """The calls that the suite asks for, or else one of each tool."""
    if "toolCalls" in gift:
        return [(call["name"], call["arguments"]) for call in gift["toolCalls"]]
    schemas = {name: invoker.arguments_schema for name, invoker in ensemble.invokers.items()}
    if "json_schema_echo" in schemas:  # it wants to see what became of the other's schema
        return [("json_schema_echo", {"schema": schemas["json_schema_2020_12_tool"]})]
    return [(name, example_for(schema)) for name, schema in schemas.items()]


async def _run() -> None:
    with anyio.fail_after(_SECONDS):
        await converse(
            sys.argv[-1],
            os.environ["MCP_CONFORMANCE_SCENARIO"],
            json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}"),
        )


if __name__ == "__main__":
    anyio.run(_run)
