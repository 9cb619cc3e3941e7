# SPDX-License-Identifier: Apache-2.0
"""Sets the scene for one fault: a server that has it, and how to find what became of it."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import tempfile
from collections import Counter
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

from tests.faults.fault import Fault
from tests.faults.overhttp import bodies, breaks, old_events, sound, statuses
from tests.faults.overhttp.wire import HttpServer
from tests.faults.probes import MARK, create_mark

HERE = Path(__file__).resolve().parent
TOKEN = "Bearer a-token-that-stays-here"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A faulty server; a stdio one is started by whoever connects."""

    fault: Fault
    mark: str
    notes: Path
    server: HttpServer | None = None
    url: str = ""

    @property
    def command(self) -> list[str]:
        """How to start a stdio server; without `site`, which takes longer than the server itself."""
        return [sys.executable, "-S", str(HERE / "overstdio"), self.fault.server]

    @property
    def environment(self) -> dict[str, str]:
        """What a stdio server gets to see."""
        size = {key: os.environ[key] for key in ("FAULT_MEGABYTES",) if key in os.environ}
        return {MARK: self.mark, "FAULT_NOTES": str(self.notes), **size}

    @property
    def headers(self) -> dict[str, str]:
        """What an HTTP server gets to see."""
        return {"authorization": TOKEN}

    def count_notes(self) -> dict[str, int]:
        """What the server noted."""
        if self.server is not None:
            made = getattr(self.server.behaviour, "sessions_made", 0)
            return {**self.server.notes, "sessions": made}
        return dict(Counter(self.notes.read_text("ascii").split()))


@contextlib.contextmanager
def open_scene(fault: Fault) -> Generator[Scene]:
    """A scene for as long as the block lasts."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        notes = Path(folder, "notes")
        notes.touch()
        os.environ["XDG_CACHE_HOME"] = folder  # else a fault that was met once is known ever after
        server, url = None, ""
        if fault.act == "nobody":
            url = f"http://127.0.0.1:{_find_idle_port()}/mcp"
        elif fault.transport != "stdio":
            rooms = (sound, bodies, breaks, old_events, statuses)
            behaviour = next(getattr(r, fault.server) for r in rooms if hasattr(r, fault.server))()
            server = stack.enter_context(HttpServer(behaviour).running())
            url = f"{server.origin}/mcp"
        yield Scene(fault=fault, mark=create_mark(), notes=notes, server=server, url=url)


def _find_idle_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port
