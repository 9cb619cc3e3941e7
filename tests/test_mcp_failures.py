# SPDX-License-Identifier: Apache-2.0
"""Whatever goes wrong is one failure of our family that says who, what, why and what to do; never a secret."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import MCPError
from mcp.server import Server

import converser
from tests.faults.overhttp.sound import Sound
from tests.faults.overhttp.wire import HttpServer, Line, Request
from tests.places import LIMIT, Marked, walk_causes
from tests.servers import processes

pytestmark = pytest.mark.anyio

CANARY = "canary-5f1e0d2c"
Answer = tuple[int, dict[str, str], bytes]
Reply = Callable[["Web", str, dict[str, str], dict[str, Any]], "Answer | None"]


class Web:
    """An MCP server of the older era over HTTP, without any SDK; `reply` may answer in its place."""

    def __init__(self) -> None:
        self.reply: Reply = lambda *_: None
        self.session = "session-1"
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.url = ""

    def handle(self, method: str, headers: dict[str, str], body: dict[str, Any]) -> Answer:
        self.requests.append((method, headers))
        given = self.reply(self, method, headers, body)
        if given is not None:
            return given
        if method != "POST":
            return 405, {}, b""
        if "id" not in body:
            return 202, {}, b""
        return self.answer(body)

    def answer(self, body: dict[str, Any]) -> Answer:
        """Answer like a sound server."""
        results: dict[str, Any] = {
            "initialize": {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "web", "version": "1"},
            },
            "tools/list": {"tools": [{"name": "good", "inputSchema": {"type": "object"}}]},
            "tools/call": {"content": [{"type": "text", "text": "called"}]},
        }
        result = results.get(body["method"])
        if result is None:
            return send_json(
                400, error={"code": -32601, "message": "Method not found"}, id=body["id"]
            )
        status, headers, content = send_json(200, result=result, id=body["id"])
        return status, {**headers, "mcp-session-id": self.session}, content


def send_json(status: int, **fields: Any) -> Answer:
    content = json.dumps({"jsonrpc": "2.0", **fields}).encode()
    return status, {"content-type": "application/json"}, content


@pytest.fixture
def web() -> Iterator[Web]:
    served = Web()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _handle(self) -> None:
            length = int(self.headers.get("content-length", 0))
            body = json.loads(self.rfile.read(length) or b"{}")
            lowered = {name.lower(): value for name, value in self.headers.items()}
            status, headers, content = served.handle(self.command, lowered, body)
            if status == 0:  # hang up without a word
                self.connection.shutdown(socket.SHUT_RDWR)
                self.close_connection = True
                return
            self.send_response(status)
            for name, value in {**headers, "content-length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_DELETE = _handle  # noqa: N815

        def log_message(self, *_: object) -> None: ...

    class QuietServer(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None: ...  # clients may hang up as they like

    with QuietServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        served.url = f"http://127.0.0.1:{server.server_address[1]}/mcp"
        yield served
        server.shutdown()
        thread.join(LIMIT)


def always(answer: Answer, method: str | None = None) -> Reply:
    """Gives this answer to all requests, or to those of one method."""

    def reply(web: Web, _: str, headers: dict[str, str], body: dict[str, Any]) -> Answer | None:
        return answer if method is None or body.get("method") == method else None

    return reply


async def fail_to_connect(client: converser.MCPClient) -> converser.MCPFailure:
    """The failure of a client that cannot be connected, which must be one of ours."""
    with anyio.fail_after(LIMIT), pytest.raises(converser.MCPFailure) as caught:
        await client.connect()
    is_denied = any(f"status {code}" in str(caught.value) for code in (401, 403))
    states = converser.ConnectionState
    assert client.state is (states.NEEDS_AUTH if is_denied else states.FAILED)
    with anyio.fail_after(LIMIT):
        await client.disconnect()
    return caught.value


# --- Over stdio ---------------------------------------------------------------------------------


async def test_a_command_that_is_not_there_is_told_at_once() -> None:
    client = converser.StdioMCPClient(["no-such-program-here", CANARY], name="absent")
    with anyio.fail_after(4):
        failure = await fail_to_connect(client)
    assert isinstance(failure, converser.MCPConnectionFailure)
    assert (failure.server, failure.tool, failure.transport) == ("absent", "", "stdio")
    assert isinstance(failure.cause, FileNotFoundError)
    assert failure.__cause__ is failure.cause
    assert "no-such-program-here" in str(failure)
    assert "command" in failure.remedy
    assert CANARY not in str(failure)


async def test_a_file_that_is_not_executable_is_told(tmp_path: Path) -> None:
    program = tmp_path / "server"
    program.write_text("#!/bin/sh\n")
    failure = await fail_to_connect(converser.StdioMCPClient([str(program)]))
    assert isinstance(failure.cause, PermissionError)
    assert "executable" in failure.remedy


async def test_a_working_directory_that_is_not_there_is_told(tmp_path: Path) -> None:
    client = converser.StdioMCPClient([sys.executable], cwd=tmp_path / "nowhere")
    failure = await fail_to_connect(client)
    assert isinstance(failure, converser.MCPConnectionFailure)
    assert "nowhere" in str(failure)
    assert "cwd" in failure.remedy


@pytest.mark.parametrize("command", [[], [""], ""])
def test_a_client_without_a_command_is_refused(command: Any) -> None:
    with pytest.raises(converser.ConfigurationFailure) as caught:
        converser.StdioMCPClient(command)
    assert caught.value.remedy


async def test_a_server_that_exits_at_its_start_is_quoted() -> None:
    words = "import sys; sys.stderr.write('first\\n\\x1b[31mNo API key\\n'); sys.exit(3)"
    failure = await fail_to_connect(converser.StdioMCPClient([sys.executable, "-c", words]))
    assert isinstance(failure, converser.MCPConnectionFailure)
    assert "No API key" in str(failure)
    assert "\x1b" not in str(failure)
    assert failure.remedy


async def test_a_server_that_does_not_answer_is_a_timeout_and_leaves_no_process() -> None:
    deaf = Marked(processes.raw_command("deaf"))
    client = converser.StdioMCPClient(deaf.command, name="deaf", connect_timeout=0.3)
    failure = await fail_to_connect(client)
    assert isinstance(failure, converser.MCPTimeoutFailure)
    assert failure.outcome is converser.Outcome.TIMED_OUT
    assert "0.3 s" in str(failure)
    assert "connect_timeout" in failure.remedy
    assert deaf.find_processes() == []


async def test_a_server_that_does_not_list_is_a_timeout() -> None:
    code = (
        "from tests.servers import raw\n"
        "def never(*_): raise raw._NoAnswer\n"
        "raw.Scenario.list_tools = never\nraw.main()\n"
    )
    client = converser.StdioMCPClient(
        [sys.executable, "-c", code],
        {"PYTHONPATH": str(Path(__file__).parent.parent)},
        connect_timeout=1,
    )
    with anyio.fail_after(LIMIT), pytest.raises(converser.MCPTimeoutFailure) as caught:
        await converser.discover_mcp_tools(client, "mute")
    assert caught.value.server == "mute"
    assert caught.value.remedy


async def test_a_call_that_is_not_answered_times_out(raw_command: Callable[[str], Any]) -> None:
    client = converser.StdioMCPClient(raw_command("mute"))
    context = converser.Context(timeout=0.2)
    with anyio.fail_after(LIMIT):
        with pytest.raises(converser.MCPTimeoutFailure) as caught:
            await client.call_tool("good", {}, context=context)
        assert (await client.call_tool("also_good", {})).text == "also_good was called"
        await client.disconnect()
    assert caught.value.tool == "good"
    assert caught.value.outcome is converser.Outcome.TIMED_OUT


async def test_a_failure_of_no_known_kind_has_a_remedy_too() -> None:
    failure = await fail_to_connect(converser.HttpMCPClient("http://127.0.0.1:99999/mcp"))
    assert "port must be 0-65535. Check its configuration" in str(failure)


async def test_a_server_of_an_unknown_protocol_is_told() -> None:
    code = (
        "from tests.servers import raw\n"
        "answer = raw.Scenario.answer\n"
        "def odd(self, method, parameters):\n"
        "    result = answer(self, method, parameters)\n"
        "    return {**result, 'protocolVersion': '1999-01-01'} if method == 'initialize' else result\n"
        "raw.Scenario.answer = odd\nraw.main()\n"
    )
    environment = {"PYTHONPATH": str(Path(__file__).parent.parent)}
    failure = await fail_to_connect(
        converser.StdioMCPClient([sys.executable, "-c", code], environment)
    )
    assert isinstance(failure, converser.MCPProtocolFailure)
    assert "1999-01-01" in str(failure)
    assert failure.exit_code is None  # it was us who ended it, as there was no agreement
    assert "exit code" not in str(failure)


async def test_who_waits_together_fails_together() -> None:
    client = converser.StdioMCPClient([sys.executable, "-c", "import sys; sys.exit('broken')"])
    with anyio.fail_after(LIMIT):
        outcomes = await asyncio.gather(
            *(client.connect() for _ in range(5)), return_exceptions=True
        )
        await client.disconnect()
    assert all(isinstance(each, converser.MCPConnectionFailure) for each in outcomes)


async def test_a_failed_client_tries_again_when_asked_again(tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    raw = str(Path(processes.__file__).with_name("raw.py"))
    code = (
        f"import pathlib, runpy, sys\n"
        f"sys.argv[1:] = ['sound']\n"
        f"if not pathlib.Path({str(flag)!r}).exists(): sys.exit('not yet')\n"
        f"runpy.run_path({raw!r}, run_name='__main__')\n"
    )
    client = converser.StdioMCPClient([sys.executable, "-c", code])
    with anyio.fail_after(LIMIT):
        with pytest.raises(converser.MCPConnectionFailure, match="not yet"):
            await client.connect()
        flag.touch()
        assert (await client.call_tool("good", {})).text == "good was called"
        await client.disconnect()


# --- Over HTTP ----------------------------------------------------------------------------------


async def test_the_small_server_is_sound(web: Web) -> None:
    client = converser.HttpMCPClient(web.url, {"authorization": CANARY})
    with anyio.fail_after(LIMIT):
        async with await converser.discover_mcp_tools(client, "web") as ensemble:
            assert client.protocol_version == "2025-06-18"
            assert (await ensemble.access_invoker("good")()).text == "called"
    assert all(headers["authorization"] == CANARY for _, headers in web.requests)


@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_a_server_that_is_not_there_is_told(transport: str) -> None:
    create = converser.HttpMCPClient if transport == "http" else converser.SseMCPClient
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as listener:
        port = listener.getsockname()[1]
    failure = await fail_to_connect(create(f"http://127.0.0.1:{port}/x", name="gone"))
    assert isinstance(failure, converser.MCPConnectionFailure)
    assert (failure.server, failure.transport) == ("gone", transport)
    assert failure.cause is not None
    assert failure.remedy
    assert ".." not in str(failure)


@pytest.mark.parametrize("transport", ["http", "sse"])
@pytest.mark.parametrize(
    ("status", "remedy"),
    [(401, "headers"), (403, "headers"), (404, "url"), (429, "later"), (500, "later")],
)
@pytest.mark.parametrize("kind", ["text/html", "application/json"])
async def test_the_status_of_a_refusal_is_told_with_a_remedy(
    web: Web, transport: str, status: int, remedy: str, kind: str
) -> None:
    body = b'{"detail": "no"}' if "json" in kind else b"<h1>No</h1>"
    web.reply = always((status, {"content-type": kind}, body))
    create = converser.HttpMCPClient if transport == "http" else converser.SseMCPClient
    failure = await fail_to_connect(create(web.url))
    assert isinstance(failure, converser.MCPConnectionFailure)
    assert str(status) in str(failure)
    assert remedy in failure.remedy
    assert failure.transport == transport


async def test_how_long_to_wait_is_told(web: Web) -> None:
    with anyio.fail_after(LIMIT):
        client = converser.HttpMCPClient(web.url)
        await client.connect()
        web.reply = always((429, {"retry-after": "17"}, b""), "tools/call")
        with pytest.raises(converser.MCPConnectionFailure, match=r"429.*17 s"):
            await client.call_tool("good", {})
        await client.disconnect()


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        ((500, {}, b"oops"), converser.Outcome.UNKNOWN),
        ((502, {}, b"oops"), converser.Outcome.UNKNOWN),
        ((504, {"content-type": "application/json"}, b"{}"), converser.Outcome.UNKNOWN),
        ((503, {}, b"oops"), converser.Outcome.TOOL_ERROR),
        ((413, {}, b"oops"), converser.Outcome.TOOL_ERROR),
        ((0, {}, b""), converser.Outcome.UNKNOWN),
        ((200, {"content-type": "text/event-stream"}, b": nothing\n\n"), converser.Outcome.UNKNOWN),
    ],
    ids=["500", "502", "504", "503", "413", "hung up", "stream ended"],
)
async def test_a_call_that_may_have_taken_effect_has_an_unknown_outcome(
    web: Web, answer: Answer, outcome: converser.Outcome
) -> None:
    client = converser.HttpMCPClient(web.url)
    with anyio.fail_after(LIMIT):
        async with await converser.discover_mcp_tools(client, "web") as ensemble:
            web.reply = always(answer, "tools/call")
            with pytest.raises(converser.ToolExecutionFailure) as caught:
                await ensemble.access_invoker("good")()
            web.reply = always(answer, "nothing")
            assert (await ensemble.access_invoker("good")()).text == "called"
    assert isinstance(caught.value.__cause__, converser.MCPFailure)
    assert caught.value.outcome is outcome
    assert caught.value.remedy


@pytest.mark.parametrize(
    "answer",
    [
        (404, {}, b""),
        (404, {"content-type": "text/html"}, b"Not Found"),
        send_json(404, error={"code": -32001, "message": "Session not found"}, id=None),
        send_json(404, error={"code": -32600, "message": "Session not found"}, id="server-error"),
        send_json(
            400, error={"code": -32000, "message": "Bad Request: No valid session ID provided"}
        ),
    ],
    ids=["bare", "html", "typescript", "python", "everything"],
)
async def test_a_server_that_forgot_the_session_is_connected_anew(web: Web, answer: Answer) -> None:
    def forget(web: Web, _: str, headers: dict[str, str], body: dict[str, Any]) -> Answer | None:
        known = headers.get("mcp-session-id") in (None, "session-2")
        return None if known else answer

    client = converser.HttpMCPClient(web.url)
    with anyio.fail_after(LIMIT):
        await client.connect()
        web.session, web.reply = "session-2", forget
        # It may be tried again at once, since it never ran; or fail, and the next one works.
        with contextlib.suppress(converser.MCPFailure):
            await client.call_tool("good", {})
        assert (await client.call_tool("good", {})).text == "called"
        await client.disconnect()


async def test_a_late_failure_of_a_lost_session_does_not_end_the_new_one(web: Web) -> None:
    hold, held = threading.Event(), threading.Event()
    lost = send_json(404, error={"code": -32600, "message": "Session not found"}, id=1)

    def forget(web: Web, _: str, headers: dict[str, str], body: dict[str, Any]) -> Answer | None:
        if body.get("method") != "tools/call" or headers.get("mcp-session-id") != "session-1":
            return None
        if body["params"]["arguments"].get("late"):
            held.set()
            assert hold.wait(LIMIT)
        return lost

    client = converser.HttpMCPClient(web.url)
    with anyio.fail_after(LIMIT):
        await client.connect()
        web.session, web.reply = "session-2", forget
        late = asyncio.create_task(client.call_tool("good", {"late": True}))
        assert await asyncio.to_thread(held.wait, LIMIT)
        with contextlib.suppress(converser.MCPFailure):
            await client.call_tool("good", {})
        await client.connect()
        before = len([1 for method, _ in web.requests if method == "DELETE"])
        hold.set()
        with contextlib.suppress(converser.MCPFailure):
            await late
        assert client.state is converser.ConnectionState.CONNECTED
        assert (await client.call_tool("good", {})).text == "called"
        await client.disconnect()
    assert before <= 1


async def test_an_error_body_without_end_is_not_read_to_its_end(web: Web) -> None:
    endless = b'{"error": "' + b"x" * 3_000_000 + b'"}'
    web.reply = always((500, {"content-type": "application/json"}, endless))
    failure = await fail_to_connect(converser.HttpMCPClient(web.url))
    assert "500" in str(failure)
    assert len(str(failure)) < 500


async def test_a_server_cannot_pretend_that_our_guard_spoke(web: Web) -> None:
    forged = {"converser/fault": {"status": 401, "session": True}, "hint": 1}
    error = {"code": -32000, "message": "Go away", "data": forged}
    client = converser.HttpMCPClient(web.url)
    with anyio.fail_after(LIMIT):
        await client.connect()
        web.reply = always(send_json(400, error=error, id=5), "tools/call")
        with pytest.raises(converser.MCPExecutionFailure, match="Go away"):
            await client.call_tool("good", {})
        await client.disconnect()


async def test_an_answer_that_is_no_json_is_a_failure_of_ours(web: Web) -> None:
    client = converser.HttpMCPClient(web.url)
    with anyio.fail_after(LIMIT):
        await client.connect()
        for kind, body in (("application/json", b"{nonsense"), ("text/html", b"<h1>Hi</h1>")):
            web.reply = always((200, {"content-type": kind}, body), "tools/call")
            with pytest.raises(converser.MCPFailure) as caught:
                await client.call_tool("good", {})
            assert caught.value.tool == "good"
        web.reply = lambda *_: None
        assert (await client.call_tool("good", {})).text == "called"
        await client.disconnect()


@pytest.mark.parametrize("fault", [5, None, {"status": "x"}, {"status": 404, "session": True}])
async def test_no_data_of_an_error_is_taken_for_ours(fault: Any) -> None:
    async def refuse(context: Any, params: Any) -> Any:
        raise MCPError(-32000, "No.", {"converser/fault": fault})

    client = converser.InProcessMCPClient(Server("s", on_call_tool=refuse))
    with anyio.fail_after(LIMIT):
        with pytest.raises(converser.MCPExecutionFailure, match=r"-32000: No\."):
            await client.call_tool("any", {})
        assert client.state is converser.ConnectionState.CONNECTED
        await client.disconnect()


# --- Secrets ------------------------------------------------------------------------------------


def assert_no_canary(texts: list[str]) -> None:
    assert not [text for text in texts if CANARY in text]


def show(failure: BaseException) -> list[str]:
    """All that a person could come to see of a failure, its causes included."""
    return [words for each in walk_causes(failure) for words in (str(each), repr(each))]


def our_logs(caplog: pytest.LogCaptureFixture) -> list[str]:
    formatter = logging.Formatter("%(message)s")
    return [formatter.format(r) for r in caplog.records if r.name.startswith("converser")]


async def test_values_of_the_environment_are_never_shown(
    caplog: pytest.LogCaptureFixture, raw_command: Callable[[str], Any]
) -> None:
    caplog.set_level(logging.DEBUG)
    leak = "import os, sys; sys.exit('Invalid key: ' + os.environ['KEY'])"
    environment = {"KEY": CANARY}
    dying = converser.StdioMCPClient([sys.executable, "-c", leak], environment)
    failure = await fail_to_connect(dying)
    assert "Invalid key" in str(failure)
    sound = converser.StdioMCPClient(raw_command("sound"), environment)
    with anyio.fail_after(LIMIT):
        async with await converser.discover_mcp_tools(sound, "sound") as ensemble:
            await ensemble.access_invoker("good")()
            shown = [repr(sound), str(sound), repr(ensemble), *ensemble.remarks]
    absent = await fail_to_connect(converser.StdioMCPClient(["no-such-program"], environment))
    broken = await fail_to_connect(
        converser.StdioMCPClient([sys.executable], {"KEY": f"{CANARY}\0"})
    )
    shown += [repr(dying), *show(failure), *show(absent), *show(broken)]
    assert_no_canary([*shown, *our_logs(caplog)])


@pytest.mark.parametrize("transport", ["http", "sse"])
@pytest.mark.parametrize(
    "value", [CANARY, f"{CANARY}\n", f" {CANARY}", f"{CANARY}é", f"{CANARY}☃", f"a\r\nb: {CANARY}"]
)
async def test_values_of_headers_are_never_shown(
    web: Web, transport: str, value: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    web.reply = always((401, {"content-type": "text/plain"}, b"no"))
    create = converser.HttpMCPClient if transport == "http" else converser.SseMCPClient
    client = create(web.url, {"Authorization": value})
    failure = await fail_to_connect(client)
    assert isinstance(failure, converser.MCPConnectionFailure)
    if value != CANARY:
        assert "'Authorization'" in str(failure)
        assert web.requests == []
    assert_no_canary([repr(client), *show(failure), *our_logs(caplog)])


@pytest.mark.parametrize("transport", ["http", "sse"])
@pytest.mark.parametrize("status", [401, 404, 500, 0])
async def test_keys_in_urls_are_never_shown(
    web: Web, transport: str, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    web.reply = always((status, {"content-type": "text/plain"}, b"no"))
    create = converser.HttpMCPClient if transport == "http" else converser.SseMCPClient
    client = create(f"{web.url}?key={CANARY}")
    failure = await fail_to_connect(client)
    assert_no_canary([repr(client), *show(failure), *our_logs(caplog)])


async def test_values_of_the_environment_are_not_shown_when_a_running_server_dies() -> None:
    code = (
        "import os, sys\nfrom tests.servers import raw\n"
        "def die(*_):\n"
        "    sys.stderr.write('Denied: ' + os.environ['KEY'] + '\\n'); sys.stderr.flush(); os._exit(1)\n"
        "raw.Scenario.call_tool = die\nraw.main()\n"
    )
    environment = {"KEY": CANARY, "PYTHONPATH": str(Path(__file__).parent.parent)}
    client = converser.StdioMCPClient([sys.executable, "-c", code], environment)
    with anyio.fail_after(LIMIT):
        with pytest.raises(converser.MCPConnectionFailure, match="Denied: ") as caught:
            await client.call_tool("good", {})
        await client.disconnect()
    assert caught.value.outcome is converser.Outcome.UNKNOWN
    assert_no_canary(show(caught.value))


async def test_no_failure_is_its_own_cause_and_none_is_a_group(web: Web) -> None:
    web.reply = always((401, {}, b""))
    failures = [
        await fail_to_connect(converser.HttpMCPClient(web.url)),
        await fail_to_connect(converser.SseMCPClient(web.url)),
        await fail_to_connect(converser.StdioMCPClient(["no-such-program"])),
        await fail_to_connect(converser.StdioMCPClient([sys.executable, "-c", ""])),
    ]
    for failure in failures:
        assert failure.__cause__ is not failure
        assert isinstance(failure.cause, Exception)
        assert not hasattr(failure.cause, "exceptions")


class Scatterbrained(Sound):
    """Forgets a session as soon as a tool is called, as replicas do that do not share theirs."""

    calls = 0

    async def trouble(self, request: Request, line: Line) -> None:
        self.calls += 1
        await line.respond(404)


async def test_a_call_that_no_session_lasts_for_was_surely_not_executed() -> None:
    behaviour = Scatterbrained()
    with HttpServer(behaviour).running() as server, anyio.fail_after(LIMIT):
        client = converser.HttpMCPClient(f"{server.origin}/mcp", reconnect_attempts=2)
        async with await converser.discover_mcp_tools(client, "h") as ensemble:
            with pytest.raises(converser.ToolExecutionFailure, match="forgotten") as caught:
                await ensemble.access_invoker("trouble")()
    assert behaviour.calls > 1
    assert caught.value.outcome is converser.Outcome.TOOL_ERROR
    assert "by hand" not in str(caught.value)
