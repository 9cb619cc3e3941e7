# SPDX-License-Identifier: Apache-2.0
"""Fetches one large file over HTTP: goes on where an attempt broke off, verifies, and shows how far it is."""

from __future__ import annotations

import hashlib
import os
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from ..exceptions import ModelFailure
from ..locks import try_lock
from .failures import describe_place

_CHUNK = 2**20
_CONNECT_SECONDS = 5.0
_SILENCE_SECONDS = 30.0
_WHOLE_ALREADY = 416
_PAUSE = 0.2

Advance = Callable[[int, "int | None"], None]
"""Hears how many bytes are here, and how many there will be, if that is known."""


class SourceAbsence(ModelFailure):
    """A source of the weights that cannot be reached, or does not have them; another may."""


@asynccontextmanager
async def take_turns(folder: Path) -> AsyncGenerator[None]:
    """Lets one at a time fetch into a folder: two would write into the same draft."""
    if os.name == "nt":  # There, a folder cannot be opened.
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        while not try_lock(descriptor):  # noqa: ASYNC110 - the others may be in other processes.
            await anyio.sleep(_PAUSE)
        yield
    finally:
        os.close(descriptor)


async def download_file(url: str, whole: Path, *, sha256: str | None, advance: Advance) -> None:
    """Fetches a file, as long as each attempt brings some of it; it gets its name only when it is what it should be."""
    draft = whole.with_name(f"{whole.name}.draft")
    while True:
        before = await anyio.to_thread.run_sync(_measure, draft)
        try:
            await _fetch(url, draft, advance)
        except SourceAbsence:
            if await anyio.to_thread.run_sync(_measure, draft) <= before:
                raise
        else:
            break
    if sha256 is not None and await anyio.to_thread.run_sync(hash_file, draft) != sha256.lower():
        draft.unlink()
        raise SourceAbsence(
            f"What {describe_place(url)} gave is not the file that was pinned, and was thrown away.",
            remedy="Try again; or name another source.",
        )
    draft.replace(whole)


async def _fetch(url: str, draft: Path, advance: Advance) -> None:
    """Brings a draft to its end; what is here of it is not fetched again."""
    import httpx2  # It is slow to import, and seldom needed.

    timeout = httpx2.Timeout(_SILENCE_SECONDS, connect=_CONNECT_SECONDS)
    start = await anyio.to_thread.run_sync(_measure, draft)
    headers = {"Range": f"bytes={start}-"} if start else {}
    try:
        async with (
            httpx2.AsyncClient(follow_redirects=True, timeout=timeout) as client,
            client.stream("GET", url, headers=headers) as response,
        ):
            if response.status_code == _WHOLE_ALREADY:
                return
            response.raise_for_status()
            await _save(response, draft, start, advance)
    except (httpx2.HTTPError, httpx2.InvalidURL) as failure:
        reason = str(failure).partition("\n")[0] or type(failure).__name__
        raise SourceAbsence(
            f"{describe_place(url)} cannot give the file: {reason}.",
            remedy="Try again: what is here is kept.",
        ) from failure


def _measure(draft: Path) -> int:
    return draft.stat().st_size if draft.exists() else 0


async def _save(response: Any, draft: Path, start: int, advance: Advance) -> None:
    is_rest = response.status_code == 206
    here = start if is_rest else 0
    length = response.headers.get("Content-Length")
    total = here + int(length) if length else None
    async with await anyio.open_file(draft, "ab" if is_rest else "wb") as file:
        async for chunk in response.aiter_bytes():
            await file.write(chunk)
            here += len(chunk)
            advance(here, total)


def hash_file(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal digits."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        for chunk in iter(partial(file.read, _CHUNK), b""):
            digest.update(chunk)
    return digest.hexdigest()


@contextmanager
def show_progress() -> Generator[Advance]:
    """A bar on standard error."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn

    columns = (BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda here, total: bar.update(task, completed=here, total=total)


def find_endpoint() -> str:
    """Where the Hugging Face hub is, or the mirror of it that its own variable names."""
    return os.environ.get("HF_ENDPOINT", "").rstrip("/") or "https://huggingface.co"
