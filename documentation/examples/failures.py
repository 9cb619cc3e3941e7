# SPDX-License-Identifier: Apache-2.0
"""Failures of each kind as a model sees them: none ends the conversation, none looks like success."""

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import converser
from converser.testing import ScriptedModel

SERVER = Path(__file__).with_name("troubled_server.py")


def guard(invoker: converser.Invoker, arguments: Mapping[str, Any]) -> converser.Decision | None:
    """A policy: it has an opinion on `fail` with a `force`, and on nothing else."""
    return converser.deny("Never by force.") if "force" in arguments else None


async def main() -> None:
    client = converser.StdioMCPClient(command=[sys.executable, str(SERVER)])
    configuration = converser.EnsembleConfiguration(tool_timeouts={"dawdle": 0.5})
    model = ScriptedModel(
        [
            [("add", {"a": "2", "b": 3})],  # repaired, since nothing is lost: "2" is 2
            [("add", {"a": "two", "b": 3})],
            [("ad", {"a": 2, "b": 3})],
            [("fail", {"force": True})],
            [("fail", {})],
            [("refuse", {})],
            [("dawdle", {})],
            [("crash", {})],
            [("add", {"a": 1, "b": 1})],  # the server is started again
            "I have seen it all.",
        ]
    )
    troubled = await converser.discover_mcp_tools(
        client, "mcp-troubled", configuration=configuration
    )
    async with troubled:
        reply = await model.converse(
            [converser.user("Break things.")], ensembles=[troubled], policies=[guard]
        )
    for canister in reply:
        if isinstance(canister, converser.InvocationCanister):
            print(f"\n{canister.name} {dict(canister.arguments)}")
        elif isinstance(canister, converser.ResultCanister):
            print(f"  {canister.outcome}: {canister.error or canister.text}")
    print(f"\n{reply.text}")


if __name__ == "__main__":
    asyncio.run(main())
