# SPDX-License-Identifier: Apache-2.0
"""One long conversation with one call in each turn, by one of several engines; a program for the environment of each.

`python peer_loops.py ENGINE TURNS COMMAND…` prints the CPU time at which its scripted model was asked, turn by turn.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from typing import Any

ARGUMENTS = {"text": "hello"}
_tick = time.process_time


async def converse_by_hand(command: list[str], turns: int) -> list[float]:
    """The loop that one would write on the bare SDK."""
    import mcp

    ticks: list[float] = []
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Go on."}]
    parameters = mcp.StdioServerParameters(command=command[0], args=command[1:])
    async with mcp.Client(parameters, cache=None) as client:
        await client.list_tools()
        for number in range(turns):
            ticks.append(_tick())
            messages.append({"role": "assistant", "tool_calls": [{"id": f"call-{number}"}]})
            result = await client.call_tool("echo", ARGUMENTS)
            text = "\n".join(part.text for part in result.content if part.type == "text")
            messages.append({"role": "tool", "tool_call_id": f"call-{number}", "content": text})
        ticks.append(_tick())
    return ticks


async def converse_by_converser(command: list[str], turns: int) -> list[float]:
    """Ours."""
    import converser
    from converser.testing import ScriptedModel

    ticks: list[float] = []

    def speak(_: Any) -> Any:
        ticks.append(_tick())
        return [("echo", ARGUMENTS)] if len(ticks) <= turns else "Done."

    client = converser.StdioMCPClient(command)
    async with await converser.discover_mcp_tools(client, "lean") as lean:
        model = ScriptedModel([speak] * (turns + 1))
        limits = converser.Limits(turns=None)
        await model.converse([converser.user("Go on.")], ensembles=[lean], limits=limits)
    return ticks


async def converse_by_pydantic_ai(command: list[str], turns: int) -> list[float]:
    """pydantic-ai, with its own toolset for MCP and its own model for tests."""
    from fastmcp.client.transports import StdioTransport
    from pydantic_ai import Agent
    from pydantic_ai.mcp import MCPToolset
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel
    from pydantic_ai.usage import UsageLimits

    ticks: list[float] = []

    def speak(_: Any, __: Any) -> Any:
        ticks.append(_tick())
        if len(ticks) > turns:
            return ModelResponse(parts=[TextPart("Done.")])
        return ModelResponse(parts=[ToolCallPart("echo", ARGUMENTS)])

    toolset = MCPToolset(StdioTransport(command=command[0], args=command[1:]))
    agent = Agent(FunctionModel(speak), toolsets=[toolset])
    async with agent:
        await agent.run("Go on.", usage_limits=UsageLimits(request_limit=None))
    return ticks


async def converse_by_openai_agents(command: list[str], turns: int) -> list[float]:
    """openai-agents, without tracing, and with its list of tools kept."""
    from agents import Agent, Model, ModelResponse, Runner, Usage, set_tracing_disabled
    from agents.mcp import MCPServerStdio
    from openai.types.responses import (
        ResponseFunctionToolCall,
        ResponseOutputMessage,
        ResponseOutputText,
    )

    set_tracing_disabled(True)
    ticks: list[float] = []

    class Speaker(Model):
        async def get_response(self, *_: Any, **__: Any) -> Any:
            ticks.append(_tick())
            number = len(ticks)
            item: Any = ResponseFunctionToolCall(
                type="function_call",
                name="echo",
                call_id=f"call-{number}",
                arguments=json.dumps(ARGUMENTS),
            )
            if number > turns:
                text = ResponseOutputText(type="output_text", text="Done.", annotations=[])
                item = ResponseOutputMessage(
                    id="m", type="message", role="assistant", status="completed", content=[text]
                )
            return ModelResponse(output=[item], usage=Usage(), response_id=None)

        def stream_response(self, *_: Any, **__: Any) -> Any:
            raise NotImplementedError

    parameters: Any = {"command": command[0], "args": command[1:]}
    async with MCPServerStdio(parameters, cache_tools_list=True) as server:
        agent = Agent(name="a", model=Speaker(), mcp_servers=[server])
        await Runner.run(agent, "Go on.", max_turns=turns + 2)
    return ticks


ENGINES = {
    "by hand": converse_by_hand,
    "converser": converse_by_converser,
    "pydantic-ai": converse_by_pydantic_ai,
    "openai-agents": converse_by_openai_agents,
}


def main() -> None:
    """Run one engine."""
    engine, turns, *command = sys.argv[1:]
    os.environ.setdefault("OPENAI_API_KEY", "none")
    ticks = asyncio.run(ENGINES[engine](command, int(turns)))
    assert len(ticks) == int(turns) + 1, len(ticks)
    print(json.dumps(ticks))


if __name__ == "__main__":
    main()
