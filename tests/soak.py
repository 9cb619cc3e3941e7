# SPDX-License-Identifier: Apache-2.0
"""Thousands of calls while servers are killed at random: `python -m tests.soak --calls N --seconds S --servers K`.

The last third of the calls is made in peace: each must succeed. Prints what became of all, and exits
with 1 where one has no end, no result without an excuse, a wrong or a second result, or was executed
though it is said that it was not; where a process, a task or a file is left; or where memory keeps
growing.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import anyio

import converser
from tests.faults.probes import MARK, Probe, create_mark, find_processes, measure_memory

ROOT = Path(__file__).resolve().parent.parent
TIMEOUT = 10.0
CALLERS = 8
"""Callers at once for each server."""
GROWTH_MAX = 5.0
"""Megabytes by which the second half of the calls may make this process grow, besides the books of the soak itself."""
_BOOKS = 0.001
"""Megabytes for what is written down of a call."""
_STORM = 2 / 3
"""The share of calls and of time in which servers are killed."""
CALLS_PER_KILL = 100
_SOUND = frozenset({"success", "cancelled"})
"""How a call may end. No server is silent here, so none may be timed out."""
_SOUND_IN_STORM = _SOUND | {"outcome-unknown", "tool-error"}
_IMPATIENT = 0.02
"""The share of calls whose caller gives up early."""


@dataclass(slots=True)
class Record:
    """One call, and what came of it."""

    tool: str
    token: str
    outcome: str = "missing"
    text: str = ""
    is_refused: bool = False
    """Whether the failure says that the call was not executed."""
    is_in_storm: bool = False
    """Whether servers were killed in those days."""


@dataclass(slots=True, kw_only=True)
class Tally:
    """Everything that is known at the end."""

    records: list[Record] = field(default_factory=list)
    executed: Counter[str] = field(default_factory=Counter)
    kills: int = 0
    recoveries: int = 0
    late: float = 0.0
    unrecovered: dict[str, str] = field(default_factory=dict)
    """Servers that did not answer once the killing was over, and what was said instead."""
    leaks: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)


def find_breaches(tally: Tally) -> Iterator[str]:
    """Where a promise was broken, in words."""
    for record in tally.records:
        times, label = tally.executed[record.token], f"call {record.token} of {record.tool}"
        if record.outcome == "success" and record.text != f"done {record.token}":
            yield f"{label} got a wrong result: {record.text!r}"
        if record.outcome == "success" and not times:
            yield f"{label} has a result, and was not executed"
        if record.tool == "act" and times > 1:
            yield f"{label} was executed {times} times"
        if record.is_refused and times:
            yield f"{label} is said not to have been executed, and was"
        sound = _SOUND_IN_STORM if record.is_in_storm else _SOUND
        if record.outcome not in sound:
            yield f"{label} has no result, and no excuse for it: {record.outcome}: {record.text}"
    for name, words in tally.unrecovered.items():
        yield f"server {name} has not come back: {words}"
    yield from (f"left behind: {leak}" for leak in tally.leaks)
    yield from (f"nobody took: {complaint}" for complaint in tally.complaints)
    if not tally.kills and len(tally.records) > 10 * CALLS_PER_KILL:
        yield "no server was killed, so that this shows nothing"
    if tally.late > 0.5:
        yield f"a caller was free {tally.late:.1f} s after its deadline"
    if len(tally.memory) > 20:
        half = len(tally.memory) // 2
        growth = max(tally.memory[-5:]) - max(tally.memory[half - 5 : half])
        if growth > GROWTH_MAX + _BOOKS * len(tally.records) / 2:
            yield f"the second half took {growth:.0f} MB of memory"


class Place:
    """A server that is killed now and then, and comes back."""

    def __init__(self, index: int, ledger: Path) -> None:
        self.transport = ("stdio", "http")[index % 2]
        self.era = ("legacy", "modern")[index // 2 % 2]
        self.name = f"{self.transport}-{self.era}-{index}"
        self.mark = create_mark()
        self.environment = {MARK: self.mark, "SOAK_LEDGER": str(ledger)}
        self._process: asyncio.subprocess.Process | None = None
        self.url = ""
        self._turnstile = asyncio.Lock()

    @property
    def command(self) -> list[str]:
        """How to start the server."""
        return [sys.executable, "-m", "tests.soak_server", self.transport, self.era]

    def create_client(self) -> converser.MCPClient:
        """A client for it."""
        if self.transport == "stdio":
            return converser.StdioMCPClient(self.command, self.environment, ROOT, name=self.name)
        return converser.HttpMCPClient(self.url, name=self.name)

    async def start(self) -> None:
        """Starts a server over HTTP, on the port that it had; others are started by who connects."""
        if self.transport == "stdio":
            return
        port = self.url.split(":")[-1].partition("/")[0]
        self._process = await asyncio.create_subprocess_exec(
            *self.command,
            *([port] if port else []),
            cwd=ROOT,
            env={**os.environ, **self.environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        self.url = (await self._process.stdout.readline()).decode().strip()
        assert self.url, "the server did not start"

    async def kill(self) -> bool:
        """Kills the server, whoever is its parent, and lets one over HTTP come back after a while."""
        async with self._turnstile:
            found = find_processes(self.mark)
            pids = [pid for pid, command in found.items() if "keeper.py" not in command]
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if self._process is not None:
                await self._process.wait()
                await asyncio.sleep(random.uniform(0, 0.3))
                await self.start()
            return bool(pids)

    async def stop(self) -> None:
        """Ends the server for good."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()


@contextlib.asynccontextmanager
async def _open_places(places: list[Place]) -> AsyncGenerator[list[converser.Ensemble]]:
    ensembles: list[converser.Ensemble] = []
    try:
        for place in places:
            await place.start()
            client = place.create_client()
            ensembles.append(await converser.discover_mcp_tools(client, place.name))
        yield ensembles
    finally:
        for ensemble in ensembles:
            await ensemble.disconnect()
        for place in places:
            await place.stop()


class Soak:
    """Makes the calls, and keeps the books."""

    def __init__(self, calls: int, seconds: float) -> None:
        self.tally = Tally()
        self._calls = calls
        self._seconds = seconds
        self._begun = time.monotonic()

    def _is_over(self, share: float) -> bool:
        spent = time.monotonic() - self._begun
        return len(self.tally.records) >= self._calls * share or spent > self._seconds * share

    async def run(self, places: list[Place], ensembles: list[converser.Ensemble]) -> None:
        """Calls all servers from many tasks, and kills one of them again and again; then in peace."""
        async with anyio.create_task_group() as group:
            kill = partial(group.start_soon, self._kill_one, places)
            await self._call_all(ensembles, kill)
        for ensemble in ensembles:
            await self._recover(ensemble)
        await self._call_all(ensembles, None)
        clients = [ensemble.connection for ensemble in ensembles]
        self.tally.recoveries = sum(getattr(client, "reconnects", 0) for client in clients)

    async def _kill_one(self, places: list[Place]) -> None:
        killed = await random.choice(places).kill()
        self.tally.kills += killed

    async def _recover(self, ensemble: converser.Ensemble) -> None:
        """Nobody kills any more: now each server must answer."""
        invoker, context = ensemble.access_invoker("look"), converser.Context(timeout=TIMEOUT)
        try:
            await invoker({"token": f"recovered-{ensemble.name}"}, context=context)
        except converser.ToolExecutionFailure as failure:
            self.tally.unrecovered[ensemble.name] = str(failure)

    async def _call_all(
        self, ensembles: list[converser.Ensemble], kill: Callable[[], None] | None
    ) -> None:
        async with anyio.create_task_group() as group:
            for ensemble in ensembles:
                for _ in range(CALLERS):
                    group.start_soon(self._call_again_and_again, ensemble, kill)

    async def _call_again_and_again(
        self, ensemble: converser.Ensemble, kill: Callable[[], None] | None
    ) -> None:
        while not self._is_over(_STORM if kill else 1.0):
            tool = random.choice(("act", "look"))
            token = f"{len(self.tally.records)}-{random.getrandbits(64):x}"
            record = Record(tool, token, is_in_storm=kill is not None)
            self.tally.records.append(record)
            if len(self.tally.records) % 50 == 0:
                self.tally.memory.append(measure_memory())
            if kill and len(self.tally.records) % CALLS_PER_KILL == 0:
                kill()
            await self._call(ensemble, record)

    async def _call(self, ensemble: converser.Ensemble, record: Record) -> None:
        is_impatient = random.random() < _IMPATIENT
        patience = random.uniform(0, 0.02) if is_impatient else TIMEOUT + 5.0
        context = converser.Context(timeout=TIMEOUT)
        begun = time.monotonic()
        with anyio.move_on_after(patience) as scope:
            try:
                invoker = ensemble.access_invoker(record.tool)
                result = await invoker({"token": record.token}, context=context)
            except converser.ToolExecutionFailure as failure:
                record.outcome, record.text = failure.outcome.value, str(failure)
                cause = failure.__cause__
                refused = failure.outcome is converser.Outcome.TOOL_ERROR
                record.is_refused = refused and isinstance(cause, converser.MCPConnectionFailure)
            else:
                record.outcome, record.text = "success", result.text
        if scope.cancelled_caught and is_impatient:
            record.outcome = "cancelled"
        self.tally.late = max(self.tally.late, time.monotonic() - begun - TIMEOUT)


async def soak(calls: int, seconds: float, servers: int) -> Tally:
    """A whole run, with a look round at its end."""
    with tempfile.TemporaryDirectory() as folder:
        ledger = Path(folder, "ledger")
        ledger.touch()  # noqa: ASYNC240 (nothing runs yet)
        places = [Place(index, ledger) for index in range(servers)]
        probe = Probe([place.mark for place in places])
        run = Soak(calls, seconds)
        async with _open_places(places) as ensembles:
            await run.run(places, ensembles)
        run.tally.leaks = await probe.find_leaks()
        run.tally.complaints = probe.complaints
        run.tally.executed = Counter(ledger.read_text("ascii").split())  # noqa: ASYNC240
        return run.tally


def main() -> int:
    """Runs, prints and judges."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak")
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=600.0, help="stop after this long")
    parser.add_argument("--servers", type=int, default=4, help="every other one over HTTP")
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args()
    if options.servers < 1 or options.calls < 1:
        parser.error("it takes a server and a call at least")
    random.seed(options.seed)
    logging.disable(logging.CRITICAL)
    begun = time.monotonic()
    tally = asyncio.run(soak(options.calls, options.seconds, options.servers))
    print(
        f"{len(tally.records)} calls in {time.monotonic() - begun:.1f} s on {options.servers} servers"
    )
    for outcome, count in Counter(record.outcome for record in tally.records).most_common():
        texts = {r.text for r in tally.records if r.outcome == outcome and r.outcome != "success"}
        print(f"  {outcome}: {count}", *sorted(texts)[:1])
    print(f"{tally.kills} kills, {tally.recoveries} recoveries, ", end="")
    print(f"{tally.memory[-1] if tally.memory else measure_memory():.0f} MB at the end")
    breaches = list(find_breaches(tally))
    for breach in breaches[:20]:
        print(f"BROKEN: {breach}")
    return min(len(breaches), 1)


if __name__ == "__main__":
    sys.exit(main())
