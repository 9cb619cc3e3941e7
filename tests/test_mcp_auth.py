# SPDX-License-Identifier: Apache-2.0
"""An `httpx2.Auth` signs what an HTTP client sends, and may ask elsewhere for what it signs with."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager

import anyio
import httpx2
import pytest

import converser
from tests.servers import processes

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

    def log_message(self, *_: object) -> None:
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
