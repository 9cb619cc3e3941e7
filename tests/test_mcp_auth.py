# SPDX-License-Identifier: Apache-2.0
"""An `httpx2.Auth` signs what an HTTP client sends, and may ask elsewhere for what it signs with."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import anyio
import httpx2
import pytest
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.shared.auth import OAuthClientMetadata
from pydantic import AnyUrl

import converser
from tests.conformance.logins import Memory
from tests.servers import processes
from tests.servers.gated import Gate, read_way_back, serve_gated

pytestmark = pytest.mark.anyio


class Refusal(http.server.BaseHTTPRequestHandler):
    """A token endpoint that refuses, as the standard says."""

    def do_POST(self) -> None:
        body = json.dumps({"error": "invalid_grant"}).encode()
        self.send_response(400)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (its name there)
        pass


@contextmanager
def serve_refusals() -> Generator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refusal) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/token"
        finally:
            server.shutdown()
            thread.join()


class Login(httpx2.Auth):
    """Asks for a token before its first request, and signs all requests."""

    def __init__(self, endpoint: str = "") -> None:
        self._endpoint = endpoint
        self.answers: list[tuple[int, str]] = []
        self.signed = 0

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        if self._endpoint and not self.answers:
            response = yield httpx2.Request("POST", self._endpoint, data={"grant_type": "x"})
            body = await response.aread()
            self.answers.append((response.status_code, body.decode()))
        request.headers["authorization"] = "Bearer token"
        self.signed += 1
        yield request


async def test_every_request_is_signed() -> None:
    login = Login()
    with processes.serve_awkward("http") as server, anyio.fail_after(30):
        client = converser.HttpMCPClient(server.url, auth=login)
        async with await converser.discover_mcp_tools(client, "signed") as ensemble:
            before = login.signed
            await ensemble.access_invoker("echo")({"text": "hello"})
            assert before >= 2  # it connected and listed
            assert login.signed == before + 1


async def test_a_login_sees_the_answers_of_its_own_server_as_they_are() -> None:
    with (
        serve_refusals() as endpoint,
        processes.serve_awkward("http") as server,
        anyio.fail_after(30),
    ):
        login = Login(endpoint)
        client = converser.HttpMCPClient(server.url, auth=login)
        async with await converser.discover_mcp_tools(client, "signed"):
            assert login.answers == [(400, '{"error": "invalid_grant"}')]


async def test_a_login_whose_server_is_away_hears_of_it_and_ends_nothing() -> None:
    with processes.serve_awkward("http") as server, anyio.fail_after(30):
        login = Login("http://127.0.0.1:9/token")
        client = converser.HttpMCPClient(server.url, auth=login)
        async with await converser.discover_mcp_tools(client, "signed") as ensemble:
            assert (await ensemble.access_invoker("echo")({"text": "x"})).text == "x"
    assert [status for status, _ in login.answers] == [503]


class Person:
    """Visits the page of an authorization server, takes a while, and agrees or does not."""

    def __init__(self, *, agrees: bool = True, hesitates: float = 0.0) -> None:
        self._agrees = agrees
        self._hesitates = hesitates
        self._brought: dict[str, str] = {}
        self.visits = 0

    async def visit(self, page: str) -> None:
        self.visits += 1
        async with httpx2.AsyncClient() as browser:
            response = await browser.get(page, follow_redirects=False)
        self._brought = read_way_back(response.headers["location"])

    async def come_back(self) -> AuthorizationCodeResult:
        await anyio.sleep(self._hesitates)
        if not self._agrees:
            raise PermissionError("The person closed the window.")
        return AuthorizationCodeResult(code=self._brought["code"], state=self._brought["state"])

    def log_in(self, url: str) -> OAuthClientProvider:
        metadata = OAuthClientMetadata(redirect_uris=[AnyUrl("http://localhost:1/back")])
        return OAuthClientProvider(
            url,
            metadata,
            Memory(),
            redirect_handler=self.visit,
            callback_handler=self.come_back,
        )


@pytest.fixture
def gate() -> Generator[Gate]:
    with serve_gated() as found:
        yield found


async def test_without_a_token_a_server_needs_auth(gate: Gate) -> None:
    server = converser.MCPServer.http("gated", gate.url)
    with anyio.fail_after(30):
        async with converser.Roster([server]) as roster:
            survey = roster.survey()["gated"]
    assert survey.state == "needs-auth"
    assert isinstance(survey.error, converser.MCPConnectionFailure)
    assert survey.error.status == 401
    assert "headers" in survey.remedy


async def test_a_person_logs_in_and_that_takes_as_long_as_it_takes(gate: Gate) -> None:
    person = Person(hesitates=1.5)
    client = converser.HttpMCPClient(gate.url, auth=person.log_in(gate.url), connect_timeout=0.7)
    with anyio.fail_after(30):
        async with await converser.discover_mcp_tools(client, "gated") as ensemble:
            assert (await ensemble.access_invoker("quick")()).text == "quick is done"
    assert person.visits == 1


async def test_a_login_during_a_call_does_not_count_against_its_timeout(gate: Gate) -> None:
    person = Person(hesitates=1.5)
    client = converser.HttpMCPClient(gate.url, auth=person.log_in(gate.url))
    with anyio.fail_after(30):
        result = await client.call_tool("quick", {}, context=converser.Context(timeout=1.0))
        await client.disconnect()
    assert result.text == "quick is done"


async def test_a_login_that_fails_is_told_with_a_remedy_and_asked_for_once(gate: Gate) -> None:
    person = Person(agrees=False)
    client = converser.HttpMCPClient(gate.url, auth=person.log_in(gate.url))
    with anyio.fail_after(30), pytest.raises(converser.MCPConnectionFailure) as caught:
        await client.connect()
    assert "The login failed: The person closed the window." in str(caught.value)
    assert "complete the login" in caught.value.remedy
    assert caught.value.status == 401
    assert client.state == "needs-auth"
    assert person.visits == 1
    await client.disconnect()


class Signature(httpx2.Auth):
    """Signs with a token, and has no way to get another one."""

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        request.headers["authorization"] = "Bearer old"
        response = yield request
        if response.status_code == 401:
            raise RuntimeError("There is no other token.")


async def test_a_login_that_fails_later_ends_no_call_of_others(gate: Gate) -> None:
    gate.tokens.add("old")
    client = converser.HttpMCPClient(gate.url, auth=Signature())
    with anyio.fail_after(30):
        async with await converser.discover_mcp_tools(client, "gated") as ensemble:
            async with calling_slowly(ensemble, gate) as others:
                gate.tokens.clear()
                with pytest.raises(converser.ToolExecutionFailure, match="no other token"):
                    await ensemble.access_invoker("quick")()
                assert client.state == "needs-auth"
                gate.release.set()
            assert others == ["slow is done"]


async def test_a_token_that_was_renewed_is_taken_up(gate: Gate, tmp_path: Path) -> None:
    """A call that the old token was refused for is made again, in a session with the new one."""
    token = tmp_path / "token"
    token.write_text("Bearer old")
    gate.tokens.add("old")
    server = converser.MCPServer.http("gated", gate.url, headers={"Authorization": f"file:{token}"})
    with anyio.fail_after(30):
        async with converser.Roster([server]) as roster:
            ensemble = roster.access_ensemble("gated")
            quick = ensemble.access_invoker("quick")
            async with calling_slowly(ensemble, gate) as others:
                gate.tokens.clear()
                with pytest.raises(converser.ToolExecutionFailure, match="HTTP status 401"):
                    await quick()
                assert roster.survey()["gated"].state == "needs-auth"
                token.write_text("Bearer new")
                gate.tokens.add("new")
                assert (await quick()).text == "quick is done"
                assert roster.survey()["gated"].state == "connected"
                gate.tokens.remove("new")
                token.write_text("Bearer newer")
                gate.tokens.add("newer")
                assert (await quick()).text == "quick is done"
                gate.release.set()
            assert others == ["slow is done"]


async def test_what_is_only_forbidden_ends_no_session(gate: Gate) -> None:
    gate.tokens.add("good")
    client = converser.HttpMCPClient(gate.url, {"Authorization": "Bearer good"})
    with anyio.fail_after(30):
        async with await converser.discover_mcp_tools(client, "gated") as ensemble:
            gate.refuses_tools = 403
            with pytest.raises(converser.ToolExecutionFailure, match="HTTP status 403"):
                await ensemble.access_invoker("quick")()
            gate.refuses_tools = 0
            assert (await ensemble.access_invoker("quick")()).text == "quick is done"
    assert gate.asked.count("initialize") == 1


@asynccontextmanager
async def calling_slowly(
    ensemble: converser.Ensemble, gate: Gate
) -> AsyncGenerator[list[str], None]:
    """Has a call under way in the block; its result is there afterwards."""
    found: list[str] = []

    async def call() -> None:
        found.append((await ensemble.access_invoker("slow")()).text)

    async with anyio.create_task_group() as group:
        group.start_soon(call)
        await anyio.to_thread.run_sync(gate.called.wait, 10)
        yield found
