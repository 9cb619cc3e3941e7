# SPDX-License-Identifier: Apache-2.0
"""Whoever collects spans of OpenTelemetry has one for each call, and its server is told of it."""

from __future__ import annotations

import secrets
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import anyio
import pytest
from opentelemetry import trace

import converser
from tests.faults.overhttp.sound import Modern
from tests.faults.overhttp.wire import HttpServer, Line, Request
from tests.places import LIMIT
from tests.servers import processes

pytestmark = pytest.mark.anyio


class Collector(trace.TracerProvider, trace.Tracer):
    """Collects the names of spans, and their identifiers as a server would see them."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}

    def get_tracer(self, *_: Any, **__: Any) -> trace.Tracer:
        return self

    def start_span(self, name: str, *_: Any, **__: Any) -> trace.Span:
        number = secrets.randbits(64) | 1
        self.names[f"{number:016x}"] = name
        sampled = trace.TraceFlags(trace.TraceFlags.SAMPLED)
        place = trace.SpanContext(secrets.randbits(128) | 1, number, False, sampled)
        return trace.NonRecordingSpan(place)

    @contextmanager
    def start_as_current_span(  # type: ignore[override]
        self, name: str, *_: Any, **__: Any
    ) -> Generator[trace.Span]:
        with trace.use_span(self.start_span(name)) as span:
            yield span


class Told(Modern):
    """Keeps what it is told of the spans behind calls."""

    def __init__(self) -> None:
        super().__init__()
        self.parents: list[str] = []

    async def trouble(self, request: Request, line: Line) -> None:
        self.parents.append(request.message["params"]["_meta"]["traceparent"])
        await super().trouble(request, line)


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Collector:
    collector = Collector()
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", collector)  # which can be set but once
    return collector


async def test_a_call_over_http_has_a_span_of_which_the_server_hears(collector: Collector) -> None:
    behaviour = Told()
    with HttpServer(behaviour).running() as server, anyio.fail_after(LIMIT):
        client = converser.HttpMCPClient(f"{server.origin}/mcp")
        async with await converser.discover_mcp_tools(client, "h") as ensemble:
            await ensemble.access_invoker("trouble")()
    [parent] = behaviour.parents
    assert collector.names[parent.split("-")[2]] == "MCP send tools/call trouble"


async def test_a_call_of_a_process_has_a_span(collector: Collector) -> None:
    client = converser.StdioMCPClient(processes.raw_command("sound"))
    with anyio.fail_after(LIMIT):
        async with await converser.discover_mcp_tools(client, "s") as ensemble:
            await ensemble.access_invoker("good")()
    assert "MCP send tools/call good" in collector.names.values()
