# SPDX-License-Identifier: Apache-2.0
"""Meets a fault as a user of this package does, and reports what was seen."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

import converser
from converser.excesses import STORE
from tests.faults.fault import Fault, Report
from tests.faults.probes import Probe, find_processes
from tests.faults.scene import Scene, open_scene

_NEXT_TIMEOUT = 5.0
_CROWD = 5
_LARGE_CROWD = 120


async def examine(fault: Fault) -> Report:
    """Runs one fault, and looks round afterwards."""
    report = Report(name=fault.name)
    with open_scene(fault) as scene:
        probe = Probe([scene.mark])
        async with probe.beating():
            await _ACTS[fault.act](scene, report)
        STORE.close()  # which else lasts as long as the process
        report.leaks = await probe.find_leaks()
        report.notes = scene.count_notes()
    report.stall, report.growth = probe.stall, probe.growth
    report.complaints = probe.complaints
    return report


def create_client(scene: Scene) -> converser.MCPClient:
    """A client for the server of a scene."""
    patience = scene.fault.connect_timeout
    if scene.fault.transport == "stdio":
        return converser.StdioMCPClient(
            scene.command, scene.environment, connect_timeout=patience, name="faulty"
        )
    client = converser.SseMCPClient if scene.fault.transport == "sse" else converser.HttpMCPClient
    return client(scene.url, scene.headers, connect_timeout=patience, name="faulty")


async def _watch(report: Report, deadline: float, work: Awaitable[Any]) -> Any:
    """Awaits what a caller awaits, and notes what the caller saw and when."""
    begun = time.monotonic()
    result = None
    try:
        result = await work
    except (Exception, asyncio.CancelledError) as failure:
        _note_failure(report, failure)
    else:
        report.sees = "result"
    took = time.monotonic() - begun
    report.seconds += took
    report.late = max(report.late, took - deadline)
    return result


def _note_failure(report: Report, failure: BaseException) -> None:
    known: Any = failure
    if isinstance(failure, converser.ToolExecutionFailure):
        known = failure.__cause__ or failure
    report.sees = type(known).__name__
    report.words = str(failure).replace("\n", " ")
    report.outcome = str(getattr(failure, "outcome", ""))


def _note_result(report: Report, result: Any, ensemble: converser.Ensemble) -> None:
    structured = "" if result.structured is None else json.dumps(result.structured)[:1_000]
    kept = [_describe(link) for link in result.contents if isinstance(link, converser.LinkContent)]
    words = [result.text[:1_000], structured, *kept, *result.remarks, *ensemble.remarks]
    report.words = " ".join(words).replace("\n", " ")
    report.outcome = "success"


def _describe(link: converser.LinkContent) -> str:
    """What is said of a part that was too large, and how much of it is really there."""
    excess = converser.access_excess(link)
    size = excess.path.stat().st_size if excess else 0
    return f"{link.description} {size} bytes kept"


@contextlib.asynccontextmanager
async def _met(scene: Scene, report: Report) -> AsyncGenerator[converser.Ensemble | None]:
    """An ensemble for the server, left again in the end; nothing where it cannot be had."""
    client = create_client(scene)
    work = converser.discover_mcp_tools(client, "faulty")
    ensemble = await _watch(report, scene.fault.connect_timeout, work)
    try:
        yield ensemble
    finally:
        await client.disconnect()


async def _call(scene: Scene, report: Report, ensemble: converser.Ensemble, **context: Any) -> None:
    fault = scene.fault
    invoker = ensemble.access_invoker("trouble")
    work = invoker(fault.arguments, context=converser.Context(timeout=fault.timeout, **context))
    if (result := await _watch(report, fault.timeout, work)) is not None:
        _note_result(report, result, ensemble)


async def _call_next(report: Report, ensemble: converser.Ensemble) -> None:
    """Calls twice: what a fault has jammed may show only behind what got past it."""
    for text in ("still here", "and here"):
        begun = time.monotonic()
        report.next_call = await _echo(ensemble, text)
        report.late = max(report.late, time.monotonic() - begun - _NEXT_TIMEOUT)
        if report.next_call != "works":
            return


async def _echo(ensemble: converser.Ensemble, text: str) -> str:
    context = converser.Context(timeout=_NEXT_TIMEOUT)
    try:
        result = await ensemble.access_invoker("echo")({"text": text}, context=context)
    except (Exception, asyncio.CancelledError) as failure:
        return f"{type(failure.__cause__ or failure).__name__}: {failure}"
    return "works" if result.text == text else f"WRONG: {result.text}"


async def _act_call(scene: Scene, report: Report) -> None:
    async with _met(scene, report) as ensemble:
        if ensemble is not None:
            await _call(scene, report, ensemble)
            await _call_next(report, ensemble)


async def _act_progress(scene: Scene, report: Report) -> None:
    heard: list[float] = []

    async def hear(progress: float, *_: Any) -> None:
        heard.append(progress)

    async with _met(scene, report) as ensemble:
        if ensemble is not None:
            await _call(scene, report, ensemble, on_progress=hear)
            await _call_next(report, ensemble)


async def _act_linger(scene: Scene, report: Report) -> None:
    """Stays a while after the call, to see what the server can bring about in it."""
    async with _met(scene, report) as ensemble:
        if ensemble is not None:
            await _call(scene, report, ensemble)
            await asyncio.sleep(0.7)
            await _call_next(report, ensemble)


async def _act_wait(scene: Scene, report: Report) -> None:
    """Tries again until the server is back."""
    async with _met(scene, report) as ensemble:
        if ensemble is None:
            return
        await _call(scene, report, ensemble)
        end = time.monotonic() + 8.0
        while report.next_call != "works" and time.monotonic() < end:
            await _call_next(report, ensemble)
            await asyncio.sleep(0.1)


async def _act_reconnect(scene: Scene, report: Report) -> None:
    """Connects a second time, which must be quick, whatever the first time took."""
    async with _met(scene, report) as ensemble:
        if ensemble is None:
            return
        await ensemble.disconnect()
        await _watch(report, 2.0, ensemble.connect())
        await _call(scene, report, ensemble)
        await _call_next(report, ensemble)


async def _act_cancel(scene: Scene, report: Report) -> None:
    async with _met(scene, report) as ensemble:
        if ensemble is None:
            return
        call = asyncio.ensure_future(ensemble.access_invoker("trouble")())
        await _wait_for_note(scene, "called")
        call.cancel()
        await _watch(report, 0.0, call)
        await _call_next(report, ensemble)
        await _wait_for_note(scene, "cancelled")


async def _wait_for_note(scene: Scene, word: str) -> None:
    while word not in scene.count_notes():  # noqa: ASYNC110 (another process writes it)
        await asyncio.sleep(0.02)


async def _act_crowd(scene: Scene, report: Report) -> None:
    """One call meets the fault while others wait, which must not hear of it."""
    async with _met(scene, report) as ensemble:
        if ensemble is None:
            return
        slow = ensemble.access_invoker("slow")
        others = [asyncio.ensure_future(slow()) for _ in range(_CROWD)]
        await _call(scene, report, ensemble)
        results = await asyncio.gather(*others, return_exceptions=True)
        lost = [r for r in results if isinstance(r, BaseException)]
        await _call_next(report, ensemble)
        if lost:
            report.next_call = f"{len(lost)} others failed: {lost[0]!r}"


async def _act_crowd_of_calls(scene: Scene, report: Report) -> None:
    async with _met(scene, report) as ensemble:
        if ensemble is None:
            return
        reports = [Report(name=report.name) for _ in range(_LARGE_CROWD)]
        await asyncio.gather(*(_call(scene, each, ensemble) for each in reports))
        worst = max(reports, key=lambda each: each.late)
        report.sees, report.words, report.outcome = worst.sees, worst.words, worst.outcome
        report.late, report.seconds = worst.late, worst.seconds
        await _call_next(report, ensemble)


async def _act_die(scene: Scene, report: Report) -> None:
    """Lets a process of its own meet the server, and kills that process."""
    host = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.faults.host",
        scene.fault.name,
        scene.mark,
        str(scene.notes),
        stdout=asyncio.subprocess.PIPE,
    )
    assert host.stdout is not None
    await host.stdout.readline()
    begun = time.monotonic()
    while report.sees != "result" and time.monotonic() < begun + _NEXT_TIMEOUT:
        if len(find_processes(scene.mark)) > 3:  # a server and its three daemons
            report.sees = "result"
    os.kill(host.pid, signal.SIGKILL)
    await host.wait()
    report.seconds = time.monotonic() - begun


_ACTS: dict[str, Callable[[Scene, Report], Awaitable[None]]] = {
    "call": _act_call,
    "cancel": _act_cancel,
    "crowd": _act_crowd,
    "crowd-of-calls": _act_crowd_of_calls,
    "die": _act_die,
    "linger": _act_linger,
    "nobody": _act_call,
    "progress": _act_progress,
    "reconnect": _act_reconnect,
    "wait": _act_wait,
}
