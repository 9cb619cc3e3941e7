# SPDX-License-Identifier: Apache-2.0
"""Spans of OpenTelemetry round our own requests, as the SDK has them round its own."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from opentelemetry import trace

_NOTHING: AbstractContextManager[Any] = nullcontext()


def trace_request(
    method: str, params: Mapping[str, Any] | None, identifier: int | str
) -> AbstractContextManager[Any]:
    """A span for the block, of which a message that is composed in it tells; none where nobody collects them."""
    if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        return _NOTHING
    target = (params or {}).get("name")
    name = f"MCP send {method} {target}" if isinstance(target, str) else f"MCP send {method}"
    facts = {"mcp.method.name": method, "jsonrpc.request.id": str(identifier)}
    tracer = trace.get_tracer("converser")
    return tracer.start_as_current_span(name, kind=trace.SpanKind.CLIENT, attributes=facts)
