# SPDX-License-Identifier: Apache-2.0
"""Keeps `converser.lock` for a roster: recalls what was seen, notes what is seen, and writes what is new."""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path

import anyio

from ..configuration import MCPServer
from ..exceptions import ConfigurationFailure
from ..hygiene import clean_text
from ..invokers import Tool
from ..locks import try_lock
from ..tasks import run_aside
from .catalogue import (
    Catalogue,
    CatalogueEntry,
    Drift,
    describe_server,
    find_drift,
    identify_reach,
    read_catalogue,
    write_catalogue,
)

_PATIENCE = 20.0
_PAUSE = 0.01


class CatalogueKeeper:
    """Knows the catalogue of one file; without a file, it remembers nothing."""

    def __init__(self, path: Path | None, *, renews: bool = True) -> None:
        self.path = path
        self.remark = ""
        """Why the file could not be written, if so."""
        self.renews = renews
        """Whether what has drifted is known from then on."""
        self._known: dict[str, CatalogueEntry] = {}
        self._seen: dict[str, CatalogueEntry] = {}
        self._unwritten: dict[str, CatalogueEntry] = {}
        self._writing = anyio.Lock()

    async def load(self) -> None:
        """Reads the file; a damaged one is a `ConfigurationFailure`."""
        if self.path is not None:
            self._known = dict((await run_aside(read_catalogue, self.path)).servers)

    def recall(self, server: MCPServer) -> tuple[Tool, ...] | None:
        """The tools of a server as they were last seen, if it is still the same server."""
        entry = self._known.get(server.name)
        return entry.tools if entry and entry.reach == identify_reach(server) else None

    def note(self, server: MCPServer, tools: Iterable[Tool], *, is_whole: bool = True) -> Drift:
        """Takes in the tools of a server as they are now, and tells the difference.

        Half a list is no beginning: what the other half brings later would look like a change.
        """
        remembered = self.recall(server)
        if self.path is None or (remembered is None and not is_whole):
            return Drift()
        entry = self._seen[server.name] = describe_server(server, tools)
        drift = Drift() if remembered is None else find_drift(remembered, entry.tools)
        if remembered is None or (drift and self.renews):
            self._known[server.name] = self._unwritten[server.name] = entry
        return drift

    def accept(self) -> None:
        """Takes what was seen for what shall be known from now on."""
        self._known.update(self._seen)
        self._unwritten.update(self._seen)

    async def save(self) -> None:
        """Writes what is new; a file that cannot be written is remarked, and harms nothing.

        What is new stays so until it is written, also where somebody ends this before.
        """
        async with self._writing:
            if self.path is None or not self._unwritten:
                return
            entries = dict(self._unwritten)
            self.remark = await _try_to_merge(self.path, entries)
            if not self.remark:
                left = self._unwritten.items()
                self._unwritten = {n: e for n, e in left if entries.get(n) is not e}


async def _try_to_merge(path: Path, entries: dict[str, CatalogueEntry]) -> str:
    """Why entries could not be put into the file; nothing where they are."""
    try:
        await run_aside(_merge, path, entries)
    except ConfigurationFailure as failure:
        return str(failure)
    except (OSError, RecursionError) as failure:
        reason = getattr(failure, "strerror", None) or type(failure).__name__
        return f"{clean_text(str(path))} cannot be written: {reason}."
    return ""


def _merge(path: Path, entries: dict[str, CatalogueEntry]) -> None:
    """Puts entries into the file; those of other servers, which others may have written, stay."""
    with _alone_in(path.resolve().parent):
        before = read_catalogue(path)
        after = Catalogue(servers={**before.servers, **entries})
        if after != before:
            write_catalogue(path, after)


@contextmanager
def _alone_in(folder: Path) -> Generator[None]:
    """Keeps out others who write a catalogue there, where the system can, and leaves no file; who cannot, gives up."""
    if sys.platform == "win32":
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        deadline = time.monotonic() + _PATIENCE
        while not try_lock(descriptor):
            if time.monotonic() > deadline:  # to write nevertheless would undo what they write
                raise TimeoutError(errno.ETIMEDOUT, "others are busy with its folder")
            time.sleep(_PAUSE)
        yield
    finally:
        os.close(descriptor)
