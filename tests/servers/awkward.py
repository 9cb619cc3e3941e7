# SPDX-License-Identifier: Apache-2.0
"""An MCP server that is awkward on purpose: pages, every kind of content, errors, crashes and questions.

In process: `create_awkward_server()`. As a process: `python awkward.py [--transport stdio|http|sse]`;
over HTTP it prints its URL as the first line of its output, once it can be reached.
"""

from __future__ import annotations

import argparse
import base64
import functools
import json
import os
import socket
import sys
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio
from mcp import types
from mcp.server import Server, ServerRequestContext
from mcp.server.lowlevel import NotificationOptions
from mcp.server.models import InitializationOptions
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp.types.version import MODERN_PROTOCOL_VERSIONS
from typing_extensions import override

if TYPE_CHECKING:
    from starlette.applications import Starlette

PAGE_SIZE = 5
EXIT_CODE = 7
STRUCTURED = {"city": "Oslo", "celsius": 21.5}
PNG = base64.b64decode(  # one red pixel
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"
)
WAV = base64.b64decode(  # ten samples
    "UklGRi4AAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQoAAACAgYKDhIWGh4iJ"
)
PDF = b"%PDF-1.4\n1 0 obj<</Type/Catalog>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n"

Result = types.CallToolResult | types.InputRequiredResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of a tool, with all that it may need."""

    server: AwkwardServer
    ctx: ServerRequestContext[Any]
    params: types.CallToolRequestParams

    @property
    def is_modern(self) -> bool:
        """Whether the connection is of the era without a back-channel, 2026-07-28 and later."""
        return self.ctx.protocol_version in MODERN_PROTOCOL_VERSIONS

    def argument(self, name: str, default: Any = None) -> Any:
        """Give an argument, or its default."""
        return (self.params.arguments or {}).get(name, default)


Handler = Callable[[Call], Awaitable[Result]]
_READS = types.ToolAnnotations(read_only_hint=True, idempotent_hint=True)
_HANDLERS: dict[str, tuple[types.Tool, Handler]] = {}


class AwkwardServer(Server[Any]):
    """The server with what it remembers; `may_exit` lets the tool `crash` end the process."""

    def __init__(self, *, may_exit: bool = False) -> None:
        self.bus = InMemorySubscriptionBus()
        super().__init__(
            "awkward",
            version="1.0.0",
            instructions="Everything here is awkward on purpose.",
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_subscriptions_listen=ListenHandler(self.bus),
        )
        self.may_exit = may_exit
        self.tools = {name: tool for name, (tool, _) in _HANDLERS.items()}
        self.pages_served = 0
        self.cancellations = 0
        self.cancellation_noticed = anyio.Event()
        self.states_issued: set[str] = set()

    @override
    def create_initialization_options(
        self, notification_options: NotificationOptions | None = None, *args: Any, **nomargs: Any
    ) -> InitializationOptions:
        options = notification_options or NotificationOptions(tools_changed=True)
        return super().create_initialization_options(options, *args, **nomargs)

    async def _list_tools(
        self, ctx: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        offset = _decode_cursor(params.cursor if params else None)
        self.pages_served += 1
        tools = list(self.tools.values())
        end = offset + PAGE_SIZE
        cursor = _encode_cursor(end) if end < len(tools) else None
        return types.ListToolsResult(tools=tools[offset:end], next_cursor=cursor)

    async def _call_tool(
        self, ctx: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> Result:
        if params.name not in self.tools:
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name}")
        _, handler = _HANDLERS.get(params.name, (None, _answer_grown))
        return await handler(Call(server=self, ctx=ctx, params=params))

    def note_cancellation(self) -> None:
        """Count a cancelled call, and wake whoever waits for it."""
        self.cancellations += 1
        self.cancellation_noticed.set()
        self.cancellation_noticed = anyio.Event()


def create_awkward_server(*, may_exit: bool = False) -> AwkwardServer:
    """Make a fresh server that shares nothing with any other."""
    return AwkwardServer(may_exit=may_exit)


def _encode_cursor(offset: int) -> str:
    return base64.urlsafe_b64encode(f"from {offset}".encode()).decode()


def _decode_cursor(cursor: str | None) -> int:
    if cursor is None:
        return 0
    try:
        return int(base64.urlsafe_b64decode(cursor).decode().removeprefix("from "))
    except ValueError as cause:
        raise MCPError(types.INVALID_PARAMS, f"Invalid cursor: {cursor}") from cause


def _schema(required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


def _text(text: str, *, is_error: bool = False) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=text)], is_error=is_error)


def _tool(
    description: str,
    arguments: dict[str, Any] | None = None,
    output: dict[str, Any] | None = None,
    hints: types.ToolAnnotations | None = None,
) -> Callable[[Handler], Handler]:
    def register(handler: Handler) -> Handler:
        name = handler.__name__.removeprefix("_tool_")
        tool = types.Tool(
            name=name,
            description=description,
            input_schema=_schema() if arguments is None else arguments,
            output_schema=output,
            annotations=hints,
        )
        _HANDLERS[name] = (tool, handler)
        return handler

    return register


@_tool(
    "Gives the text back.",
    _schema(("text",), text={"type": "string"}),
    hints=_READS,
)
async def _tool_echo(call: Call) -> Result:
    return _text(str(call.argument("text")))


@_tool(
    "Adds two numbers.",
    _schema(("a", "b"), a={"type": "number"}, b={"type": "number"}),
    _schema(("sum",), sum={"type": "number"}),
    hints=_READS,
)
async def _tool_add(call: Call) -> Result:
    try:
        structured = {"sum": call.argument("a") + call.argument("b")}
    except TypeError as mistake:
        return _text(f"Invalid arguments: {mistake!r}", is_error=True)
    result = _text(json.dumps(structured))
    return result.model_copy(update={"structured_content": structured})


def _encode(data: bytes) -> str:
    return base64.b64encode(data).decode()


@_tool("Gives one result with every kind of content.", hints=_READS)
async def _tool_everything(call: Call) -> Result:
    readme = types.TextResourceContents(
        uri="memo://readme", mime_type="text/markdown", text="# Read me\n"
    )
    report = types.BlobResourceContents(
        uri="memo://report.pdf", mime_type="application/pdf", blob=_encode(PDF)
    )
    for_user = types.Annotations(audience=["user"], priority=0.5)
    return types.CallToolResult(
        content=[
            types.TextContent(text="All of it:", annotations=for_user),
            types.ImageContent(data=_encode(PNG), mime_type="image/png"),
            types.AudioContent(data=_encode(WAV), mime_type="audio/wav"),
            types.EmbeddedResource(resource=readme),
            types.EmbeddedResource(resource=report),
            types.ResourceLink(
                uri="memo://large.csv",
                name="large.csv",
                title="A large table",
                description="Too large to embed.",
                mime_type="text/csv",
                size=1_000_000,
            ),
        ]
    )


_WEATHER = _schema(("city", "celsius"), city={"type": "string"}, celsius={"type": "number"})


@_tool("Gives structured data, and its twin as JSON text.", None, _WEATHER, hints=_READS)
async def _tool_dual(call: Call) -> Result:
    twin = types.TextContent(text=json.dumps(STRUCTURED, indent=2))
    return types.CallToolResult(content=[twin], structured_content=STRUCTURED)


@_tool("Gives structured data and no content.", None, _WEATHER, hints=_READS)
async def _tool_structured_only(call: Call) -> Result:
    return types.CallToolResult(content=[], structured_content=STRUCTURED)


@_tool("Breaks the promise of its output schema.", None, _WEATHER, hints=_READS)
async def _tool_bad_output(call: Call) -> Result:
    broken = {"city": "Oslo", "celsius": "mild"}
    twin = types.TextContent(text=json.dumps(broken))
    return types.CallToolResult(content=[twin], structured_content=broken)


@_tool("Fails as a tool should: with a result that is an error.")
async def _tool_fail(call: Call) -> Result:
    return _text("The tool failed on purpose.", is_error=True)


@_tool("Fails with an error of the protocol.")
async def _tool_rpc_error(call: Call) -> Result:
    raise MCPError(types.INVALID_PARAMS, "Refused on purpose.", {"hint": "no hint"})


@_tool(
    "Takes its time, in `steps` steps, and reports progress at once and after each of them.",
    _schema(
        seconds={"type": "number", "default": 60},
        steps={"type": "integer", "minimum": 1, "default": 4},
    ),
)
async def _tool_slow(call: Call) -> Result:
    steps = int(call.argument("steps", 4))
    pause = float(call.argument("seconds", 60)) / steps
    try:
        await call.ctx.session.report_progress(0, steps, "started")
        for step in range(1, steps + 1):
            await anyio.sleep(pause)
            await call.ctx.session.report_progress(step, steps, f"step {step}")
    except anyio.get_cancelled_exc_class():
        call.server.note_cancellation()
        raise
    return _text(f"Done after {steps} steps.")


@_tool(
    "Tells how many calls were cancelled, as soon as there were at least `at_least`.",
    _schema(at_least={"type": "integer", "minimum": 0, "default": 0}),
    hints=_READS,
)
async def _tool_cancellations(call: Call) -> Result:
    while call.server.cancellations < int(call.argument("at_least", 0)):
        await call.server.cancellation_noticed.wait()
    return _text(str(call.server.cancellations))


@_tool(
    "Ends the process of the server in the middle of the call.",
    hints=types.ToolAnnotations(destructive_hint=True),
)
async def _tool_crash(call: Call) -> Result:
    if call.server.may_exit:
        os._exit(EXIT_CODE)
    return _text("This server shares its process with others and must not end it.", is_error=True)


@_tool("Adds a tool to the list and says so.", hints=types.ToolAnnotations(destructive_hint=False))
async def _tool_grow(call: Call) -> Result:
    server = call.server
    name = f"grown_{len(server.tools) - len(_HANDLERS) + 1}"
    server.tools[name] = types.Tool(name=name, description="Grown.", input_schema=_schema())
    if call.is_modern:
        await server.bus.publish(ToolsListChanged())
    else:
        await call.ctx.session.send_tool_list_changed()
    return _text(name)


async def _answer_grown(call: Call) -> Result:
    return _text(f"{call.params.name} at your service.")


@_tool(
    "Asks for a name, and once more in each further round, before it greets.",
    _schema(rounds={"type": "integer", "minimum": 1, "default": 1}),
)
async def _tool_ask(call: Call) -> Result:
    rounds = int(call.argument("rounds", 1))
    try:
        if not call.is_modern:
            names = [_read_name(await _elicit(call, number)) for number in range(rounds)]
        else:
            names = _read_state(call)
            if call.params.input_responses is not None:
                names.append(_read_name(call.params.input_responses.get("name")))
    except PermissionError:
        return _text("No name, no greeting.", is_error=True)
    if len(names) < rounds:
        return _ask_again(call.server, names)
    return _text(f"Hello, {' and '.join(names)}!")


def _ask_again(server: AwkwardServer, names: list[str]) -> types.InputRequiredResult:
    # The odd tail shows whether a client really echoes the state byte for byte.
    state = json.dumps({"names": names, "serial": len(server.states_issued)}) + ' "\u2028é '
    server.states_issued.add(state)
    request = types.ElicitRequest(params=_form(len(names)))
    return types.InputRequiredResult(input_requests={"name": request}, request_state=state)


def _read_state(call: Call) -> list[str]:
    state = call.params.request_state
    if state is None:
        return []
    if state not in call.server.states_issued:
        raise MCPError(types.INVALID_PARAMS, "This request state was never issued.")
    names: list[str] = json.JSONDecoder().raw_decode(state)[0]["names"]
    return names


def _read_name(reply: object) -> str:
    if not isinstance(reply, types.ElicitResult) or reply.action != "accept":
        raise PermissionError
    return str((reply.content or {}).get("name"))


def _form(number: int) -> types.ElicitRequestFormParams:
    schema = _schema(("name",), name={"type": "string", "title": "Name"})
    return types.ElicitRequestFormParams(message=f"Name {number + 1}?", requested_schema=schema)


async def _elicit(call: Call, number: int) -> types.ElicitResult:
    form = _form(number)
    session = call.ctx.session
    return await session.elicit_form(form.message, form.requested_schema, call.ctx.request_id)


TOOL_NAMES = tuple(_HANDLERS)


async def _serve_stdio(server: AwkwardServer) -> None:
    from mcp.server.stdio import stdio_server

    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def _create_sse_app(server: AwkwardServer) -> Starlette:
    from mcp.server.sse import SseServerTransport
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Mount, Route

    transport = SseServerTransport("/messages/")

    async def connect(request: Request) -> Response:
        send = request._send  # pyright: ignore[reportPrivateUsage]  # as the SDK documents it
        channel = transport.connect_sse(request.scope, request.receive, send)
        async with channel as (read, write):
            await server.run(read, write, server.create_initialization_options())
        return Response()

    routes = [Route("/sse", connect), Mount("/messages/", transport.handle_post_message)]
    return Starlette(routes=routes)


def _serve_http(app: Starlette, path: str, port: int) -> None:
    import uvicorn

    listener = socket.create_server(("127.0.0.1", port))
    # As uvicorn's own sockets have it: else each answer waits 40 ms for an acknowledgement.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    # From here on a client that connects is kept waiting, and no longer refused.
    print(f"http://127.0.0.1:{listener.getsockname()[1]}{path}", flush=True)
    configuration = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1)
    uvicorn.Server(configuration).run(sockets=[listener])


def _exit_with_parent() -> None:
    """End when standard input does, so that no server outlives the tests that started it."""

    def watch() -> None:
        sys.stdin.buffer.read()
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()


def main() -> None:
    """Serve over the transport that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--transport", choices=("stdio", "http", "sse"), default="stdio")
    parser.add_argument("--port", type=int, default=0, help="0: any free one")
    parser.add_argument("--until-eof", action="store_true", help="HTTP: end with standard input")
    options = parser.parse_args()
    server = create_awkward_server(may_exit=True)
    if options.transport == "stdio":
        anyio.run(functools.partial(_serve_stdio, server))
        return
    if options.until_eof:
        _exit_with_parent()
    if options.transport == "http":
        _serve_http(server.streamable_http_app(), "/mcp", options.port)
    else:
        _serve_http(_create_sse_app(server), "/sse", options.port)


if __name__ == "__main__":
    main()
