# SPDX-License-Identifier: Apache-2.0
"""Uses the public API as a typed program would; checked by pyright and `mypy --strict`, and never run.

Each `assert_type` fails where a type has become `Any` on its way to a user.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from typing_extensions import assert_type

import converser


async def discover() -> None:
    client = converser.StdioMCPClient(
        command=["uvx", "mcp-server-time"],
        environment={"TZ": "UTC"},
        cwd=".",
        name="clock",
        connect_timeout=5.0,
        elicit=answer,
    )
    any_client: converser.MCPClient = client
    assert_type(any_client.name, str)
    assert_type(any_client.state, converser.ConnectionState)
    assert_type(any_client.protocol_version, str | None)
    assert_type(any_client.instructions, str | None)
    assert_type(client.server_info, tuple[str, str] | None)
    assert_type(await client.list_tools(), tuple[converser.Tool, ...])
    assert_type(await client.call_tool("now", {"zone": "UTC"}), converser.InvocationResult)
    ensemble = await converser.discover_mcp_tools(client, "clock")
    assert_type(ensemble, converser.Ensemble)
    async with ensemble as entered:
        assert_type(entered, converser.Ensemble)


def create_clients() -> None:
    headers = {"Authorization": "Bearer …"}
    clients: Sequence[converser.MCPClient] = [
        converser.HttpMCPClient("https://example.org/mcp", headers, name="a"),
        converser.SseMCPClient("https://example.org/sse", headers=headers),
    ]
    for client in clients:
        inspect(client)


def inspect(client: converser.MCPClient) -> None:
    assert_type(client.remarks, Sequence[str])


async def answer(question: converser.Elicitation) -> converser.ElicitationAnswer:
    assert_type(question.server, str)
    assert_type(question.message, str)
    assert_type(question.form, Mapping[str, Any] | None)
    assert_type(question.url, str | None)
    return converser.ElicitationAnswer(action="accept", values={"name": "Ada"})


async def use(ensemble: converser.Ensemble) -> None:
    assert_type(ensemble.name, str)
    assert_type(ensemble.invokers, Mapping[str, converser.Invoker])
    assert_type(ensemble.disabled, Mapping[str, str])
    assert_type(ensemble.remarks, tuple[str, ...])
    assert_type(ensemble.configuration, converser.EnsembleConfiguration)
    assert_type(await ensemble.connect(), None)
    assert_type(await ensemble.refresh(), None)
    assert_type(await ensemble.disconnect(), None)
    assert_type(converser.gather_invokers([ensemble]), dict[str, converser.Invoker])
    invoker = ensemble.access_invoker("forecast")
    assert_type(invoker, converser.Invoker)
    assert_type(invoker.name, str)
    assert_type(invoker.description, str)
    assert_type(invoker.arguments_schema, Mapping[str, Any])
    assert_type(invoker.output_schema, Mapping[str, Any] | None)
    assert_type(invoker.annotations, converser.Annotations)
    assert_type(invoker.annotations.read_only, bool | None)
    assert_type(invoker.ensemble, converser.Ensemble | None)
    context = converser.Context(timeout=5, on_progress=hear, metadata={"turn": 1})
    result = await invoker({"city": "Oslo"}, context=context)
    assert_type(result, converser.InvocationResult)
    assert_type(result.contents, tuple[converser.Content, ...])
    assert_type(result.text, str)
    assert_type(result.remarks, tuple[str, ...])


async def hear(progress: float, total: float | None, message: str | None) -> None:
    assert_type(progress, float)


def read(content: converser.Content) -> None:
    if isinstance(content, converser.TextualContent):
        assert_type(content.text, str)
    elif isinstance(content, converser.ImageContent | converser.AudioContent):
        assert_type(content.data, bytes)
        assert_type(content.mimetype, str)
    elif isinstance(content, converser.BlobContent):
        assert_type(content.uri, str | None)
        assert_type(content.text, str | None)
    elif isinstance(content, converser.LinkContent):
        assert_type(content.size, int | None)
    else:
        assert_type(content, converser.UnknownContent)
        assert_type(content.kind, str)


def configure() -> converser.EnsembleConfiguration:
    def is_harmless(tool: converser.Tool) -> bool:
        return bool(tool.annotations.read_only)

    return converser.EnsembleConfiguration(
        selection=converser.Selection(allow=("get_*",), deny=("x",), predicate=is_harmless),
        naming=converser.Naming(style="mcp", renames={"a": "b"}),
        repair=False,
        strictness=converser.Strictness.STRICT,
        timeout=None,
        tool_timeouts={"slow": 60.0},
    )


async def start_configured() -> None:
    server = converser.MCPServer.stdio("clock", ["uvx", "mcp-server-time"], timeout=5)
    assert_type(server, converser.MCPServer)
    assert_type(converser.create_mcp_ensemble(server, elicit=answer), converser.Ensemble)
    tool = converser.Tool(name="now", arguments_schema={"type": "object"})
    client = converser.HttpMCPClient("https://example.org/mcp")
    assert_type(converser.create_invoker_from_mcp_tool(tool, client), converser.Invoker)


def create_local_tools() -> None:
    def add(a: int, b: int = 0) -> int:
        """Adds."""
        return a + b

    assert_type(converser.create_local_ensemble("local", [add]), converser.Ensemble)


async def fail(invoker: converser.Invoker) -> None:
    try:
        await invoker()
    except converser.ToolExecutionFailure as failure:
        assert_type(failure.outcome, converser.Outcome)
        assert_type(failure.contents, tuple[converser.Content, ...])
        assert_type(failure.tool, str)
        assert_type(failure.ensemble, str)
        assert_type(failure.remedy, str)
        if isinstance(cause := failure.__cause__, converser.MCPFailure):
            assert_type(cause.server, str)
            assert_type(cause.tool, str)
            assert_type(cause.transport, str)
            assert_type(cause.cause, BaseException | None)
            assert_type(cause.outcome, converser.Outcome)
        if isinstance(cause, converser.MCPExecutionFailure):
            assert_type(cause.code, int | None)


def write_canisters() -> None:
    canister = converser.user("Hello")
    assert_type(canister, converser.UserCanister)
    assert_type(canister.identifier, str)
    assert_type(canister.timestamp, datetime)
    assert_type(converser.supervisor("Be brief."), converser.SupervisorCanister)
    assert_type(converser.assistant("Hi."), converser.AssistantCanister)
    conversation: list[converser.Canister] = [canister, converser.assistant("Hi.")]
    text = converser.dump_canister(conversation[0])
    assert_type(text, str)
    assert_type(converser.load_canister(text), converser.Canister)


def store_conversations() -> None:
    store = converser.ConversationStore("folder")
    conversation = store.create([converser.user("Hello")], name="greeting", tags=["t"])
    assert_type(conversation, converser.StoredConversation)
    conversation.append([converser.assistant("Hi.")])
    assert_type(conversation.load(), tuple[converser.Canister, ...])
    assert_type(conversation.undo(), tuple[converser.Canister, ...])
    assert_type(store.open("greeting").fork(1), converser.StoredConversation)
    assert_type(conversation.revise(name="other"), converser.ConversationMetadata)
    assert_type(store.list(), tuple[converser.ConversationSurvey, ...])
    for finding in store.search("hello"):
        assert_type(finding, converser.ConversationFinding)


async def brief(server: converser.MCPServer, model: converser.Model) -> None:
    section = converser.Section(title="Sums", text="…", servers=[server], functions=[inspect])
    async with converser.Briefing([section]) as briefing:
        assert_type(briefing.supervisor, converser.SupervisorCanister)
        assert_type(briefing.ensembles, tuple[converser.Ensemble, ...])
        assert_type(briefing.roster, converser.Roster)
        assert_type(await briefing.open("Sums"), str)
        await model.converse([briefing.supervisor], ensembles=briefing.ensembles)
