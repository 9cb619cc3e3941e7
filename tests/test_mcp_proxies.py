# SPDX-License-Identifier: Apache-2.0
"""Servers behind a proxy that the environment names."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncGenerator

import anyio
import pytest

import converser
from converser.mcp.http.proxies import create_transport, find_proxy

pytestmark = pytest.mark.anyio
_AWAY = "http://mcp.example.invalid/mcp"
_REFUSAL = b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


@contextlib.asynccontextmanager
async def open_proxy() -> AsyncGenerator[tuple[str, list[bytes]], None]:
    """A proxy that refuses everything, and the first lines of what it was asked."""
    asked: list[bytes] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readline())
        writer.write(_REFUSAL)
        writer.close()

    async with await asyncio.start_server(handle, "127.0.0.1", 0) as listener:
        host, port = listener.sockets[0].getsockname()
        yield f"http://{host}:{port}", asked


def test_certificates_are_read_once_for_all_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def note(*_: object, cafile: str = "", **__: object) -> ssl.SSLContext:
        read.append(cafile)
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

    monkeypatch.setattr(ssl, "create_default_context", note)
    for file in ("one.pem", "another.pem"):
        monkeypatch.setenv("SSL_CERT_FILE", file)
        for _ in range(3):
            create_transport(_AWAY)
    assert read == ["one.pem", "another.pem"]


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.mark.parametrize("create", [converser.HttpMCPClient, converser.SseMCPClient])
async def test_a_server_is_asked_through_the_proxy(create, monkeypatch):
    with anyio.fail_after(30):
        async with open_proxy() as (proxy, asked):
            monkeypatch.setenv("HTTP_PROXY", proxy)
            with pytest.raises(converser.MCPConnectionFailure, match="502"):
                await create(_AWAY).connect()
    assert asked
    assert all(f" {_AWAY} " in line.decode() for line in asked)


@pytest.mark.parametrize(
    ("url", "proxy"),
    [
        ("https://mcp.example.org/mcp", "http://proxy.example.org:3128"),
        ("http://mcp.example.org/mcp", None),
        ("https://inside.example.net/mcp", None),
        ("https://localhost:8000/mcp", None),
        ("https://127.0.0.2/mcp", None),
        ("https://[::1]:8000/mcp", None),
    ],
)
def test_the_environment_decides_but_for_this_machine(url, proxy, monkeypatch):
    monkeypatch.setenv("https_proxy", "proxy.example.org:3128")
    monkeypatch.setenv("no_proxy", "example.net")
    assert find_proxy(url) == proxy


def test_one_proxy_may_serve_for_all(monkeypatch):
    monkeypatch.setenv("ALL_PROXY", "http://proxy.example.org:3128")
    assert find_proxy("http://mcp.example.org/") == "http://proxy.example.org:3128"
