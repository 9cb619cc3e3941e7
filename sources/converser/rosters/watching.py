# SPDX-License-Identifier: Apache-2.0
"""The configuration files behind a roster: where they are, what they say, and whether they changed."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio

from ..configuration import Configuration, find_sources, load_configuration
from ..exceptions import ConverserFailure
from ..tasks import run_aside

_SETTLING = 0.3
Fingerprint = tuple[tuple[str, str], ...]


class ConfigurationFiles:
    """One file, or, without a path, those that hold for a folder."""

    def __init__(self, path: Path | None, *, start: Path | None = None) -> None:
        self.complaint = ""
        """Why the last change of a file came to nothing."""
        self._path = None if path is None else path.expanduser().absolute()
        self._start = (start or Path.cwd()).absolute()
        self._seen: Fingerprint | None = None

    @classmethod
    def behind(cls, configuration: Configuration) -> ConfigurationFiles | None:
        """The files that a configuration came from, if it came from any."""
        if not (paths := [source.path for source in configuration.files]):
            return None
        return cls(paths[0]) if len(paths) == 1 else cls(None, start=paths[0].parent)

    def load(self) -> Configuration:
        """Reads them; raises `ConfigurationFailure` with all mistakes."""
        self._seen = self._take_fingerprint()
        try:
            configuration = self._read()
        except ConverserFailure as failure:
            self.complaint = str(failure)
            raise
        self.complaint = ""
        return configuration

    def _read(self) -> Configuration:
        if self._path is None:
            return load_configuration(start=self._start)
        return load_configuration(self._path)

    async def watch(self, period: float, reload: Callable[[], Awaitable[object]]) -> None:
        """Has the configuration loaded again whenever a file has changed; never ends by itself."""
        if self._seen is None:
            self._seen = await run_aside(self._take_fingerprint)
        await self._wait_for_change(period)
        while True:
            async with anyio.create_task_group() as group:
                group.start_soon(self._follow, reload)
                await self._wait_for_change(period)
                # A server that hangs keeps no change waiting: the next revision does what is left.
                group.cancel_scope.cancel()

    async def _wait_for_change(self, period: float) -> None:
        while True:
            await anyio.sleep(period)
            if (found := await run_aside(self._take_fingerprint)) == self._seen:
                continue
            await anyio.sleep(min(period, _SETTLING))
            if await run_aside(self._take_fingerprint) == found:
                self._seen = found
                return
            # Else somebody is still writing: half a file would end half of the servers.

    async def _follow(self, reload: Callable[[], Awaitable[object]]) -> None:
        try:
            await reload()
        except ConverserFailure as failure:
            self.complaint = str(failure)

    def _take_fingerprint(self) -> Fingerprint:
        """What changes when a file does, comes or goes; by contents, since clocks are coarse."""
        if self._path is not None:
            paths: tuple[Path, ...] = (self._path,)
        else:
            paths = tuple(source.path for source in find_sources(self._start))
        return tuple((str(path), _digest(path)) for path in paths)


def _digest(path: Path) -> str:
    """What tells the contents of a file apart; a pipe has none until it is read, which may be once."""
    try:
        if not path.is_file():
            return ""
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""
