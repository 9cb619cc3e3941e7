# SPDX-License-Identifier: Apache-2.0
"""The awkward server behind each transport, and clients for it, so that one suite can test them all."""

from __future__ import annotations

import contextlib
import subprocess
import uuid
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import Any

import converser
from tests.servers import processes

TRANSPORTS = ("in-process", "stdio", "http", "sse")
PLACES = (*TRANSPORTS, "sdk-stdio")
"""Also on the SDK's own transport over stdio, which must be able to stand in for ours at any time."""
LIMIT = 30
"""Seconds after which a wait is a defect; a loaded machine is slow, but not that slow."""

CreateClient = Callable[..., converser.MCPClient]


@dataclass(frozen=True, kw_only=True)
class Place:
    """An awkward server that can be reached for as long as the place is open."""

    transport: str
    create_client: CreateClient


class SdkStdioClient(converser.StdioMCPClient):
    """Starts a server as ours does, on the transport of the SDK."""

    def open_transport(self) -> Any:
        """Gives the launch to the SDK."""
        from converser.mcp.transports import open_sdk_stdio

        launch: Any = super().open_transport()
        return open_sdk_stdio(launch)


@contextlib.contextmanager
def open_place(transport: str) -> Iterator[Place]:
    """Serve the awkward server; over stdio each client has a process of its own."""
    if transport == "in-process":
        from tests.servers.awkward import create_awkward_server

        server = create_awkward_server()
        yield _place(transport, lambda **more: converser.InProcessMCPClient(server, **more))
    elif transport == "stdio":
        command = processes.awkward_command()
        yield _place(transport, lambda **more: converser.StdioMCPClient(command, **more))
    elif transport == "sdk-stdio":
        command = processes.awkward_command()
        yield _place("stdio", lambda **more: SdkStdioClient(command, **more))
    elif transport == "http":
        with processes.serve_awkward("http") as running:
            url = running.url
            yield _place(transport, lambda **more: converser.HttpMCPClient(url, **more))
    else:
        with processes.serve_awkward("sse") as running:
            url = running.url
            yield _place(transport, lambda **more: converser.SseMCPClient(url, **more))


def _place(transport: str, create_client: CreateClient) -> Place:
    return Place(transport=transport, create_client=create_client)


@contextlib.contextmanager
def serve_on_port(transport: str, port: int) -> Generator[str]:
    """Serve the awkward server on a port that was used before, as after a restart; gives its URL."""
    command = [*processes.awkward_command(), "--transport", transport, "--until-eof"]
    with processes._running([*command, "--port", str(port)], r"^http\S+") as (_, url):
        yield url


class Marked:
    """A command with a mark in it, by which its processes can be found."""

    def __init__(self, command: list[str]) -> None:
        self.mark = f"mark-{uuid.uuid4().hex}"
        self.command = [*command, self.mark]

    def find_processes(self) -> list[str]:
        """The processes that carry the mark, one line for each."""
        listing = subprocess.run(
            ["ps", "-A", "-ww", "-o", "pid=", "-o", "stat=", "-o", "args="],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        lines = (line.strip() for line in listing.splitlines())
        return [line for line in lines if self.mark in line and line.split()[1][0] != "Z"]


def walk_causes(failure: BaseException) -> list[BaseException]:
    """A failure, all its causes and contexts, and what groups among them hold."""
    found: list[BaseException] = []
    pending: list[Any] = [failure]
    while pending:
        each = pending.pop()
        if each is None or any(each is known for known in found):
            continue
        found.append(each)
        pending += [each.__cause__, each.__context__, *getattr(each, "exceptions", ())]
    return found
