# SPDX-License-Identifier: Apache-2.0
"""An HTTP server of the older era that lets nobody in without a token, and an authorization server beside it."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

JSON = dict[str, Any]


class Gate:
    """What the server lets in, and what it was asked; may be changed while it runs."""

    def __init__(self) -> None:
        self.tokens: set[str] = set()
        self.grants = "granted"
        """The token that a login gives."""
        self.refuses_tools = 0
        """The status that calls get, if not their result."""
        self.asked: list[str] = []
        self.release = threading.Event()
        """Ends the calls of the tool `slow`."""
        self.called = threading.Event()
        self.url = ""

    def let_in(self, header: str | None) -> bool:
        """Whether a token is good."""
        return (header or "").removeprefix("Bearer ") in self.tokens


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    gate: Gate

    def do_GET(self) -> None:
        origin = self.gate.url.rpartition("/")[0]
        place, _, query = self.path.partition("?")
        if place.startswith("/.well-known/oauth-protected-resource"):
            self._send(200, {"resource": self.gate.url, "authorization_servers": [origin]})
        elif place.startswith("/.well-known/oauth-authorization-server"):
            self._send(200, _describe_authority(origin))
        elif place == "/authorize":
            given = {key: values[0] for key, values in parse_qs(query).items()}
            back = f"{given['redirect_uri']}?code=good&state={given['state']}"
            self._send(302, {}, {"location": back})
        else:
            self._send(405, {})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        if self.path == "/register":
            self._send(201, {**json.loads(body), "client_id": "us"})
        elif self.path == "/token":
            self.gate.tokens.add(self.gate.grants)
            self._send(200, {"access_token": self.gate.grants, "token_type": "Bearer"})
        elif not self.gate.let_in(self.headers.get("authorization")):
            self._send(401, {}, {"www-authenticate": "Bearer"})
        else:
            self._answer(json.loads(body))

    def _answer(self, message: JSON) -> None:
        method = message["method"]
        self.gate.asked.append(method)
        if "id" not in message:
            self._send(202, {})
        elif method == "tools/call" and self.gate.refuses_tools:
            self._send(self.gate.refuses_tools, {})
        elif (result := self._find_result(method, message.get("params") or {})) is None:
            error = {"code": -32601, "message": "Method not found"}
            self._send(200, {"jsonrpc": "2.0", "id": message["id"], "error": error})
        else:
            self._send(200, {"jsonrpc": "2.0", "id": message["id"], "result": result})

    def _find_result(self, method: str, params: JSON) -> JSON | None:
        if method == "initialize":
            info = {"name": "gated", "version": "1"}
            tools: JSON = {"tools": {}}
            return {"protocolVersion": "2025-06-18", "capabilities": tools, "serverInfo": info}
        if method == "tools/list":
            names = ("quick", "slow")
            return {"tools": [{"name": each, "inputSchema": {"type": "object"}} for each in names]}
        if method == "tools/call":
            if params["name"] == "slow":
                self.gate.called.set()
                self.gate.release.wait(30)
            return {"content": [{"type": "text", "text": f"{params['name']} is done"}]}
        return None

    def _send(self, status: int, value: JSON, headers: dict[str, str] | None = None) -> None:
        body = json.dumps(value).encode() if value else b""
        self.send_response(status)
        for name, text in (headers or {}).items():
            self.send_header(name, text)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (its name there)
        pass


def _describe_authority(origin: str) -> JSON:
    return {
        "issuer": origin,
        "authorization_endpoint": f"{origin}/authorize",
        "token_endpoint": f"{origin}/token",
        "registration_endpoint": f"{origin}/register",
        "response_types_supported": ["code"],
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none"],
    }


def read_way_back(location: str) -> dict[str, str]:
    """What an authorization server sends a person back with."""
    return {key: values[0] for key, values in parse_qs(urlsplit(location).query).items()}


@contextmanager
def serve_gated() -> Generator[Gate]:
    """Run both servers in a thread; what they let in is up to the gate."""
    gate = Gate()
    handler = type("Handler", (_Handler,), {"gate": gate})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        gate.url = f"http://127.0.0.1:{server.server_port}/mcp"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield gate
        finally:
            gate.release.set()
            server.shutdown()
            thread.join()
