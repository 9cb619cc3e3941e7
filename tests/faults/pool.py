# SPDX-License-Identifier: Apache-2.0
"""Runs faults several at once, each in a process that can be stopped from outside when it hangs."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from tests.faults.fault import Fault, Report, find_breaches

ROOT = Path(__file__).resolve().parent.parent.parent
WORKERS = 4
_START = 30.0
"""Seconds that a process may take to start and to import everything, on a busy machine."""
_END = 10.0
_AGAIN = 3
"""How often a fault is run again that was late: a loaded machine is late now and then, a defect each time."""


class Worker:
    """A process that runs one fault after another."""

    def __init__(self, side: str, environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.worker", side],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT / "sources"), **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._fresh = True
        self._hangs = False
        self._rest = b""

    def run(self, fault: Fault) -> Report:
        """What is seen of a fault; a process that hangs with it is of no more use."""
        assert self._process.stdin is not None
        self._process.stdin.write(fault.name.encode() + b"\n")
        self._process.stdin.flush()
        seconds = fault.guard + (_START if self._fresh else 0.0)
        self._fresh = False
        end = time.monotonic() + seconds
        report = Report(name=fault.name, hung="it said nothing at all")
        while (fields := self._read(end)) is not None:
            final = fields.pop("final")
            report = Report(**fields)
            if final:
                return report
            report.hung = f"stopped after {seconds:.0f} s"
        self._hangs = True
        return report

    def _read(self, end: float) -> dict[str, Any] | None:
        """The next line of the process, or nothing where it ends or takes too long."""
        assert self._process.stdout is not None
        while b"\n" not in self._rest:
            left = end - time.monotonic()
            ready, _, _ = select.select([self._process.stdout], [], [], max(0.0, left))
            chunk = os.read(self._process.stdout.fileno(), 65_536) if ready else b""
            if not chunk:
                return None
            self._rest += chunk
        line, _, self._rest = self._rest.partition(b"\n")
        fields: dict[str, Any] = json.loads(line)
        return fields

    def end(self) -> None:
        """Ends the process, politely where it is not busy, and what it did not end itself."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(0.0 if self._hangs else _END)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        with self._process:
            self._process.wait()


class Pool:
    """Runs our side in a few processes, each fault as soon as one is free."""

    def __init__(
        self,
        faults: Iterable[Fault],
        *,
        workers: int = WORKERS,
        environment: Mapping[str, str] = {},
    ) -> None:
        self._environment = environment
        self._queue: queue.SimpleQueue[Fault] = queue.SimpleQueue()

        self.reports: dict[str, Future[Report]] = {}
        # Those that may take longest come first, so that the last ones do not wait for them.
        for fault in sorted(faults, key=lambda each: -each.guard):
            self.reports[fault.name] = Future()
            self._queue.put(fault)
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(workers)]
        for thread in self._threads:
            thread.start()

    def _work(self) -> None:
        worker: Worker | None = None
        try:
            while True:
                fault = self._queue.get_nowait()
                worker = worker or Worker("ours", self._environment)
                report = worker.run(fault)
                for _ in range(_AGAIN):
                    if report.is_late_only and find_breaches(fault, report):
                        report = worker.run(fault)
                if report.hung:
                    worker.end()
                    worker = None
                self.reports[fault.name].set_result(report)
        except queue.Empty:
            pass
        finally:
            if worker is not None:
                worker.end()


def run_bare(fault: Fault, environment: Mapping[str, str] = {}) -> Report:
    """The bare SDK's side of a fault, in a process of its own, since it may spoil it."""
    worker = Worker("bare", environment)
    try:
        return worker.run(fault)
    finally:
        worker.end()
