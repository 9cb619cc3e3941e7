# SPDX-License-Identifier: Apache-2.0
"""Meets a fault as a user of the bare SDK does, with a read timeout and a guard round everything."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import AsyncGenerator
from typing import Any

import anyio
import httpx2
import mcp
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from tests.faults.fault import Fault, Report
from tests.faults.probes import Probe, find_processes
from tests.faults.scene import Scene, open_scene
from tests.faults.worker import send_report

_NEXT_TIMEOUT = 5.0
_CROWD = 5


async def examine(fault: Fault) -> Report:
    """Runs one fault, and looks round afterwards; what is known is told on the way."""
    report = Report(name=fault.name)
    with open_scene(fault) as scene:
        probe = Probe([scene.mark])
        async with probe.beating():
            act = _act_die(scene, report) if fault.act == "die" else _act(scene, report)
            await act
        send_report(report, final=False)
        report.leaks = await probe.find_leaks()
        report.notes = scene.count_notes()
    report.stall, report.growth = probe.stall, probe.growth
    return report


@contextlib.asynccontextmanager
async def create_client(scene: Scene) -> AsyncGenerator[mcp.Client]:
    """A client of the SDK's for the server of a scene."""
    patience = scene.fault.timeout
    if scene.fault.transport == "stdio":
        command, *words = scene.command
        parameters = mcp.StdioServerParameters(command=command, args=words, env=scene.environment)
        with open(os.devnull, "w") as nowhere:  # noqa: ASYNC230, PTH123
            transport: Any = stdio_client(parameters, errlog=nowhere)
            async with mcp.Client(transport, read_timeout_seconds=patience) as client:
                yield client
    elif scene.fault.transport == "sse":
        transport = sse_client(scene.url, headers=scene.headers)
        async with mcp.Client(transport, read_timeout_seconds=patience) as client:
            yield client
    else:
        async with httpx2.AsyncClient(
            headers=scene.headers, timeout=httpx2.Timeout(30, read=300)
        ) as http:
            transport = streamable_http_client(scene.url, http_client=http)
            async with mcp.Client(transport, read_timeout_seconds=patience) as client:
                yield client


async def _act(scene: Scene, report: Report) -> None:
    """Connects, calls, calls again, and leaves; the guard is the host's own last resort."""
    fault = scene.fault
    # As long as ours may take, and half a second for the caller to be free.
    guard = fault.connect_timeout + fault.timeout + 1.0
    begun = time.monotonic()
    stage = "connect"
    try:
        with anyio.fail_after(guard + _NEXT_TIMEOUT):
            async with create_client(scene) as client:
                stage = "list"
                await client.list_tools()
                stage = "call"
                await _call(scene, client, report)
                stage = "next"
                send_report(report, final=False)
                await _call_next(client, report)
                stage = "close"
                send_report(report, final=False)
    except BaseException as failure:
        words = f"{stage}: {failure}".replace("\n", " ")[:300]
        if stage in ("connect", "list", "call"):
            _note(report, failure, words)
        else:
            report.next_call = f"{report.next_call}, then {type(failure).__name__} at {stage}"
    if stage in ("connect", "list"):
        report.seconds = time.monotonic() - begun
        report.late = report.seconds - fault.connect_timeout


async def _call(scene: Scene, client: mcp.Client, report: Report) -> None:
    fault = scene.fault
    begun = time.monotonic()
    others: list[asyncio.Task[Any]] = []
    if fault.act == "crowd":
        others = [asyncio.create_task(client.call_tool("slow", {})) for _ in range(_CROWD)]
    try:
        result = await client.call_tool("trouble", dict(fault.arguments))
    except Exception as failure:
        _note(report, failure, str(failure)[:300])
    else:
        report.sees = "result"
        report.words = " ".join(getattr(c, "text", "")[:200] for c in result.content)
    finally:
        report.seconds = time.monotonic() - begun
        report.late = report.seconds - fault.timeout
    if others:
        ends = await asyncio.gather(*others, return_exceptions=True)
        if lost := [end for end in ends if isinstance(end, BaseException)]:
            report.words += f" ({len(lost)} others failed)"


async def _call_next(client: mcp.Client, report: Report) -> None:
    try:
        result = await client.call_tool("echo", {"text": "still here"})
    except Exception as failure:
        report.next_call = type(failure).__name__
    else:
        text = getattr(result.content[0], "text", "") if result.content else ""
        report.next_call = "works" if text == "still here" else "WRONG"


def _note(report: Report, failure: BaseException, words: str) -> None:
    report.sees = type(failure).__name__
    report.words = words


async def _act_die(scene: Scene, report: Report) -> None:
    words = ("-m", "tests.faults.host", scene.fault.name, scene.mark, str(scene.notes), "bare")
    host = await asyncio.create_subprocess_exec(
        sys.executable, *words, stdout=asyncio.subprocess.PIPE
    )
    assert host.stdout is not None
    await host.stdout.readline()
    if len(find_processes(scene.mark)) > 3:
        report.sees = "result"
    os.kill(host.pid, signal.SIGKILL)
    await host.wait()
