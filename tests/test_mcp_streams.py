# SPDX-License-Identifier: Apache-2.0
"""HTTP requests in one piece, on connections that still live."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable

import anyio
import httpx2
import pytest

import converser
from converser.mcp.http.streams import create_lean_transport
from tests.faults.overhttp.sound import Sound
from tests.faults.overhttp.wire import HttpServer, Line, Request

pytestmark = pytest.mark.anyio

_ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@contextlib.asynccontextmanager
async def open_client(handle: Handler) -> AsyncGenerator[tuple[httpx2.AsyncClient, str], None]:
    listener = await asyncio.start_server(handle, "127.0.0.1", 0)
    host, port = listener.sockets[0].getsockname()
    url = f"http://{host}:{port}/"
    with anyio.fail_after(20):
        async with listener, httpx2.AsyncClient(transport=create_lean_transport(url)) as client:
            yield client, url


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells how many segments came")
async def test_head_and_body_come_in_one_segment() -> None:
    segments: list[int] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(2):
            await reader.readuntil(b"\r\n\r\nbody")
            segments.append(count_segments(writer.get_extra_info("socket")))
            writer.write(_ANSWER)
        await reader.read()
        writer.close()

    async with open_client(handle) as (client, url):
        for _ in range(2):
            assert (await client.post(url, content=b"body")).text == "ok"
    assert segments == [1, 2]


def count_segments(connection: socket.socket) -> int:
    """How many segments with data have come: `tcpi_data_segs_in`."""
    told = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 192)
    return int.from_bytes(told[152:156], sys.byteorder)


class Patient(Sound):
    """Answers no slow call before it is told to."""

    async def trouble(self, request: Request, line: Line) -> None:
        self.release.set()
        await super().trouble(request, line)


async def test_a_call_does_not_wait_for_the_many_that_are_under_way() -> None:
    with HttpServer(Patient()).running() as server, anyio.fail_after(20):
        client = converser.HttpMCPClient(f"{server.origin}/mcp")
        async with (
            await converser.discover_mcp_tools(client, "h") as ensemble,
            anyio.create_task_group() as group,
        ):
            for _ in range(150):
                group.start_soon(ensemble.access_invoker("slow"))
            echoed = await ensemble.access_invoker("echo")({"text": "hi"})
            await ensemble.access_invoker("trouble")()
    assert echoed.text == "hi"


@pytest.mark.parametrize("length", [0, 65_536, 1_000_000])
async def test_bodies_of_all_sizes_arrive_whole(length: int) -> None:
    received: list[bytes] = []

    async def stream() -> AsyncGenerator[bytes, None]:
        for start in range(0, length, 10_000):
            yield b"x" * min(10_000, length - start)

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        while size := int(await reader.readline(), 16):
            received.append(await reader.readexactly(size))
            await reader.readline()
        await reader.readline()
        writer.write(_ANSWER)
        await reader.read()
        writer.close()

    async with open_client(handle) as (client, url):
        assert (await client.post(url, content=stream())).text == "ok"
    assert b"".join(received) == b"x" * length


async def test_a_connection_that_the_server_closed_is_not_used_again() -> None:
    closed: list[asyncio.Event] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ended = asyncio.Event()
        closed.append(ended)
        await reader.readuntil(b"\r\n\r\n")
        writer.write(_ANSWER)
        writer.close()
        await writer.wait_closed()
        ended.set()

    async with open_client(handle) as (client, url):
        for number in range(3):
            assert (await client.get(url)).text == "ok"
            await closed[number].wait()
    assert len(closed) == 3
