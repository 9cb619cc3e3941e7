# SPDX-License-Identifier: Apache-2.0
"""The bare SDK client finds the test servers to be what they claim, so that other tests can trust them."""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import os
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import anyio
import pydantic
import pytest
from mcp import Client, MCPError, StdioServerParameters, types
from mcp.client.sse import sse_client

from tests.servers import awkward, processes, raw
from tests.servers.awkward import AwkwardServer
from tests.servers.processes import RunningServer

pytestmark = pytest.mark.anyio

TRANSPORTS = ("in-process", "stdio", "http", "sse")
LIMIT = 60


def stdio(command: list[str], **environment: str) -> StdioServerParameters:
    return StdioServerParameters(command=command[0], args=command[1:], env=environment)


@contextlib.contextmanager
def place_of_awkward(transport: str) -> Any:
    if transport == "in-process":
        yield awkward.create_awkward_server()
    elif transport == "stdio":
        yield stdio(processes.awkward_command())
    elif transport == "http":
        with processes.serve_awkward("http") as running:
            yield running.url
    else:
        with processes.serve_awkward("sse") as running:
            yield sse_client(running.url)


@contextlib.asynccontextmanager
async def connected(server: Any, **options: Any) -> AsyncGenerator[Client]:
    with anyio.fail_after(LIMIT):
        async with Client(server, **options) as client:
            yield client


async def list_pages(client: Client) -> list[list[str]]:
    pages: list[list[str]] = []
    cursor = None
    while True:
        page = await client.list_tools(cursor=cursor)
        pages.append([tool.name for tool in page.tools])
        cursor = page.next_cursor
        if cursor is None:
            return pages


def text_of(result: types.CallToolResult) -> str:
    return "".join(block.text for block in result.content if block.type == "text")


async def call(client: Client, name: str, **arguments: Any) -> str:
    return text_of(await client.call_tool(name, arguments))


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_awkward_lists_thirteen_tools_on_three_pages(transport: str, mode: str) -> None:
    with place_of_awkward(transport) as server:
        async with connected(server, mode=mode) as client:
            pages = await list_pages(client)
    assert [len(page) for page in pages] == [5, 5, 3]
    assert tuple(itertools.chain(*pages)) == awkward.TOOL_NAMES


async def test_awkward_refuses_a_cursor_that_it_never_gave(awkward_server: AwkwardServer) -> None:
    async with connected(awkward_server) as client:
        with pytest.raises(MCPError) as caught:
            await client.list_tools(cursor="bm9uc2Vuc2U=")
    assert caught.value.code == types.INVALID_PARAMS


@pytest.mark.parametrize("transport", ["in-process", "stdio"])
async def test_awkward_gives_every_kind_of_content(transport: str) -> None:
    with place_of_awkward(transport) as server:
        async with connected(server) as client:
            content: Any = (await client.call_tool("everything")).content
    kinds = [block.type for block in content]
    assert kinds == ["text", "image", "audio", "resource", "resource", "resource_link"]
    assert base64.b64decode(content[1].data) == awkward.PNG
    assert base64.b64decode(content[2].data) == awkward.WAV
    assert content[3].resource.text == "# Read me\n"
    assert base64.b64decode(content[4].resource.blob) == awkward.PDF
    assert content[5].size == 1_000_000


async def test_awkward_gives_structured_results(awkward_server: AwkwardServer) -> None:
    async with connected(awkward_server) as client:
        await list_pages(client)
        total = await client.call_tool("add", {"a": 2, "b": 3})
        dual = await client.call_tool("dual")
        bare = await client.call_tool("structured_only")
        with pytest.raises(RuntimeError, match=r"celsius|mild"):
            await client.call_tool("bad_output")
        unfit = await client.call_tool("add", {"a": 2})
    assert total.structured_content == {"sum": 5}
    assert json.loads(text_of(dual)) == dual.structured_content == awkward.STRUCTURED
    assert bare.content == []
    assert bare.structured_content == awkward.STRUCTURED
    assert unfit.is_error


async def test_awkward_fails_in_both_ways(awkward_server: AwkwardServer) -> None:
    async with connected(awkward_server) as client:
        failed = await client.call_tool("fail")
        with pytest.raises(MCPError) as refused:
            await client.call_tool("rpc_error")
        with pytest.raises(MCPError):
            await client.call_tool("no_such_tool")
        spared = await client.call_tool("crash")
    assert failed.is_error
    assert refused.value.code == types.INVALID_PARAMS
    assert refused.value.data == {"hint": "no hint"}
    assert spared.is_error


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_awkward_tells_of_cancellations_and_stays_usable(transport: str, mode: str) -> None:
    with place_of_awkward(transport) as server:
        async with connected(server, mode=mode) as client:
            scope = anyio.CancelScope()

            async def hear(progress: float, total: float | None, message: str | None) -> None:
                scope.cancel()

            with scope:
                await client.call_tool("slow", {"seconds": LIMIT}, progress_callback=hear)
            assert await call(client, "cancellations", at_least=1) == "1"
            assert await call(client, "slow", seconds=0, steps=2) == "Done after 2 steps."


async def test_awkward_process_can_crash_in_a_call(awkward_http: RunningServer) -> None:
    async with connected(stdio(processes.awkward_command())) as client:
        with pytest.raises(MCPError, match="closed"):
            await client.call_tool("crash")
    with contextlib.suppress(Exception):
        async with connected(awkward_http.url) as client:
            await client.call_tool("crash")
    assert awkward_http.process.wait(LIMIT) == awkward.EXIT_CODE


async def test_awkward_grows_and_says_so_to_subscribers(awkward_http: RunningServer) -> None:
    async with (
        connected(awkward_http.url) as client,
        client.listen(tools_list_changed=True) as changes,
    ):
        assert await call(client, "grow") == "grown_1"
        await changes.__anext__()
        assert (await list_pages(client))[-1][-1] == "grown_1"
        assert await call(client, "grown_1") == "grown_1 at your service."


async def test_awkward_grows_and_says_so_to_clients_of_the_handshake() -> None:
    changed = anyio.Event()

    async def hear(message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            changed.set()

    command = stdio(processes.awkward_command())
    async with connected(command, mode="legacy", message_handler=hear) as client:
        assert client.server_capabilities.tools
        assert client.server_capabilities.tools.list_changed
        await client.call_tool("grow")
        await changed.wait()


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_awkward_asks_in_rounds(transport: str, mode: str) -> None:
    names = iter(["Ada", "Grace"])

    async def answer(context: Any, params: Any) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content={"name": next(names)})

    with place_of_awkward(transport) as server:
        async with connected(server, mode=mode, elicitation_callback=answer) as client:
            assert await call(client, "ask", rounds=2) == "Hello, Ada and Grace!"


async def test_awkward_greets_nobody_who_declines(awkward_server: AwkwardServer) -> None:
    async def decline(context: Any, params: Any) -> types.ElicitResult:
        return types.ElicitResult(action="decline")

    async with connected(awkward_server, elicitation_callback=decline) as client:
        assert (await client.call_tool("ask")).is_error


async def test_awkward_wants_its_state_back_unchanged(awkward_server: AwkwardServer) -> None:
    async with connected(awkward_server) as client:
        asked = await client.session.call_tool("ask", {}, allow_input_required=True)
        assert isinstance(asked, types.InputRequiredResult)
        reply = types.ElicitResult(action="accept", content={"name": "Ada"})
        state = asked.request_state or ""
        with pytest.raises(MCPError, match="never issued"):
            await client.call_tool(
                "ask", {}, input_responses={"name": reply}, request_state=state.strip()
            )
        greeted = await client.call_tool(
            "ask", {}, input_responses={"name": reply}, request_state=state
        )
    assert text_of(greeted) == "Hello, Ada!"


def ask_raw(scenario: str, *requests: tuple[str, dict[str, Any]]) -> list[Any]:
    lines = [
        json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        for number, (method, params) in enumerate(requests)
    ]
    outcome = subprocess.run(
        processes.raw_command(scenario),
        input="\n".join(lines),
        capture_output=True,
        text=True,
        check=True,
        timeout=LIMIT,
    )
    replies = [line for line in outcome.stdout.splitlines() if line.startswith('{"jsonrpc"')]
    return [json.loads(reply) for reply in replies]


def list_raw(scenario: str, **params: Any) -> Any:
    (reply,) = ask_raw(scenario, ("tools/list", params))
    return reply["result"]


async def test_raw_is_a_sound_server_by_default(raw_command: Callable[[str], list[str]]) -> None:
    async with connected(stdio(raw_command("sound"))) as client:
        assert client.protocol_version == "2025-06-18"
        assert await list_pages(client) == [["good", "also_good"]]
        assert await call(client, "good") == "good was called"


@pytest.mark.parametrize("scenario", ["empty-schema", "malformed-tools"])
async def test_raw_lists_what_the_sdk_cannot_read(scenario: str) -> None:
    listed = list_raw(scenario)["tools"]
    assert [listed[0], listed[-1]] == [raw.GOOD, raw.ALSO_GOOD]
    async with connected(stdio(processes.raw_command(scenario)), mode="legacy") as client:
        with pytest.raises(pydantic.ValidationError):
            await client.list_tools()


def test_raw_never_ends_its_lists() -> None:
    assert list_raw("stuck-cursor")["nextCursor"] == "again"
    assert list_raw("stuck-cursor", cursor="again")["nextCursor"] == "again"
    assert list_raw("endless-pages", cursor="7")["nextCursor"] == "8"
    assert list_raw("endless-empty-pages", cursor="7") == {"tools": [], "nextCursor": "8"}


def test_raw_spoils_names_schemas_and_contents() -> None:
    first, second = list_raw("duplicate-names"), list_raw("duplicate-names", cursor="2")
    assert first["tools"][1]["name"] == second["tools"][0]["name"] == "twin"
    assert len(list_raw("broken-schema")["tools"]) == 4
    good = ("tools/call", {"name": "good"})
    assert ask_raw("unknown-content", good)[0]["result"]["content"][1]["type"] == "hologram"
    assert ask_raw("missing-content", good)[0]["result"] == {}
    assert ask_raw("noise", good)[0]["id"] == 0
    assert [reply["id"] for reply in ask_raw("mute", good, ("ping", {}))] == [1]
    assert ask_raw("deaf", good, ("initialize", {})) == []


_OF_ITS_OWN_MIND = {"deaf", "fickle", "modern", "reticent", "tardy", "touchy", "weary"}


@pytest.mark.parametrize("scenario", sorted({*raw.SCENARIOS} - _OF_ITS_OWN_MIND))
def test_raw_refuses_the_new_era_and_goes_on_in_most_scenarios(scenario: str) -> None:
    replies = ask_raw(scenario, ("server/discover", {}), ("ping", {}))
    assert [replies[0]["error"]["code"], replies[1]["result"]] == [-32601, {}]


def test_raw_takes_the_question_for_the_new_era_otherwise_where_that_is_the_point() -> None:
    questions = ("server/discover", {}), ("ping", {})
    assert [reply["id"] for reply in ask_raw("reticent", *questions)] == [1]
    for scenario in ("fickle", "modern"):
        found = ask_raw(scenario, *questions)[0]["result"]
        assert found["supportedVersions"] == ["2026-07-28"]
    with pytest.raises(subprocess.CalledProcessError):
        ask_raw("touchy", *questions)


async def test_everything_serves_over_stdio(everything_command: list[str]) -> None:
    async with connected(stdio(everything_command)) as client:
        assert await call(client, "echo", message="hello") == "Echo: hello"


async def test_everything_serves_over_http_and_sse(
    everything_http: RunningServer, everything_sse: RunningServer
) -> None:
    for server in (everything_http.url, sse_client(everything_sse.url)):
        async with connected(server) as client:
            assert await call(client, "echo", message="hello") == "Echo: hello"


async def test_filesystem_and_memory_serve(
    filesystem_command: list[str], memory_command: list[str], tmp_path: Path
) -> None:
    (tmp_path / "note.txt").write_text("found")
    async with connected(stdio([*filesystem_command, str(tmp_path)])) as client:
        listing = await call(client, "list_directory", path=str(tmp_path))
    assert "note.txt" in listing
    memory = stdio(memory_command, MEMORY_FILE_PATH=str(tmp_path / "memory.jsonl"))
    async with connected(memory) as client:
        assert "entities" in await call(client, "read_graph")


async def test_time_and_git_serve(
    time_command: list[str], git_command: list[str], tmp_path: Path
) -> None:
    async with connected(stdio(time_command)) as client:
        assert "Oslo" in await call(client, "get_current_time", timezone="Europe/Oslo")
    await anyio.run_process(["git", "init", "--quiet", str(tmp_path)])
    async with connected(stdio([*git_command, "--repository", str(tmp_path)])) as client:
        assert "git_status" in itertools.chain(*await list_pages(client))


TELLING = """
import os, sys
print(sys.argv, os.getcwd(), os.environ["MARK"], sys.stdin.read(), __name__, flush=True)
print("\u20ac at last", file=sys.stderr)
sys.exit(7)
"""


@pytest.mark.parametrize("as_module", [False, True])
def test_a_forked_program_is_what_python_makes_of_it(tmp_path: Path, as_module: bool) -> None:
    (tmp_path / "telling.py").write_text(TELLING, encoding="utf-8")
    program = ["-m", "telling"] if as_module else [str(tmp_path / "telling.py")]
    environment = {**os.environ, "MARK": "x", "PYTHONPATH": str(tmp_path)}
    ours, pythons = (
        subprocess.run(
            [*command, "one", "two"],
            cwd=tmp_path,
            env=environment | {"PYTHONIOENCODING": "utf-8"},
            input="said",
            capture_output=True,
            encoding="utf-8",
            timeout=LIMIT,
            check=False,
        )
        for command in (processes.fork_command(*program), [sys.executable, *program])
    )
    assert (ours.returncode, ours.stdout, ours.stderr) == (7, pythons.stdout, pythons.stderr)
    assert "said __main__" in ours.stdout


def test_a_forked_program_does_not_outlive_who_started_it(tmp_path: Path) -> None:
    waiting = "import sys, threading\nprint('up', flush=True)\nthreading.Event().wait()"
    (tmp_path / "waiting.py").write_text(waiting, encoding="utf-8")
    command = processes.fork_command(str(tmp_path / "waiting.py"))
    with subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        process.kill()
        guard = threading.Timer(LIMIT, process.stdout.close)
        guard.start()
        assert process.stdout.read() == "", "it holds its output no more"
        guard.cancel()
